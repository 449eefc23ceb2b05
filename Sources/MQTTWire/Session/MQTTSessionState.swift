package import WireCore

/// The part of a session that an MQTT client keeps between two connections (MQTT 5, 4.1).
///
/// It consists of the messages in flight in both directions, and the calls that wait for them.
///
/// One core passes it to the next: ``MQTTClientConnection/takeSessionState()`` returns it and
/// ``MQTTClientConnection/connect(_:hasSessionState:resuming:at:)`` takes it. The value has one owner; continuing with
/// a copy would send messages twice. It does not contain subscriptions.
package struct MQTTSessionState: Sendable {
    var publisher = MQTTPublisher(window: 0)
    package var receiver = MQTTReceiver()

    /// Makes the state of a new session.
    package init() {}

    /// Makes the state of a session that an earlier process has stored; ``restore(_:isReleased:call:)`` adds the messages.
    ///
    /// - Parameter received: The packet identifiers of received messages that were taken.
    package init(received: [UInt16]) {
        publisher = MQTTPublisher(window: 0, reservesIdentifiers: true)
        receiver.isStored = true
        for identifier in received { receiver.restore(identifier) }
    }

    /// Adds a message of an earlier process, in the order of the numbers.
    ///
    /// - Returns: The call of an earlier message with the same identifier, whose exchange has ended; otherwise nil.
    @discardableResult
    package mutating func restore(
        _ message: MQTTOutgoingMessage,
        isReleased: Bool,
        call: any MQTTCall
    ) -> (any MQTTCall)? {
        publisher.restore(message, isReleased: isReleased, call: call)
    }

    /// Whether no earlier message has the packet identifier of a stored message.
    package func isFree(_ storedNumber: UInt64) -> Bool {
        publisher.inflight.isFree(MQTTOutgoingMessage.reservedIdentifier(storedNumber))
    }

    /// Keeps the packet identifiers of stored messages that wait outside of the session, and no others from now on.
    package mutating func keepIdentifiers(of storedNumbers: [UInt64]) {
        publisher.inflight.keep(Set(storedNumbers.map(MQTTOutgoingMessage.reservedIdentifier)))
    }

    /// Whether no message is in flight, queued or incomplete, and no call is waiting to be told.
    package var isEmpty: Bool { publisher.isIdle && receiver.isIdle }

    /// The bytes of the outbound messages that wait for room in the window.
    ///
    /// - Complexity: O(waiting messages).
    package var queuedByteCount: Int { publisher.queue.byteCount }

    /// The number of packets that the server has not answered yet.
    package var unansweredCount: Int { publisher.unansweredCount }

    /// The number of outbound messages, in flight and queued.
    package var messageCount: Int { publisher.inflight.count + publisher.queue.count }

    /// Notes that the server may have lost the session, and have begun another one with a CONNECT whose CONNACK was lost.
    ///
    /// Then a PUBLISH of QoS 2 without DUP begins a new exchange, whatever its identifier.
    package mutating func noteDoubt() { receiver.noteDoubt() }

    // MARK: Callers

    /// A lower bound of the calls' time limits; nil if no call waits.
    package var earliestDeadline: WireInstant? {
        switch (publisher.earliestDeadline, receiver.completions.earliestDeadline) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Takes the calls whose time limit has passed.
    ///
    /// A message that was sent continues without its call; a message that was never sent is withdrawn.
    package mutating func takeExpired(at now: WireInstant) -> [any MQTTCall] {
        publisher.takeExpired(at: now) + receiver.takeExpired(at: now)
    }

    /// Withdraws a call and its message, if that was never sent.
    ///
    /// A message that was sent completes its exchange, without a report of the outcome.
    package mutating func cancel(_ call: any MQTTCall) {
        publisher.cancel(call)
        receiver.cancel(call)
    }

    /// Gives the exchange of a stored message another call, or withdraws the message if it was never sent.
    ///
    /// - Returns: Whether there is an exchange, whose end the call is told.
    package mutating func adopt(_ number: UInt64, _ call: any MQTTCall) -> Bool {
        publisher.adopt(number, call)
    }

    /// The waiting calls: those of sends in the order of sending, then those that wait for the end of an exchange.
    package var calls: [any MQTTCall] { publisher.calls + receiver.completions.calls }

    // MARK: Taking messages

    /// Notes that an inbound message was taken, or refused with a reason, while there is no connection.
    ///
    /// A QoS 2 message is acknowledged when the server repeats it. A QoS 1 message of an earlier connection can no
    /// longer be acknowledged: the server delivers it again.
    ///
    /// - Returns: False for a message that the server has sent again or will send again.
    @discardableResult
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode = .success
    ) -> Bool {
        receiver.settle(receipt, reasonCode)
    }

    /// Forgets inbound messages of QoS 2 that the app can no longer acknowledge, while there is no connection.
    ///
    /// The server sends them again, and then they are delivered again.
    package mutating func abandon(_ receipts: [MQTTDeliveryReceipt]) {
        receiver.abandon(receipts)
    }

    /// Notes the answer to an inbound message while there is no connection.
    ///
    /// Its texts are kept for the connection that follows (``MQTTCarriedExplanations``).
    ///
    /// - Parameters:
    ///   - receipt: The receipt that came with the message.
    ///   - answer: The application's answer.
    ///   - call: The call that waits for the end of the exchange; nil for none.
    ///   - deadline: The time limit of the call.
    /// - Returns: What becomes of the call.
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ answer: MQTTReceiverAnswer,
        awaitedBy call: (any MQTTCall)?,
        deadline: WireInstant
    ) -> MQTTCompletion {
        acknowledge(receipt, awaitedBy: call, deadline: deadline) { receiver in
            receiver.settle(receipt, answer.reasonCode, explaining: answer.properties)
        }
    }

    /// Acknowledges by a closure, and lets a call wait for the end of the exchange.
    mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        awaitedBy call: (any MQTTCall)?,
        deadline: WireInstant,
        _ acknowledge: (inout MQTTReceiver) -> Void
    ) -> MQTTCompletion {
        guard let call, receipt.qos == .exactlyOnce else {
            acknowledge(&receiver)
            return .completed
        }
        // Read first, because the acknowledgement ends the receipt.
        let identifier = receiver.packetIdentifier(of: receipt)
        acknowledge(&receiver)
        guard let identifier else { return .sessionLost }
        return receiver.await(call, identifier, deadline: deadline) ? .waiting : .completed
    }

    /// Takes the steps of received QoS 2 messages that happened without a connection, to be stored.
    package mutating func takeSteps() -> [MQTTStorageStep] { receiver.takeSteps() }

    /// The QoS 1 messages of earlier connections that the server has sent again.
    package var repeatedSerials: MQTTRepeatedSerials { receiver.repeatedSerials }

    /// Ends the connection: messages wait from now on, and its receipts are void.
    ///
    /// - Returns: The calls that wait for SUBACK or UNSUBACK, in the order of sending.
    mutating func suspend() -> [any MQTTCall] {
        receiver.suspend()
        return publisher.suspend()
    }

    /// Clears the session and its calls; take ``calls`` first.
    ///
    /// Only the numbers of receipts are kept, so that an old receipt never names a new message.
    package mutating func removeAll() {
        publisher = MQTTPublisher(
            window: 0,
            reservesIdentifiers: publisher.inflight.reservesIdentifiers
        )
        _ = receiver.loseSession()
    }
}
