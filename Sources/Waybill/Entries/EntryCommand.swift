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

    /// Opens the connection with credentials.
    public static func connect(
        userName: String?,
        password: String? = nil,
        clientIdentifier: String? = nil
    ) -> EntryCommand {
        .connect(
            ConnectOptions(
                clientIdentifier: clientIdentifier,
                userName: userName,
                password: password
            )
        )
    }

    /// Sends at most once, not retained.
    public static var send: EntryCommand { .send(SendOptions()) }

    /// Sends with a quality of service.
    public static func send(
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        timeout: Duration? = nil
    ) -> EntryCommand {
        var options = SendOptions(qos: qos, retain: retain)
        options.timeout = timeout
        return .send(options)
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

    /// Subscribes with a quality of service.
    public static func subscribe(
        qos: QoS,
        buffering: BufferPolicy? = nil,
        acknowledgement: AcknowledgementMode = .whenTaken,
        startsOffline: Bool = false
    ) -> EntryCommand {
        .subscribe(
            SubscribeOptions(
                qos: qos,
                buffering: buffering,
                acknowledgement: acknowledgement,
                startsOffline: startsOffline
            )
        )
    }

    /// Subscribes in one of STOMP's own ack modes.
    public static func subscribe(
        ackMode: AckMode,
        buffering: BufferPolicy? = nil,
        acknowledgement: AcknowledgementMode = .whenTaken
    ) -> EntryCommand {
        .subscribe(
            SubscribeOptions(
                buffering: buffering,
                acknowledgement: acknowledgement,
                ackMode: ackMode
            )
        )
    }

    /// Closes the connection with the transport's own settings.
    public static var disconnect: EntryCommand { .disconnect(DisconnectOptions()) }

    /// Whether the command means nothing without a topic.
    var needsTopic: Bool {
        switch self {
        case .send, .subscribe, .unsubscribe: true
        default: false
        }
    }
}
