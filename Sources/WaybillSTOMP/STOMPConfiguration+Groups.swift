extension STOMPConfiguration {
    /// The intervals of heart-beats.
    public struct HeartBeat: Hashable, Sendable {
        /// The interval of this side's heart-beats while it sends no frames; 10 seconds by default, zero for none.
        ///
        /// The server may demand a longer interval. If neither side sends heart-beats over a WebSocket, the WebSocket
        /// sends pings instead, as ``STOMPConfiguration/webSocket`` states.
        public var outgoing: Duration
        /// The interval of heart-beats that is requested from the server; 10 seconds by default, zero for none.
        ///
        /// The connection counts as lost after twice the agreed interval without a byte, plus a margin of at most one
        /// second.
        public var incoming: Duration

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            outgoing: Duration = .seconds(10),
            incoming: Duration = .seconds(10)
        ) {
            self.outgoing = outgoing
            self.incoming = incoming
        }
    }

    /// How long the client waits.
    public struct Timeouts: Hashable, Sendable {
        /// The timeout of connecting to one host, from the name lookup to CONNECTED; 10 seconds by default.
        public var connect: Duration
        /// The timeout of a receipt; 15 seconds by default.
        ///
        /// It starts with the call, so that it includes the wait for other requests
        /// (``STOMPConfiguration/Limits/inFlight``).
        public var confirmation: Duration
        /// The timeout of a request with a reply, from the call to the reply; 30 seconds by default.
        public var reply: Duration
        /// The timeout of closing; 5 seconds by default.
        public var close: Duration
        /// The longest silence of the server before the connection counts as lost; nil, the default, for no limit.
        ///
        /// Meant for servers without heart-beats; for other servers ``STOMPConfiguration/HeartBeat/incoming`` has the
        /// same effect. Time in which a slow consumer stops the reading does not count.
        public var silence: Duration?

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            connect: Duration = .seconds(10),
            confirmation: Duration = .seconds(15),
            reply: Duration = .seconds(30),
            close: Duration = .seconds(5),
            silence: Duration? = nil
        ) {
            self.connect = connect
            self.confirmation = confirmation
            self.reply = reply
            self.close = close
            self.silence = silence
        }
    }

    /// How much the client sends, accepts and keeps at a time.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of requests that wait for their receipts at the same time; 200 by default.
        ///
        /// Further requests wait in the order of their calls until receipts arrive. A send that is cancelled during
        /// this wait is not sent. The limit protects connections with heart-beats to RabbitMQ 3.10, which grants 400
        /// messages at a time and resets a connection that sends more. Sends without a receipt do not count, and
        /// overtake waiting requests.
        public var inFlight: Int
        /// The maximum size of a received body, in bytes; 1 MiB by default.
        ///
        /// A longer message is skipped, and the event `dropped` tells of it. In ack mode `client-individual` it is
        /// acknowledged. A longer body of another frame ends the connection.
        public var bodySize: Int
        /// The maximum size of a received header line, in bytes; 64 KiB by default.
        public var headerLineSize: Int
        /// The maximum number of headers in a received frame; 100 by default.
        public var headerCount: Int
        /// The maximum number of bytes that wait in memory for the transport; 64 MiB by default.
        ///
        /// Counts received messages with their topics, headers and properties until they are taken, and sent bytes
        /// that the server has not read. Near the limit, reading stops until messages are taken, also during closing.
        public var memory: Int

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            inFlight: Int = 200,
            bodySize: Int = 1 << 20,
            headerLineSize: Int = 65_536,
            headerCount: Int = 100,
            memory: Int = 64 << 20
        ) {
            self.inFlight = inFlight
            self.bodySize = bodySize
            self.headerLineSize = headerLineSize
            self.headerCount = headerCount
            self.memory = memory
        }
    }
}
