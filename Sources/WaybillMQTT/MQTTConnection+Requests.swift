import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// SUBSCRIBE and UNSUBSCRIBE.
extension MQTTConnection {
    /// What a SUBACK says of each filter, and whether retained messages of an earlier SUBSCRIBE may follow, too.
    typealias Suback = (results: [Result<QoS, WaybillError>], hasBacklog: Bool)

    /// Sends SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - subscriptions: The filters.
    ///   - identifier: The subscription identifier; nil for none.
    ///   - request: The request.
    ///   - timeout: How long the SUBACK may take; nil for the configuration's time.
    ///   - didAnswer: Called once: with the SUBACK, before the messages that follow it, or with the reason why none comes.
    func subscribe(
        _ subscriptions: [MQTTSubscription],
        identifier: UInt32?,
        _ request: Request,
        timeout: Duration?,
        didAnswer: @escaping @Sendable (Result<Suback, WaybillError>) -> Void
    ) {
        let call = MQTTPendingCall { result in
            switch result {
            case .success(.subscribed(let suback, let hasBacklog))
            where suback.reasonCodes.count == subscriptions.count:
                let results = suback.reasonCodes.map { code -> Result<QoS, WaybillError> in
                    MQTTQoS(rawValue: code.rawValue).map { .success(MQTTMapping.quality($0)) }
                        ?? .failure(MQTTMapping.refusal(code, suback.properties, request))
                }
                didAnswer(.success((results, hasBacklog)))
            case .success: didAnswer(.failure(Self.confusion))
            case .failure(let error):
                didAnswer(.failure(WaybillError(reporting: error).about(request)))
            }
        }
        do throws(MQTTSendError) {
            try driver.withCore { (core, now) throws(MQTTSendError) in
                try core.subscribe(
                    subscriptions,
                    identifier: identifier,
                    call: call,
                    timeout: timeout,
                    at: now
                )
            }
        } catch {
            call.fail(MQTTMapping.error(error, request))
        }
    }

    /// Divides subscriptions among packets: one each where the server names them by identifiers, which belong to a whole
    /// packet (MQTT 5, 3.8.2.1.2), and many where it does not.
    func batches<Element>(of entries: [Element]) -> [[Element]] {
        let isNamed =
            configuration.version == .v5
            && driver.withCore { core, _ in core.limits.subscriptionIdentifiersAvailable }
        return Self.batches(of: entries, size: isNamed ? 1 : Self.batchSize)
    }

    /// Divides a list among packets.
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
    ///   - didEnd: Called when the server has confirmed it; never if the connection ends before.
    func leave(_ filter: String, didEnd: @escaping @Sendable () -> Void) {
        try? driver.withCore(.immediate) { (core, now) throws(MQTTSendError) in
            try core.unsubscribe([filter], call: MQTTStoredCall(didEnd: didEnd), at: now)
        }
    }

    /// Sends UNSUBSCRIBE and waits for UNSUBACK.
    ///
    /// - Parameters:
    ///   - filters: The filters.
    ///   - request: The request.
    ///   - didEnd: Called before the packets that follow, also when the caller no longer waits: with true when the
    ///     server has confirmed it, and with false when the connection was lost before.
    /// - Returns: The receipt.
    /// - Throws: `WaybillError`, `CancellationError`.
    func unsubscribe(
        _ filters: [String],
        _ request: Request,
        didEnd: @escaping @Sendable (Bool) -> Void
    ) async throws -> Receipt {
        let answer = Promise<MQTTUnsuback>()
        let call = MQTTPendingCall { result in
            switch result {
            case .success(.unsubscribed(let unsuback)):
                if unsuback.reasonCodes.first?.isFailure != true { didEnd(true) }
                answer.resolve(.success(unsuback))
            case .success: answer.resolve(.failure(Self.confusion))
            case .failure(let error):
                if (error as? WaybillError)?.losesRequest == true { didEnd(false) }
                answer.resolve(.failure(error))
            }
        }
        try Task.checkCancellation()
        do throws(MQTTSendError) {
            let userProperties = request.headers.pairs
            try driver.withCore { (core, now) throws(MQTTSendError) in
                try core.unsubscribe(filters, userProperties: userProperties, call: call, at: now)
            }
        } catch {
            throw MQTTMapping.error(error, request)
        }
        do {
            let unsuback = try await answer.value()
            let code = unsuback.reasonCodes.first ?? .success
            return try MQTTMapping.receipt(request, code, unsuback.properties)
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }
}
