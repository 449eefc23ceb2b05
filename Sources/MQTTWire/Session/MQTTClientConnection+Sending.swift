package import WireCore

extension MQTTClientConnection {
    // MARK: Connecting

    /// Sends CONNECT, once and before all other packets (MQTT 5, 3.1.0-1 and 3.1.0-2).
    ///
    /// - Parameters:
    ///   - packet: The request; its version is the configuration's.
    ///   - hasSessionState: Whether the server is expected to have a session; otherwise Session Present is a violation
    ///     (MQTT 5, 3.2.2-4).
    ///   - session: The state from an earlier connection; see ``resumeSession(at:)``.
    ///   - isOfOtherClient: Whether that connection had another client identifier. The server's session is then not the
    ///     one of the state, even if the server has one.
    ///   - now: The current time.
    /// - Throws: `MQTTSendError.encoding`; nothing was written then.
    package mutating func connect(
        _ packet: MQTTConnect,
        hasSessionState: Bool,
        resuming session: MQTTSessionState = MQTTSessionState(),
        isOfOtherClient: Bool = false,
        at now: WireInstant
    ) throws(MQTTSendError) {
        try channel.connect(packet, expectsSession: hasSessionState, at: now)
        exchanges.session = session
        if isOfOtherClient { exchanges.noteOtherClient() }
    }

    // MARK: Authenticating

    /// Answers ``MQTTClientEvent/challenged(_:)`` with the next data of the authentication (MQTT 5, 4.12).
    ///
    /// - Parameters:
    ///   - data: The data; nil for none.
    ///   - explanation: The reason string and the user properties, which are left out where the packet would exceed the
    ///     server's limit.
    ///   - now: The current time.
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func authenticate(
        _ data: [UInt8]?,
        explaining explanation: MQTTProperties = MQTTProperties(),
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard !isFinished else { throw .notConnected }
        try channel.authenticate(data, explaining: explanation, at: now)
    }

    /// Begins the connection after ``MQTTClientEvent/mustVerify(_:)``; ``MQTTClientEvent/connected(_:)`` follows.
    package mutating func acceptServer(at now: WireInstant) {
        guard let (connack, limits) = channel.acceptServer() else { return }
        begin(connack, limits)
    }

    /// Begins a re-authentication with the method of CONNECT (MQTT 5, 4.12.1).
    ///
    /// - Parameters:
    ///   - data: The first data; nil for none.
    ///   - explanation: As in ``authenticate(_:explaining:at:)``.
    ///   - timeout: The time limit of the whole exchange. After it the connection is closed.
    ///   - now: The current time.
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func reauthenticate(
        _ data: [UInt8]?,
        explaining explanation: MQTTProperties = MQTTProperties(),
        timeout: Duration,
        at now: WireInstant
    ) throws(MQTTSendError) {
        try channel.reauthenticate(
            data,
            explaining: explanation,
            until: now.advanced(by: timeout),
            at: now
        )
    }

    /// Gives up an authentication, and closes the connection (MQTT 5, 4.12.1-2).
    ///
    /// The server gets the reason 0x80, because only a server may send Not authorized (MQTT 5, table 3-10).
    package mutating func abandonAuthentication(at now: WireInstant) {
        guard !isFinished else { return }
        channel.report(.unspecifiedError, at: now)
        close(.authenticationAbandoned)
    }

    /// Sends DISCONNECT and ends the connection; nothing is sent after it (MQTT 5, 3.14.4-1).
    ///
    /// - Parameters:
    ///   - packet: Reason and properties; for 3.1.1 those of a normal end. Texts are left out if the packet would
    ///     exceed the server's limit (MQTT 5, 3.14.2-3 and 3.14.2-4).
    ///   - now: The current time.
    package mutating func disconnect(
        _ packet: MQTTDisconnect = MQTTDisconnect(),
        at now: WireInstant
    ) {
        channel.disconnect(packet, at: now)
        close(.disconnected)
    }

    // MARK: Publishing

    /// Sends a message of QoS 0; it is complete when it is written.
    ///
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func publishAtMostOnce(
        _ publish: MQTTPublish,
        payload: some WireBytes,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard isConnected else { throw .notConnected }
        try exchanges.check(publish)
        try channel.writer.write(publish, payload: payload)
        exchanges.session.publisher.suspicion.noteOther()
        channel.noteSent(at: now)
    }

    /// Sends a message of QoS 1 or 2 as soon as the session is resumed and the window has room.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - call: The call that waits for ``MQTTClientEvent/published(_:_:_:)``.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `MQTTSendError`; nothing was written or queued then.
    package mutating func publish(
        _ message: MQTTOutgoingMessage,
        call: (any MQTTCall)?,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard isConnected else { throw .notConnected }
        try exchanges.check(message.publish)
        let deadline = message.lastsUntil ?? deadline(of: timeout, at: now)
        var message = message
        message.noteAccepted(at: now)
        channel.writer.now = now
        try exchanges.session.publisher.submit(
            message,
            call: call,
            deadline: deadline,
            to: &channel.writer
        )
        channel.noteSent(at: now)
    }

    private func deadline(of timeout: Duration?, at now: WireInstant) -> WireInstant {
        now.advanced(by: timeout ?? configuration.acknowledgementTimeout)
    }

    // MARK: Subscribing

    /// Sends SUBSCRIBE or UNSUBSCRIBE.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - call: The call that waits for ``MQTTClientEvent/subscribed(_:_:hasBacklog:)`` or
    ///     ``MQTTClientEvent/unsubscribed(_:_:)``; nil for none.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func send(
        _ request: MQTTClientRequest,
        call: (any MQTTCall)?,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard isConnected else { throw .notConnected }
        let deadline = deadline(of: timeout, at: now)
        try exchanges.send(request, call: call, deadline: deadline, to: &channel.writer)
        channel.noteSent(at: now)
    }

    // MARK: Taking messages

    /// Acknowledges an inbound message when its turn comes.
    ///
    /// The receipt of a QoS 2 message is valid as long as its session, also without a connection. The receipt of a QoS
    /// 1 message is valid for its connection; after that the server delivers the message again.
    ///
    /// - Parameters:
    ///   - receipt: The receipt that came with the message.
    ///   - reasonCode: `success`, or the reason of a refusal (MQTT 5; 3.1.1 cannot express one).
    ///   - now: The current time.
    /// - Returns: False for a message of an earlier connection that the server sends again.
    @discardableResult
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode = .success,
        at now: WireInstant
    ) -> Bool {
        guard isConnected else { return exchanges.session.acknowledge(receipt, reasonCode) }
        defer { channel.noteSent(at: now) }
        let isFirst = exchanges.session.receiver.acknowledge(
            receipt,
            reasonCode,
            to: &channel.writer
        )
        if receipt.qos == .exactlyOnce { reportTaken() }
        return isFirst
    }

    /// Acknowledges an inbound message as ``acknowledge(_:_:at:)`` does, with a reason string and user properties.
    ///
    /// - Parameters:
    ///   - receipt: The receipt that came with the message.
    ///   - answer: The application's answer.
    ///   - call: The call that waits for ``MQTTClientEvent/completed(_:)``; nil for none.
    ///   - now: The current time.
    /// - Returns: What becomes of the call. An event follows only if it waits.
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ answer: MQTTReceiverAnswer,
        awaitedBy call: (any MQTTCall)?,
        at now: WireInstant
    ) -> MQTTCompletion {
        let deadline = deadline(of: nil, at: now)
        guard isConnected else {
            return exchanges.session.acknowledge(
                receipt,
                answer,
                awaitedBy: call,
                deadline: deadline
            )
        }
        defer { channel.noteSent(at: now) }
        let completion = exchanges.session.acknowledge(
            receipt,
            awaitedBy: call,
            deadline: deadline
        ) { receiver in
            receiver.acknowledge(receipt, answer, to: &channel.writer)
        }
        if receipt.qos == .exactlyOnce { reportTaken() }
        return completion
    }

    /// Reports the identifiers that have to be stored before their PUBRECs are sent, and the exchanges that are over.
    mutating func reportTaken() {
        for call in exchanges.session.receiver.takeCompleted() {
            channel.events.append(.completed(call))
        }
        for step in exchanges.session.takeSteps() { channel.events.append(.mustStore(step)) }
    }

    /// Goes on with a step of ``MQTTClientEvent/mustStore(_:)`` that is stored now.
    ///
    /// Does nothing after the end of the connection: the next one repeats the step.
    package mutating func stored(_ step: MQTTStorageStep, at now: WireInstant) {
        guard isConnected else { return }
        channel.writer.now = now
        exchanges.stored(step, to: &channel.writer)
        reportTaken()
        channel.noteSent(at: now)
    }

    // MARK: Giving up

    /// Withdraws a call and its message, if that was not sent.
    ///
    /// A message that was sent completes its exchange, without a report of the outcome.
    package mutating func cancel(_ call: any MQTTCall, at now: WireInstant) {
        exchanges.session.cancel(call)
        sendWaiting(at: now)
    }

    /// Gives the exchange of a stored message another call, or withdraws the message if it was never sent.
    ///
    /// - Returns: Whether there is an exchange, whose end the call is told.
    package mutating func adopt(
        _ number: UInt64,
        _ call: any MQTTCall,
        at now: WireInstant
    ) -> Bool {
        defer { sendWaiting(at: now) }
        return exchanges.session.adopt(number, call)
    }

    /// Sends the messages that waited behind a withdrawn one, whose packet identifier was in use.
    mutating func sendWaiting(at now: WireInstant) {
        guard isConnected else { return }
        channel.writer.now = now
        exchanges.sendWaiting(to: &channel.writer)
        channel.noteSent(at: now)
    }

    // MARK: From connection to connection

    /// Adds a message of an earlier process to the session; ``resumeSession(at:)`` continues its exchange.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - isReleased: Whether its PUBREL is sent instead of the message.
    ///   - call: The call of its end.
    package mutating func restore(
        _ message: MQTTOutgoingMessage,
        isReleased: Bool,
        call: any MQTTCall
    ) {
        exchanges.restore(message, isReleased: isReleased, call: call)
    }

    /// Keeps the packet identifiers of stored messages that wait outside of the session, and no others from now on.
    package mutating func keepIdentifiers(of storedNumbers: [UInt64]) {
        exchanges.session.keepIdentifiers(of: storedNumbers)
    }

    /// Whether no earlier message has the packet identifier of a stored message.
    package func isFree(_ storedNumber: UInt64) -> Bool { exchanges.session.isFree(storedNumber) }

    /// Resends the messages of the session, and then the waiting ones (``MQTTClientExchanges/resume(to:)``).
    ///
    /// Until this call, messages of QoS 1 and 2 wait behind the carried ones, so that the driver can subscribe first.
    /// Without carried messages nothing waits, and the call does nothing.
    ///
    /// - Returns: The dropped messages, each with its call.
    package mutating func resumeSession(at now: WireInstant) -> [MQTTDroppedMessage] {
        guard isConnected else { return [] }
        defer { channel.noteSent(at: now) }
        channel.writer.now = now
        return exchanges.resume(to: &channel.writer)
    }
}
