package import WireCore

/// What an MQTT client keeps of a session between two connections (MQTT 5, 4.1): messages under way
/// in both directions, and who waits for them.
///
/// One core hands it to the next: ``MQTTClientConnection/takeSessionState()`` ends with one and
/// ``MQTTClientConnection/connect(_:hasSessionState:resuming:at:)`` begins with one. It is one value
/// with one owner; whoever goes on with a copy sends messages twice. Subscriptions are not part of it.
package struct MQTTSessionState: Sendable {
    var publisher: MQTTPublisher
    var receiver: MQTTReceiver

    /// The state of a new session.
    package init() {
        self.init(publisher: MQTTPublisher(window: 0), receiver: MQTTReceiver())
    }

    /// - Parameters:
    ///   - publisher: The sender's side, suspended.
    ///   - receiver: The receiver's side, suspended.
    init(publisher: MQTTPublisher, receiver: MQTTReceiver) {
        self.publisher = publisher
        self.receiver = receiver
    }

    /// Whether nothing is in flight, queued or half received, and nobody is still to be told.
    package var isEmpty: Bool { publisher.isIdle && receiver.isIdle }

    /// The number of outbound messages, in flight and queued.
    package var messageCount: Int { publisher.inflight.count + publisher.queue.count }

    // MARK: Callers

    /// No caller's time is up before this; nil when none waits.
    package var earliestDeadline: WireInstant? { publisher.earliestDeadline }

    /// Takes the callers whose time is up.
    ///
    /// A message that was sent goes on without its caller; one that was never sent is withdrawn.
    package mutating func takeExpired(at now: WireInstant) -> [any MQTTCall] {
        publisher.takeExpired(at: now)
    }

    /// Withdraws a call: a message that was never sent is withdrawn with it, any other goes on, and
    /// its outcome is told to nobody.
    package mutating func cancel(_ call: any MQTTCall) {
        publisher.cancel(call)
    }

    /// Everybody who waits, in the order of sending.
    package var calls: [any MQTTCall] { publisher.calls }

    // MARK: Taking messages

    /// Notes that an inbound message was taken, or refused with a reason, while there is no connection.
    ///
    /// A QoS 2 message is acknowledged when the server repeats it. A QoS 1 message of an earlier
    /// connection cannot be acknowledged any longer: the server delivers it again.
    /// - Returns: False for a message that the server has sent again, or will.
    @discardableResult
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode = .success
    ) -> Bool {
        receiver.settle(receipt, reasonCode)
    }

    /// The QoS 1 messages of earlier connections that the server has sent again.
    package var repeatedSerials: MQTTRepeatedSerials { receiver.repeatedSerials }

    /// Forgets the session, and who waits with it: take ``calls`` first.
    ///
    /// Only the numbers of receipts go on, so that an old receipt never names a new message.
    package mutating func removeAll() {
        publisher = MQTTPublisher(window: 0)
        receiver.loseSession()
    }
}
