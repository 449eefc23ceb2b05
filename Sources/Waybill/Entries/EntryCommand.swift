/// The command of an entry, with its options.
public enum EntryCommand: Sendable {
    /// Opens the connection.
    indirect case connect(ConnectOptions)
    /// Sends the body to the topic.
    case send(SendOptions)
    /// Receives messages of the topic, or of every topic that a filter matches.
    indirect case subscribe(SubscribeOptions)
    /// Ends every subscription to the topic, or to each of several topics; succeeds also where there is none.
    indirect case unsubscribe(UnsubscribeOptions)
    /// Acknowledges a message of a subscription with manual acknowledgement.
    indirect case ack(Message.ID, AcknowledgementOptions)
    /// Refuses a message of a subscription with manual acknowledgement.
    indirect case nack(Message.ID, AcknowledgementOptions)
    /// Begins a transaction.
    indirect case begin(transaction: String)
    /// Commits a transaction.
    indirect case commit(transaction: String)
    /// Aborts a transaction.
    indirect case abort(transaction: String)
    /// Closes the connection in an orderly way.
    ///
    /// Requests of the same provider and its copies that still wait for a token or for their next attempt fail, because
    /// they would open the connection again.
    indirect case disconnect(DisconnectOptions)
}

extension EntryCommand {
    /// Opens the connection with the transport's own settings.
    public static var connect: EntryCommand { plainConnect }

    // Made once, because each transport keeps the request of its connection.
    private static let plainConnect = EntryCommand.connect(ConnectOptions())

    /// Opens the connection; an option that is nil is left to the transport's configuration.
    ///
    /// - Parameters:
    ///   - clientIdentifier: The client identifier (MQTT).
    ///   - userName: The user name.
    ///   - password: The password.
    ///   - will: The message that the server publishes if the connection is lost (MQTT).
    ///   - cleanStart: Whether the server discards an earlier session (MQTT).
    ///   - sessionExpiry: The time that the server keeps the session (MQTT 5), in whole seconds.
    ///   - keepAlive: The longest silence on the connection, in whole seconds up to 65,535; zero turns keep alive off.
    ///   - timeout: The time limit for connecting, for each host.
    ///   - upgradeHeaders: Fields of the HTTP request that opens a WebSocket.
    /// - Returns: The command.
    public static func connect(
        clientIdentifier: String? = nil,
        userName: String? = nil,
        password: String? = nil,
        will: Will? = nil,
        cleanStart: Bool? = nil,
        sessionExpiry: Duration? = nil,
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
                sessionExpiry: sessionExpiry,
                keepAlive: keepAlive,
                timeout: timeout,
                upgradeHeaders: upgradeHeaders
            )
        )
    }

    /// Sends with QoS 0, not retained.
    public static var send: EntryCommand { .send(SendOptions()) }

    /// Sends with options; see ``SendOptions``.
    ///
    /// - Parameters:
    ///   - qos: The quality of service.
    ///   - retain: Whether the server keeps the message for later subscribers (MQTT).
    ///   - isIdempotent: Whether sending twice does no harm.
    ///   - timeout: The time limit for the peer's acknowledgement or reply; nil for the transport's own limit.
    ///   - expiry: The time after which the server discards the message (MQTT 5), in whole seconds; nil for never.
    ///   - method: The HTTP method; nil for `POST`.
    ///   - asksForReceipt: Whether the send waits for a receipt (STOMP); nil for the transport's default.
    ///   - responseTopic: The topic for a reply (MQTT 5, STOMP).
    ///   - correlationData: Data that a reply must carry back (MQTT 5, STOMP).
    ///   - isText: Whether the body is declared as text (MQTT 5); nil declares nothing.
    ///   - isSentOnce: Whether a message of QoS 1 is sent at most once (MQTT).
    ///   - waitsForConnection: Whether the send waits for a connection; nil for the transport's default.
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
        correlationData: [UInt8]? = nil,
        isText: Bool? = nil,
        isSentOnce: Bool = false,
        waitsForConnection: Bool? = nil
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
                correlationData: correlationData,
                isText: isText,
                isSentOnce: isSentOnce,
                waitsForConnection: waitsForConnection
            )
        )
    }

    /// Replies to a message whose sender waits for a reply.
    ///
    /// The command carries the correlation data of the message. The entry's topic must be the message's
    /// ``Message/replyTopic``.
    public static func reply(
        to message: Message,
        qos: QoS = .atMostOnce
    ) -> EntryCommand {
        var options = SendOptions(qos: qos)
        options.correlationData = message.details?.correlationData
        return .send(options)
    }

    /// Subscribes with QoS 0.
    public static var subscribe: EntryCommand { .subscribe(SubscribeOptions()) }

    /// Subscribes with options; see ``SubscribeOptions``.
    ///
    /// - Parameters:
    ///   - qos: The highest quality of service wanted; the server may grant less.
    ///   - noLocal: Whether the server leaves out the client's own messages (MQTT 5).
    ///   - retainAsPublished: Whether messages keep the retain flag that they were sent with (MQTT 5).
    ///   - retainHandling: When the server sends retained messages (MQTT 5).
    ///   - shareName: The name of the group of clients that share the subscription (MQTT 5).
    ///   - subscriptionIdentifier: The identifier of the subscription (MQTT 5).
    ///   - ackMode: STOMP's ack mode; nil derives it from the quality of service.
    ///   - buffering: What happens when messages arrive faster than the consumer takes them; nil for the transport's
    ///     default.
    ///   - acknowledgement: When messages are acknowledged.
    ///   - asksForReceipt: Whether the subscription waits for a receipt (STOMP); nil for the transport's default.
    ///   - method: The HTTP method of the request for an event stream; nil for `GET`, or for `POST` with a body.
    ///   - eventTypes: The event types wanted (server-sent events); nil for all.
    ///   - lastEventID: The id of the last event of an earlier stream (server-sent events).
    ///   - timeout: The time limit for the peer's acknowledgement; nil for the transport's own limit.
    ///   - waitsForConnection: Whether the stream begins at once without a connection; nil for the transport's default.
    /// - Returns: The command.
    public static func subscribe(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: SubscribeOptions.RetainHandling = .send,
        shareName: String? = nil,
        subscriptionIdentifier: SubscriptionIdentifier = .automatic,
        ackMode: AckMode? = nil,
        buffering: BufferPolicy? = nil,
        acknowledgement: AcknowledgementMode = .whenTaken,
        asksForReceipt: Bool? = nil,
        method: String? = nil,
        eventTypes: Set<String>? = nil,
        lastEventID: String? = nil,
        timeout: Duration? = nil,
        waitsForConnection: Bool? = nil
    ) -> EntryCommand {
        .subscribe(
            SubscribeOptions(
                qos: qos,
                noLocal: noLocal,
                retainAsPublished: retainAsPublished,
                retainHandling: retainHandling,
                shareName: shareName,
                subscriptionIdentifier: subscriptionIdentifier,
                ackMode: ackMode,
                buffering: buffering,
                acknowledgement: acknowledgement,
                asksForReceipt: asksForReceipt,
                method: method,
                eventTypes: eventTypes,
                lastEventID: lastEventID,
                timeout: timeout,
                waitsForConnection: waitsForConnection
            )
        )
    }

    /// Ends every subscription to the topic.
    public static var unsubscribe: EntryCommand { .unsubscribe(UnsubscribeOptions()) }

    /// Ends every subscription to the topic, with options; see ``UnsubscribeOptions``.
    ///
    /// - Parameter shareName: The name of the group that the subscription is shared with (MQTT 5).
    /// - Returns: The command.
    public static func unsubscribe(
        shareName: String?
    ) -> EntryCommand {
        .unsubscribe(UnsubscribeOptions(shareName: shareName))
    }

    /// Acknowledges a message of a subscription with manual acknowledgement.
    ///
    /// Where several listeners have the message, the answer with the highest reason code is sent, with its reason string,
    /// after the last of them has answered (MQTT 5).
    ///
    /// - Parameters:
    ///   - id: The identifier of the message.
    ///   - transaction: The transaction to which the acknowledgement belongs (STOMP).
    ///   - reason: A reason string (MQTT 5).
    ///   - awaitsCompletion: Whether the request completes only when the exchange of a QoS 2 message is over (MQTT).
    /// - Returns: The command.
    public static func ack(
        _ id: Message.ID,
        transaction: String? = nil,
        reason: String? = nil,
        awaitsCompletion: Bool = false
    ) -> EntryCommand {
        .ack(
            id,
            AcknowledgementOptions(
                transaction: transaction,
                reason: reason,
                awaitsCompletion: awaitsCompletion
            )
        )
    }

    /// Refuses a message of a subscription with manual acknowledgement.
    ///
    /// Where several listeners have the message, the answer with the highest reason code is sent, with its reason string,
    /// after the last of them has answered (MQTT 5).
    ///
    /// - Parameters:
    ///   - id: The identifier of the message.
    ///   - transaction: The transaction to which the refusal belongs (STOMP).
    ///   - reasonCode: The reason code (MQTT 5); nil for `.unspecifiedError`.
    ///   - reason: A reason string (MQTT 5).
    ///   - awaitsCompletion: Whether the request completes only when the exchange of a QoS 2 message is over (MQTT); a
    ///     refusal ends it.
    /// - Returns: The command.
    public static func nack(
        _ id: Message.ID,
        transaction: String? = nil,
        reasonCode: MQTTReason.Code? = nil,
        reason: String? = nil,
        awaitsCompletion: Bool = false
    ) -> EntryCommand {
        .nack(
            id,
            AcknowledgementOptions(
                transaction: transaction,
                reasonCode: reasonCode,
                reason: reason,
                awaitsCompletion: awaitsCompletion
            )
        )
    }

    /// Closes the connection with the transport's own settings.
    public static var disconnect: EntryCommand { .disconnect(DisconnectOptions()) }

    /// Closes the connection with options; see ``DisconnectOptions``.
    ///
    /// - Parameters:
    ///   - timeout: The time limit for closing; after it the stream is closed by force.
    ///   - drainTimeout: The time that pending sends of QoS 1 and 2 may take before the close (MQTT).
    ///   - publishesWill: Whether the server publishes the will although the close is orderly (MQTT 5).
    ///   - reasonCode: A reason code that a client may send (MQTT 5).
    ///   - reason: A reason string (MQTT 5).
    ///   - sessionExpiry: The time that the server keeps the session (MQTT 5), in whole seconds.
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

    /// Whether the command requires a topic.
    var needsTopic: Bool {
        switch self {
        case .send, .subscribe, .unsubscribe: true
        default: false
        }
    }
}
