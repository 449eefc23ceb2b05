import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// SUBSCRIBE and UNSUBSCRIBE.
extension MQTTConnection {
    /// Sends SUBSCRIBE and waits for SUBACK.
    ///
    /// - Parameters:
    ///   - subscriptions: The filters.
    ///   - identifier: The subscription identifier.
    ///   - request: The request.
    ///   - timeout: The timeout of the SUBACK; nil for the configuration's.
    ///   - didAnswer: Called with the SUBACK, before the messages that follow it; see
    ///     ``MQTTClientEvent/subscribed(_:_:hasBacklog:)``.
    /// - Returns: For each filter the granted quality of service, or the refusal.
    /// - Throws: `WaybillError`, `CancellationError`.
    func subscribe(
        _ subscriptions: [MQTTSubscription],
        identifier: UInt32?,
        _ request: Request,
        timeout: Duration?,
        didAnswer: (@Sendable (Bool) -> Void)? = nil
    ) async throws -> [Result<QoS, WaybillError>] {
        let answer = try await answer(request) { (core, now, call) throws(MQTTSendError) in
            try core.subscribe(
                subscriptions,
                identifier: identifier,
                call: call,
                timeout: timeout,
                at: now
            )
            if let didAnswer {
                state.withLock { $0.notes[ObjectIdentifier(call)] = didAnswer }
            }
        }
        guard case .subscribed(let suback) = answer,
            suback.reasonCodes.count == subscriptions.count
        else { throw Self.confusion }
        return suback.reasonCodes.map { code in
            guard let granted = MQTTQoS(rawValue: code.rawValue) else {
                return .failure(MQTTMapping.refusal(code, suback.properties, request))
            }
            return .success(MQTTMapping.quality(granted))
        }
    }

    /// Subscriptions as they go into packets: one each where the server names them by identifiers, which
    /// belong to a whole packet (MQTT 5, 3.8.2.1.2), and many where it does not.
    func batches<Element>(of entries: [Element]) -> [[Element]] {
        let isNamed =
            configuration.version == .v5
            && driver.withCore { core, _ in core.limits.subscriptionIdentifiersAvailable }
        return Self.batches(of: entries, size: isNamed ? 1 : Self.batchSize)
    }

    /// Parts of a list that fit into packets.
    static func batches<Element>(of all: [Element], size: Int = batchSize) -> [[Element]] {
        stride(from: 0, to: all.count, by: size).map { start in
            Array(all[start..<min(start + size, all.count)])
        }
    }

    /// The maximum number of filters in one packet, which all brokers accept.
    static let batchSize = 100

    /// Sends UNSUBSCRIBE without waiting.
    ///
    /// - Parameters:
    ///   - filter: The filter.
    ///   - didEnd: Called when the server has confirmed it; not at all if the connection ends before.
    func leave(_ filter: String, didEnd: @escaping @Sendable () -> Void) {
        try? driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
            try core.unsubscribe([filter], call: MQTTStoredCall(didEnd: didEnd), at: now)
        }
    }

    /// Sends UNSUBSCRIBE and waits for UNSUBACK.
    func unsubscribe(_ filters: [String], _ request: Request) async throws -> Receipt {
        let userProperties = request.headers.pairs
        let answer = try await answer(request) { (core, now, call) throws(MQTTSendError) in
            try core.unsubscribe(filters, userProperties: userProperties, call: call, at: now)
        }
        guard case .unsubscribed(let unsuback) = answer else { throw Self.confusion }
        let code = unsuback.reasonCodes.first ?? .success
        return try MQTTMapping.receipt(request, code, unsuback.properties)
    }
}
