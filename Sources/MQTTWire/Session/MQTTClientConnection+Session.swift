package import WireCore

extension MQTTClientConnection {
    /// Takes what the next connection goes on with, once this one is over.
    ///
    /// Before that there is nothing to take: the state of a session has one owner, and until its end
    /// that is the core. It returns an empty state then and changes nothing. A core that does not keep
    /// its session (``Configuration/keepsSession``) hands on the numbers of receipts alone.
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

    /// Begins with the state that an earlier connection has left.
    mutating func adopt(_ session: MQTTSessionState) {
        publisher = session.publisher
        receiver = session.receiver
    }

    /// Settles what CONNACK says of the session, and opens the window unless messages are carried.
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

    /// How many messages may be under way on this connection.
    private var window: Int { min(configuration.inflightWindow, limits.receiveMaximum) }

    /// Sends again what was under way when the last connection ended, and then what waits.
    ///
    /// Until this is called, messages of QoS 1 and 2 wait behind those that were carried over, so that
    /// the driver can subscribe first. Without carried messages nothing waits, and this does nothing.
    ///
    /// | message | server has the session | server has lost it |
    /// | --- | --- | --- |
    /// | QoS 1, sent | PUBLISH, DUP 1, same identifier | as a new message |
    /// | QoS 2, sent | PUBLISH, DUP 1, same identifier | dropped |
    /// | QoS 2, PUBREC received | PUBREL | dropped |
    /// | never sent | in its turn | in its turn |
    ///
    /// - Returns: The messages that do not go on, with the callers to be told, each once.
    package mutating func resumeSession(at now: WireInstant) -> [MQTTDroppedMessage] {
        guard case .connected = state, isHoldingMessages else { return [] }
        isHoldingMessages = false
        let dropped = publisher.resume(window: window, limits: limits, to: &writer)
        noteSent(at: now)
        return dropped
    }
}
