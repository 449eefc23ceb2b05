import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// Makes the deliveries of received messages, and acknowledges them over the connection that has the session by then.
final class MQTTDeliveries: MessageAcknowledger {
    private let session: MQTTSession
    /// The messages whose next acknowledgement is none, because they are held again.
    private let spared = Locked<Set<MQTTDeliveryReceipt>>([])
    /// The messages that wait for the app to acknowledge them.
    let manual = ManualDeliveries<MQTTDeliveries>()

    init(session: MQTTSession) { self.session = session }

    // MARK: Received messages

    /// Adds messages of one topic to a batch, for their listeners or at least for its onlookers.
    func add(
        _ run: MQTTArrivals.Run,
        of arrivals: MQTTArrivals,
        to listeners: [MessageListener],
        naming identifiers: [UInt32] = [],
        in batch: inout MessageBatch
    ) {
        guard !listeners.isEmpty else {
            guard batch.isWatched else { return }
            return run.indices.forEach { index in
                batch.show(MQTTPublishMapping.message(arrivals.publish(at: index)))
            }
        }
        // The copies of one run belong together: its listeners drop and take them together.
        var copier = SliceCopier()
        guard arrivals.qos(at: run.indices.lowerBound) != .atMostOnce else {
            return batch.add(to: listeners) { messages in
                for index in run.indices {
                    messages.append(MQTTPublishMapping.message(arrivals, index, run, &copier))
                    guard !identifiers.isEmpty else { continue }
                    MQTTPublishMapping.name(&messages[messages.endIndex - 1], identifiers)
                }
            }
        }
        for index in run.indices {
            var message = MQTTPublishMapping.message(arrivals, index, run, &copier)
            if !identifiers.isEmpty { MQTTPublishMapping.name(&message, identifiers) }
            add(message, arrivals.receipt(at: index), to: listeners, in: &batch)
        }
    }

    /// Adds a message to a batch; a message with a receipt has to be acknowledged.
    func add(
        _ message: consuming Message,
        _ receipt: MQTTDeliveryReceipt?,
        to listeners: [MessageListener],
        in batch: inout MessageBatch
    ) {
        guard let receipt else { return batch.add(message, to: listeners) }
        batch.add(message, to: listeners, acknowledging: receipt, by: self, manual: manual)
    }

    // MARK: Acknowledgements

    /// Carries out the command `ack` or `nack` of an entry.
    ///
    /// - Parameters:
    ///   - id: The identifier of the message.
    ///   - answer: The answer to the server.
    ///   - request: The request.
    /// - Returns: An empty receipt.
    /// - Throws: `invalidEntry` if no message waits under the identifier; the errors of the exchange, if the command
    ///   awaits its end.
    func perform(
        _ id: Message.ID,
        _ answer: MQTTReceiverAnswer,
        _ request: Request
    ) async throws -> Receipt {
        let isPlain = answer.properties.isEmpty && request.command[.reasonCode] == nil
        let awaitsCompletion = request.command.isSet(.awaitsCompletion)
        guard !isPlain || awaitsCompletion else {
            return try acknowledge(id, isAccepted: !answer.reasonCode.isFailure, request)
        }
        guard awaitsCompletion else {
            try acknowledge(id, answer, awaitedBy: nil, request)
            return Receipt()
        }
        do {
            let call = MQTTPendingCall()
            _ = try await call.answer(
                sending: { () throws(WaybillError) in
                    try acknowledge(id, answer, awaitedBy: call, request)
                },
                withdrawing: { [session] in session.cancel($0) }
            )
            return Receipt()
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    /// Acknowledges a message that was subscribed to with manual acknowledgement.
    func acknowledge(
        _ id: Message.ID,
        isAccepted: Bool,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try manual.acknowledge(id, Acknowledgement(isAccepted: isAccepted), request)
    }

    /// Answers a message that was subscribed to with manual acknowledgement, with a reason or for a call that waits.
    ///
    /// Where other listeners have the message, too, the answer with the highest reason code is sent after the last one:
    /// the call does not wait for it.
    ///
    /// - Throws: `invalidEntry` if no message waits under the identifier.
    func acknowledge(
        _ id: Message.ID,
        _ answer: MQTTReceiverAnswer,
        awaitedBy call: MQTTPendingCall?,
        _ request: Request
    ) throws(WaybillError) {
        let isAccepted = !answer.reasonCode.isFailure
        let delivery = try manual.take(id, for: request)
        let combined = delivery.combined(
            with: Acknowledgement(isAccepted: isAccepted),
            answering: RankedAnswer(answer, rank: answer.reasonCode.rawValue)
        )
        guard let combined else {
            call?.succeed(.completed)
            return
        }
        let highest = combined.answer?.value as? MQTTReceiverAnswer ?? answer
        session.acknowledge(delivery.name, highest.outweighed(by: combined.all), awaitedBy: call)
    }

    func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ acknowledgement: Acknowledgement,
        _ answer: RankedAnswer
    ) {
        guard let answer = answer.value as? MQTTReceiverAnswer else {
            return acknowledge(receipt, acknowledgement)
        }
        session.acknowledge(receipt, answer.outweighed(by: acknowledgement), awaitedBy: nil)
    }

    /// Acknowledges a message without a listener, as the server expects (MQTT 5, 4.5.0-2).
    ///
    /// - Returns: Whether the server takes it, and does not send the message again.
    @discardableResult
    func drop(_ receipt: MQTTDeliveryReceipt) -> Bool {
        take(receipt, Acknowledgement()) == .valid
    }

    /// Has the end of a listener acknowledge none of some messages.
    func spare(_ receipts: [MQTTDeliveryReceipt]) {
        guard !receipts.isEmpty else { return }
        spared.withLock { $0.formUnion(receipts) }
    }

    func acknowledge(_ receipt: MQTTDeliveryReceipt, _ acknowledgement: Acknowledgement) {
        _ = take(receipt, acknowledgement)
    }

    func take(_ receipt: MQTTDeliveryReceipt, _ acknowledgement: Acknowledgement) -> MessageValidity
    {
        if !acknowledgement.isTaken, spared.withLock({ $0.remove(receipt) }) != nil {
            return .valid
        }
        let reason: MQTTReasonCode = acknowledgement.isAccepted ? .success : .unspecifiedError
        return session.acknowledge(receipt, reason) ? .valid : .comesAgain
    }

    func validity(of receipt: MQTTDeliveryReceipt) -> MessageValidity {
        session.repeatedSerials.contains(receipt) ? .comesAgain : .valid
    }
}

extension MQTTReceiverAnswer {
    /// This answer, unless a listener without an answer of its own has refused what this one accepts.
    fileprivate func outweighed(by all: Acknowledgement) -> MQTTReceiverAnswer {
        all.isAccepted || reasonCode.isFailure ? self : MQTTReceiverAnswer(.unspecifiedError)
    }
}
