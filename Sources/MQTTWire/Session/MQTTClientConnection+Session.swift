package import WireCore

extension MQTTClientConnection {
    /// Takes the state for the next connection, after this one has ended.
    ///
    /// The state of a session has one owner, which is the core until its end. Before the end the method returns an
    /// empty state and changes nothing. A core that does not keep its session (``Configuration/keepsSession``) passes
    /// on only the numbers of receipts.
    package mutating func takeSessionState() -> MQTTSessionState {
        guard isFinished else { return MQTTSessionState() }
        let session = MQTTSessionState(publisher: publisher, receiver: receiver)
        publisher = MQTTPublisher(window: 0)
        receiver.loseSession()
        isSessionTaken = true
        return session
    }

    /// Whether outbound messages of QoS 1 and 2 are in flight or queued.
    package var hasMessagesUnderWay: Bool { !publisher.isIdle }

    /// Continues the state of an earlier connection.
    mutating func adopt(_ session: MQTTSessionState) {
        publisher = session.publisher
        receiver = session.receiver
    }

    /// Applies CONNACK's Session Present, and opens the window unless carried messages must be resent first.
    mutating func beginSession(isPresent: Bool) {
        if isPresent {
            receiver.resumeSession()
        } else {
            publisher.loseSession()
            receiver.loseSession()
        }
        isHoldingMessages = !publisher.isIdle
        if !isHoldingMessages { publisher.window = window }
    }

    /// The number of messages that may be in flight on this connection.
    private var window: Int { min(configuration.inflightWindow, limits.receiveMaximum) }

    /// Resends the messages that were in flight at the end of the last connection, and then the waiting ones.
    ///
    /// Until this call, messages of QoS 1 and 2 wait behind the carried ones, so that the driver can subscribe first.
    /// Without carried messages nothing waits, and the call does nothing.
    ///
    /// | message | server has the session | server has lost it |
    /// | --- | --- | --- |
    /// | QoS 1, sent | PUBLISH, DUP 1, same identifier | as a new message |
    /// | QoS 2, sent | PUBLISH, DUP 1, same identifier | dropped |
    /// | QoS 2, PUBREC received | PUBREL | dropped |
    /// | never sent | sent in its turn | sent in its turn |
    ///
    /// - Returns: The dropped messages, each with its call.
    package mutating func resumeSession(at now: WireInstant) -> [MQTTDroppedMessage] {
        guard case .connected = state, isHoldingMessages else { return [] }
        isHoldingMessages = false
        let dropped = publisher.resume(window: window, limits: limits, to: &writer)
        noteSent(at: now)
        return dropped
    }
}
