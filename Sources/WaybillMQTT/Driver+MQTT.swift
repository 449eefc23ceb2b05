import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Requests other than PUBLISH.
extension Driver where Core == MQTTClientConnection {
    /// Sends SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - subscriptions: The filters.
    ///   - identifier: The subscription identifier; nil for none.
    ///   - userProperties: The user properties.
    ///   - request: The request.
    ///   - timeout: How long the SUBACK may take; nil for the configuration's time.
    ///   - didAnswer: Called once: with the SUBACK, before the messages that follow it, or with the reason why none comes.
    func subscribe(
        _ subscriptions: [MQTTSubscription],
        identifier: UInt32?,
        userProperties: [MQTTUserProperty],
        _ request: Request,
        timeout: Duration?,
        didAnswer: @escaping @Sendable (Result<[MQTTGrant], WaybillError>) -> Void
    ) {
        let call = MQTTPendingCall(
            subscribing: request,
            count: subscriptions.count,
            didAnswer: didAnswer
        )
        do throws(MQTTSendError) {
            try withCore { (core, now) throws(MQTTSendError) in
                try core.send(
                    .subscribe(
                        subscriptions,
                        identifier: identifier,
                        userProperties: userProperties
                    ),
                    call: call,
                    timeout: timeout,
                    at: now
                )
            }
        } catch {
            let failure = MQTTErrorMapping.error(error, request)
            guard subscriptions.count == 1, case .packetTooLarge = error else {
                return call.fail(failure)
            }
            // The filter alone is too long for this server, which is no reason to give the others up.
            didAnswer(.success([MQTTGrant(result: .failure(failure), hasBacklog: false)]))
        }
    }

    /// Judges the messages that are sent again by the end of the connection.
    func noteEnd(_ end: ReplaySuspicion.End) -> MQTTReplayFinding {
        withCore { core, now in core.noteEnd(end, at: now) }
    }

    /// The limits of the server.
    var limits: MQTTServerLimits { withCore { core, _ in core.limits } }

    /// Sends UNSUBSCRIBE without waiting.
    ///
    /// - Parameters:
    ///   - filter: The filter.
    ///   - didEnd: Called when the server has confirmed it; never if the connection ends before.
    func leave(_ filter: String, didEnd: @escaping @Sendable () -> Void) {
        try? withCore(.immediate) { (core, now) throws(MQTTSendError) in
            try core.send(.unsubscribe([filter]), call: MQTTStoredCall(didEnd: didEnd), at: now)
        }
    }

    /// Sends UNSUBSCRIBE and waits for UNSUBACK.
    ///
    /// - Parameters:
    ///   - filters: The filters.
    ///   - request: The request.
    ///   - didEnd: Called before the packets that follow, also when the caller no longer waits: with whether the server
    ///     has confirmed each filter, and with nil when the connection was lost before.
    /// - Returns: The receipt.
    /// - Throws: `WaybillError`, `CancellationError`.
    func unsubscribe(
        _ filters: [String],
        _ request: Request,
        didEnd: @escaping @Sendable ([Bool]?) -> Void
    ) async throws -> Receipt {
        let answer = Promise<MQTTUnsuback>()
        let call = MQTTPendingCall(unsubscribing: answer, count: filters.count, didEnd: didEnd)
        try Task.checkCancellation()
        do throws(MQTTSendError) {
            let userProperties = request.headers.pairs
            try withCore { (core, now) throws(MQTTSendError) in
                try core.send(
                    .unsubscribe(filters, userProperties: userProperties),
                    call: call,
                    at: now
                )
            }
        } catch {
            throw MQTTErrorMapping.error(error, request)
        }
        do {
            let unsuback = try await answer.value()
            // The first refusal counts, else the first reason that is not success.
            let codes = unsuback.reasonCodes
            let index =
                codes.firstIndex(where: \.isFailure) ?? codes.firstIndex { $0 != .success }
                ?? codes.startIndex
            var about = request
            if filters.indices.contains(index) { about.topic = filters[index] }
            return try MQTTErrorMapping.receipt(
                about,
                codes.indices.contains(index) ? codes[index] : .success,
                unsuback.properties
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    /// Withdraws a call.
    ///
    /// - Returns: False if this connection no longer has the session state, so that nothing was withdrawn.
    @discardableResult
    func cancel(_ call: MQTTPendingCall) -> Bool {
        withCore { core, now in
            core.cancel(call, at: now)
            return !core.isSessionTaken
        }
    }

    /// Gives the exchange of a stored message another call.
    ///
    /// - Returns: Whether there is such an exchange; nil if this connection no longer has the session state.
    func adopt(_ number: UInt64, _ call: MQTTStoredCall) -> Bool? {
        withCore { core, now in
            let isOpen = core.adopt(number, call, at: now)
            return core.isSessionTaken ? nil : isOpen
        }
    }

    /// Acknowledges a message of this connection, or of an earlier one within the same session.
    ///
    /// - Returns: False for a message that the server sends again; nil if this connection no longer has the session
    ///   state.
    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ reason: MQTTReasonCode) -> Bool? {
        withCore { core, now in
            let isFirst = core.acknowledge(receipt, reason, at: now)
            return core.isSessionTaken ? nil : isFirst
        }
    }

    /// Answers a message as ``acknowledge(_:_:)`` does, with the texts of an answer.
    ///
    /// - Returns: What becomes of the call; nil if this connection no longer has the session state.
    func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ answer: MQTTReceiverAnswer,
        awaitedBy call: MQTTPendingCall?
    ) -> MQTTCompletion? {
        withCore { core, now in
            guard !core.isSessionTaken else { return nil }
            return core.acknowledge(receipt, answer, awaitedBy: call, at: now)
        }
    }

    /// The QoS 1 messages of earlier connections that the server sends again.
    var repeatedSerials: MQTTRepeatedSerials { withCore { core, _ in core.repeatedSerials } }
}

extension MQTTServerLimits {
    /// The error with which a filter is refused without asking the server; nil for none.
    func refusal(of subscription: MQTTSubscription, _ request: Request) -> WaybillError? {
        do throws(MQTTSendError) {
            try check(subscription)
            return nil
        } catch {
            var about = request
            about.topic = subscription.filter
            return MQTTErrorMapping.error(error, about)
        }
    }
}

extension Array {
    /// Divides a list among packets, in order.
    ///
    /// - Parameters:
    ///   - maximum: The maximum number of elements in a packet; nil for 100.
    ///   - limits: The limits of the server. An element that is too long for it has a packet of its own.
    ///   - userProperties: The user properties of each packet.
    ///   - filter: Returns the filter of an element.
    /// - Returns: The elements of each packet.
    func batches(
        of maximum: Int? = nil,
        within limits: MQTTServerLimits,
        beside userProperties: [MQTTUserProperty] = [],
        _ filter: (Element) -> String
    ) -> [[Element]] {
        let space = limits.roomForFilters(beside: userProperties)
        let maximum = Swift.max(maximum ?? MQTTFilterRequest.maximumBatchSize, 1)
        var batches: [[Element]] = []
        var (count, room) = (0, 0)
        for element in self {
            let byteCount = MQTTServerLimits.byteCount(of: filter(element))
            if count == 0 || count == maximum || byteCount > room {
                batches.append([])
                (count, room) = (0, space)
            }
            batches[batches.count - 1].append(element)
            count += 1
            room -= byteCount
        }
        return batches
    }
}
