public import Waybill

extension MQTTConfiguration {
    /// The session: what outlives a connection, at the server and here.
    public struct Session: Sendable {
        /// Whether the server discards an earlier session; true by default.
        public var cleanStart: Bool
        /// How long the server keeps the session after the connection (MQTT 5); nil ends the session with the
        /// connection.
        public var expiry: Duration?
        /// The store that keeps sends of QoS 1 and 2 until they are acknowledged, beyond the end of the process.
        ///
        /// Nil, the default, stores nothing. A store that hangs makes no send hang: see ``SessionStore/add(_:)``. The
        /// messages whose sends it has let time out count until it answers. Above the limits of
        /// ``MQTTConfiguration/offline``, and not less than 8,192 messages and 8 MiB, further sends fail with
        /// `limitExceeded`.
        public var store: (any SessionStore)?
        /// How long messages without a listener are kept for a later one, where the server keeps the session.
        ///
        /// ``LateDeliveryPolicy/off`` drops them.
        public var lateDelivery: LateDeliveryPolicy

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            cleanStart: Bool = true,
            expiry: Duration? = nil,
            store: (any SessionStore)? = nil,
            lateDelivery: LateDeliveryPolicy = LateDeliveryPolicy()
        ) {
            self.cleanStart = cleanStart
            self.expiry = expiry
            self.store = store
            self.lateDelivery = lateDelivery
        }
    }

    /// The pings of the client.
    public struct KeepAlive: Sendable {
        /// The longest time without a packet of the client, which then sends PINGREQ; whole seconds up to 65,535.
        ///
        /// 60 seconds by default; zero turns it off. A server's own value overrides it (MQTT 5). If it is off over a
        /// WebSocket, the WebSocket sends pings instead, as ``MQTTConfiguration/webSocket`` states.
        public var interval: Duration
        /// Whether the interval of pings is learned, within ``interval``; nil, the default, pings as that states.
        public var adaptive: AdaptiveKeepAlive?

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(interval: Duration = .seconds(60), adaptive: AdaptiveKeepAlive? = nil) {
            self.interval = interval
            self.adaptive = adaptive
        }
    }

    /// How long the client waits.
    public struct Timeouts: Hashable, Sendable {
        /// The timeout of connecting to one host, from the name lookup to CONNACK; 10 seconds by default.
        public var connect: Duration
        /// The timeout of any other acknowledgement, and before it of the answer of the
        /// ``MQTTConfiguration/Session/store``; 30 seconds by default.
        public var confirmation: Duration
        /// The timeout of a request with a reply, from the call to the reply; 30 seconds by default.
        public var reply: Duration
        /// The timeout of closing, and of emptying the ``MQTTConfiguration/Session/store`` in `destroy()`; 5 seconds
        /// by default.
        public var close: Duration
        /// How long `disconnect` waits for the acknowledgements of QoS 1 and 2 before it closes; 5 seconds by default.
        public var drain: Duration
        /// The longest silence of the server before the connection counts as lost; nil, the default, for no limit.
        ///
        /// Set it longer than ``MQTTConfiguration/KeepAlive/interval`` plus a round trip, so that an idle server is
        /// heard through its answers to pings. Time in which a slow consumer stops the reading does not count.
        public var silence: Duration?

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            connect: Duration = .seconds(10),
            confirmation: Duration = .seconds(30),
            reply: Duration = .seconds(30),
            close: Duration = .seconds(5),
            drain: Duration = .seconds(5),
            silence: Duration? = nil
        ) {
            self.connect = connect
            self.confirmation = confirmation
            self.reply = reply
            self.close = close
            self.drain = drain
            self.silence = silence
        }
    }

    /// How much the client sends, accepts and keeps at a time.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of unacknowledged messages of QoS 1 and 2 to the server; 20 by default, 1 to 65,535.
        ///
        /// A server's Receive Maximum lowers it.
        public var inFlight: Int
        /// The maximum number of unacknowledged messages of QoS 1 and 2 from the server; 1,024 by default.
        ///
        /// Only MQTT 5 servers get the value. Nil leaves it out of CONNECT, which means 65,535. Some servers send more
        /// to a slow app (Mosquitto 2.0.11 does). The client does not close such a connection: it accepts up to 65,535
        /// waiting messages.
        public var receiveMaximum: UInt16?
        /// The maximum number of filters in a SUBSCRIBE or UNSUBSCRIBE, from 1; nil by default.
        ///
        /// With nil, each call is a packet of its own, with up to 100 filters, and a reconnection sends the packets of
        /// the calls again, at most eight of them unconfirmed. With a number, a reconnection also combines calls: with
        /// hundreds of subscriptions that saves many round trips. Some servers close the connection on more filters
        /// than their quota (AWS IoT Core: 8).
        public var filtersPerPacket: Int?
        /// The maximum size of a received packet, in bytes; 1 MiB by default.
        ///
        /// A longer message is skipped and acknowledged, in MQTT 5 with the reason Quota exceeded, and the event
        /// `dropped` tells of it. Any other longer packet ends the connection. MQTT 5 servers are told the size, unless
        /// ``announcesPacketSize`` is false, and do not send a longer packet.
        public var packetSize: Int
        /// The maximum number of bytes that wait in memory for the transport; 64 MiB by default.
        ///
        /// Counts received messages with their topics, headers and properties until they are taken, and sent bytes that
        /// the server has not read. Near the limit, reading stops until messages are taken, also during closing.
        public var memory: Int
        // Declared last, so that the group has no gap.
        /// Whether CONNECT has the property Maximum Packet Size (MQTT 5, 3.1.2.11.4); true by default.
        ///
        /// False leaves it out. ``packetSize`` still holds.
        public var announcesPacketSize: Bool

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            inFlight: Int = 20,
            receiveMaximum: UInt16? = 1_024,
            filtersPerPacket: Int? = nil,
            packetSize: Int = 1 << 20,
            announcesPacketSize: Bool = true,
            memory: Int = 64 << 20
        ) {
            self.inFlight = inFlight
            self.receiveMaximum = receiveMaximum
            self.filtersPerPacket = filtersPerPacket
            self.packetSize = packetSize
            self.announcesPacketSize = announcesPacketSize
            self.memory = memory
        }
    }

    /// The short forms of topics (MQTT 5, 3.3.2.3.4).
    public struct TopicAliases: Hashable, Sendable {
        /// The number of topics that the server may replace by aliases (MQTT 5); 16 by default, 0 for none, which
        /// leaves it out of CONNECT.
        ///
        /// The client keeps the topics of a connection's aliases, at most 1 MiB of them. Sixteen topics never exceed
        /// that. A server that exceeds it loses its connection.
        public var accepted: UInt16
        /// Whether sends replace topics by aliases, as far as the server allows it (MQTT 5); true by default.
        ///
        /// An alias takes 3 bytes. The topics that save most get the aliases, at most 1,024 of them.
        public var isUsed: Bool

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(accepted: UInt16 = 16, isUsed: Bool = true) {
            self.accepted = accepted
            self.isUsed = isUsed
        }
    }

    /// The replies to requests (MQTT 5, 4.10).
    public struct Replies: Hashable, Sendable {
        /// The prefix of the response topic, to which replies are sent (MQTT 5); `waybill/reply` by default.
        ///
        /// The client identifier follows. A random part follows, too, unless the server keeps the session and
        /// ``MQTTConfiguration/clientIdentifier`` is set. If replies are private, the server must not let other clients
        /// subscribe to it.
        public var topicPrefix: String
        /// Whether the client asks the server for the prefix of the response topic (MQTT 5, 4.10.1).
        ///
        /// False by default, which leaves the property out of CONNECT. A server may ignore the question.
        public var requestsResponseInformation: Bool
        /// Whether a request of QoS 1 fails at once with `rejected` when its PUBACK says that the topic has no
        /// subscriber (MQTT 5, 3.4.2.1: No matching subscribers).
        ///
        /// False by default: a subscriber whose session the server keeps, or one of another server of a cluster, may
        /// not count there.
        public var failsWithoutSubscribers: Bool

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            topicPrefix: String = "waybill/reply",
            requestsResponseInformation: Bool = false,
            failsWithoutSubscribers: Bool = false
        ) {
            self.topicPrefix = topicPrefix
            self.requestsResponseInformation = requestsResponseInformation
            self.failsWithoutSubscribers = failsWithoutSubscribers
        }
    }
}
