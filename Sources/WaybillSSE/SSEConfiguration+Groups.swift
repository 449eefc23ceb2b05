extension SSEConfiguration {
    /// How long the client waits.
    public struct Timeouts: Hashable, Sendable {
        /// How long connecting to a host may take, from the name to the head of the answer; 10 seconds by default.
        public var connect: Duration
        /// How long the answer to a `send` may take; 30 seconds by default.
        ///
        /// It counts once over all redirects. The time that the send waits for a free connection counts, the time to
        /// make one does not: that has ``connect``.
        public var confirmation: Duration
        /// How long a stream may be silent before it counts as lost; nil, the default, for any time.
        public var silence: Duration?

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            connect: Duration = .seconds(10),
            confirmation: Duration = .seconds(30),
            silence: Duration? = nil
        ) {
            self.connect = connect
            self.confirmation = confirmation
            self.silence = silence
        }
    }

    /// How much the client sends, accepts and keeps at a time.
    public struct Limits: Hashable, Sendable {
        /// How many connections `send` uses to one host at a time; 6 by default, as browsers do.
        ///
        /// Further sends wait for a free one, in the order of their calls. Each event stream has a connection of its
        /// own, which does not count here, so that streams never keep sends waiting. Hosts that stand in for one
        /// another (``SSEConfiguration/failover``) count as one.
        public var connectionsPerHost: Int
        /// How many redirects are followed for one request; 5 by default.
        public var redirects: Int
        /// The most data of an event, in bytes; 1 MiB by default.
        ///
        /// A longer event is skipped, and the event `dropped` tells of it; its id counts as received.
        public var eventSize: Int
        /// The longest line of a stream, in bytes; nil, the default, for as much as ``eventSize`` allows in one line.
        ///
        /// An event with a longer line of data is skipped. A longer line of another field ends the subscription.
        public var lineSize: Int?
        /// The longest body of a reply to a `send`, in bytes, after its decoding; 1 MiB by default.
        ///
        /// A longer one is `limitExceeded`. Of a refusal (a status other than 2xx) the first 64 KiB are kept.
        public var replySize: Int
        /// How many bytes may wait in memory for each stream; 64 MiB by default.
        ///
        /// Counts messages with their topics, headers and properties until they are taken, and what the server does not
        /// read. Near the limit reading stops until messages are taken, also while the connection is being closed.
        public var memory: Int

        /// Makes a group; each parameter has the meaning of the property of the same name.
        public init(
            connectionsPerHost: Int = 6,
            redirects: Int = 5,
            eventSize: Int = 1 << 20,
            lineSize: Int? = nil,
            replySize: Int = 1 << 20,
            memory: Int = 64 << 20
        ) {
            self.connectionsPerHost = connectionsPerHost
            self.redirects = redirects
            self.eventSize = eventSize
            self.lineSize = lineSize
            self.replySize = replySize
            self.memory = memory
        }
    }
}
