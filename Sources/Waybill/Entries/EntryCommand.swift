/// What an entry does, with its own options.
public enum EntryCommand: Sendable {
    /// Opens the connection.
    indirect case connect(ConnectOptions)
    /// Sends the body to the topic.
    case send(SendOptions)
    /// Receives what is sent to the topic, or to every topic that a filter matches.
    indirect case subscribe(SubscribeOptions)
    /// Ends every subscription to the topic; done also where there is none.
    case unsubscribe
    /// Takes a message that was subscribed to with manual acknowledgement.
    indirect case ack(Message.ID, transaction: String? = nil)
    /// Refuses such a message.
    indirect case nack(Message.ID, transaction: String? = nil)
    /// Begins a transaction.
    indirect case begin(transaction: String)
    /// Makes a transaction take effect.
    indirect case commit(transaction: String)
    /// Discards a transaction.
    indirect case abort(transaction: String)
    /// Closes the connection, letting the peer know.
    ///
    /// Requests of the same provider and its copies that still wait for a token or for their next attempt fail:
    /// they would only bring the connection back.
    indirect case disconnect(DisconnectOptions)
}

extension EntryCommand {
    /// Opens the connection with the transport's own settings.
    public static var connect: EntryCommand { .connect(ConnectOptions()) }

    /// Opens the connection; what is nil is left to the transport's configuration.
    ///
    /// - Parameters:
    ///   - clientIdentifier: The name of the client (MQTT).
    ///   - userName: The user's name.
    ///   - password: The password.
    ///   - will: What the server publishes when the connection is lost (MQTT).
    ///   - cleanStart: Whether an earlier session is discarded (MQTT).
    ///   - keepAlive: How long the connection may be silent, in whole seconds up to 65,535; zero turns it off.
    ///   - timeout: How long connecting may take, for each host.
    ///   - upgradeHeaders: Fields of the HTTP request that opens a WebSocket.
    /// - Returns: The command.
    public static func connect(
        clientIdentifier: String? = nil,
        userName: String? = nil,
        password: String? = nil,
        will: Will? = nil,
        cleanStart: Bool? = nil,
        keepAlive: Duration? = nil,
        timeout: Duration? = nil,
        upgradeHeaders: Headers = [:]
    ) -> EntryCommand {
        .connect(
            ConnectOptions(
                clientIdentifier: clientIdentifier,
                userName: userName,
                password: password,
                will: will,
                cleanStart: cleanStart,
                keepAlive: keepAlive,
                timeout: timeout,
                upgradeHeaders: upgradeHeaders
            )
        )
    }

    /// Sends at most once, not retained.
    public static var send: EntryCommand { .send(SendOptions()) }

    /// Sends with options; see ``SendOptions``.
    ///
    /// - Parameters:
    ///   - qos: How surely it is delivered.
    ///   - retain: Whether the server keeps it for later subscribers (MQTT).
    ///   - isIdempotent: Whether sending twice does no harm.
    ///   - timeout: How long the peer's acknowledgement or answer may take; nil for the transport's own limit.
    ///   - expiry: After what time the server discards it (MQTT 5), in whole seconds; nil for never.
    ///   - method: The HTTP method; nil for `POST`.
    ///   - asksForReceipt: Whether a receipt is awaited (STOMP); nil for the transport's own way.
    ///   - responseTopic: Where an answer is to be sent (MQTT 5, STOMP).
    ///   - correlationData: What an answer must carry (MQTT 5, STOMP).
    /// - Returns: The command.
    public static func send(
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        isIdempotent: Bool = false,
        timeout: Duration? = nil,
        expiry: Duration? = nil,
        method: String? = nil,
        asksForReceipt: Bool? = nil,
        responseTopic: String? = nil,
        correlationData: [UInt8]? = nil
    ) -> EntryCommand {
        .send(
            SendOptions(
                qos: qos,
                retain: retain,
                isIdempotent: isIdempotent,
                timeout: timeout,
                expiry: expiry,
                method: method,
                asksForReceipt: asksForReceipt,
                responseTopic: responseTopic,
                correlationData: correlationData
            )
        )
    }

    /// Answers a message of somebody who awaits that.
    ///
    /// Carries what tells the answer apart. The entry's topic is the message's ``Message/replyTopic``.
    public static func reply(
        to message: Message,
        qos: QoS = .atMostOnce
    ) -> EntryCommand {
        var options = SendOptions(qos: qos)
        options.correlationData = message.details?.correlationData
        return .send(options)
    }

    /// Subscribes at most once.
    public static var subscribe: EntryCommand { .subscribe(SubscribeOptions()) }

    /// Subscribes with options; see ``SubscribeOptions``.
    ///
    /// - Parameters:
    ///   - qos: The best quality of service wanted; the server may grant less.
    ///   - noLocal: Whether one's own messages are left out (MQTT 5).
    ///   - retainAsPublished: Whether messages keep the retain flag they were sent with (MQTT 5).
    ///   - retainHandling: When retained messages are sent (MQTT 5).
    ///   - ackMode: STOMP's own way to say how messages are acknowledged; nil to let the quality of service say it.
    ///   - buffering: What happens when messages come faster than they are taken; nil for the transport's default.
    ///   - acknowledgement: When messages are acknowledged.
    ///   - asksForReceipt: Whether a receipt is awaited (STOMP); nil for the transport's own way.
    ///   - method: The HTTP method that asks for an event stream; nil for `GET`, or `POST` with a body.
    ///   - eventTypes: The types of events wanted (server-sent events); nil for all.
    ///   - lastEventID: Where an earlier stream stopped (server-sent events).
    ///   - timeout: How long the peer's acknowledgement may take; nil for the transport's own limit.
    ///   - startsOffline: Whether the stream begins at once where there is no connection.
    /// - Returns: The command.
    public static func subscribe(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: SubscribeOptions.RetainHandling = .send,
        ackMode: AckMode? = nil,
        buffering: BufferPolicy? = nil,
        acknowledgement: AcknowledgementMode = .whenTaken,
        asksForReceipt: Bool? = nil,
        method: String? = nil,
        eventTypes: Set<String>? = nil,
        lastEventID: String? = nil,
        timeout: Duration? = nil,
        startsOffline: Bool = false
    ) -> EntryCommand {
        .subscribe(
            SubscribeOptions(
                qos: qos,
                noLocal: noLocal,
                retainAsPublished: retainAsPublished,
                retainHandling: retainHandling,
                ackMode: ackMode,
                buffering: buffering,
                acknowledgement: acknowledgement,
                asksForReceipt: asksForReceipt,
                method: method,
                eventTypes: eventTypes,
                lastEventID: lastEventID,
                timeout: timeout,
                startsOffline: startsOffline
            )
        )
    }

    /// Closes the connection with the transport's own settings.
    public static var disconnect: EntryCommand { .disconnect(DisconnectOptions()) }

    /// Closes the connection with options; see ``DisconnectOptions``.
    ///
    /// - Parameters:
    ///   - timeout: How long closing may take before the stream is closed by force.
    ///   - drainTimeout: How long sends of QoS 1 and 2 that are under way may take before (MQTT).
    ///   - publishesWill: Whether the server publishes the will all the same (MQTT 5).
    ///   - reasonCode: Why, one of the codes that a client may send (MQTT 5).
    ///   - reason: Why, in words (MQTT 5).
    ///   - sessionExpiry: For how long the server keeps the session (MQTT 5), in whole seconds.
    /// - Returns: The command.
    public static func disconnect(
        timeout: Duration? = nil,
        drainTimeout: Duration? = nil,
        publishesWill: Bool = false,
        reasonCode: MQTTReason.Code? = nil,
        reason: String? = nil,
        sessionExpiry: Duration? = nil
    ) -> EntryCommand {
        .disconnect(
            DisconnectOptions(
                timeout: timeout,
                drainTimeout: drainTimeout,
                publishesWill: publishesWill,
                reasonCode: reasonCode,
                reason: reason,
                sessionExpiry: sessionExpiry
            )
        )
    }

    /// Whether the command means nothing without a topic.
    var needsTopic: Bool {
        switch self {
        case .send, .subscribe, .unsubscribe: true
        default: false
        }
    }
}
