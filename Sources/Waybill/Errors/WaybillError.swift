import WireCore

/// What went wrong, and what the caller can do about it.
///
/// Every asynchronous call of the package throws this, or `CancellationError` when its task was
/// cancelled, and nothing else. Descriptions name topic and command and never print bodies, tokens or
/// the values of headers.
public struct WaybillError: Error, Sendable {
    /// The kind of error.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct Code: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// There is no connection, and none was to be made.
        ///
        /// Connect first, then retry.
        public static let notConnected = Code(name: "notConnected")
        /// The connection was lost while the call was under way.
        ///
        /// A retry can help; a send of QoS 0 may have arrived.
        public static let connectionLost = Code(name: "connectionLost")
        /// No connection could be made.
        ///
        /// A retry can help once the network or the server is back.
        public static let connectionRefused = Code(name: "connectionRefused")
        /// No connection could be made, since no file descriptor is left to this process or machine.
        ///
        /// A retry can help once others were closed; if not, raise the limit (`ulimit -n`).
        public static let outOfDescriptors = Code(name: "outOfDescriptors")
        /// The server does not accept the credentials.
        ///
        /// A retry helps only with others.
        public static let unauthorized = Code(name: "unauthorized")
        /// The server refused this request; `peerReason` says why.
        ///
        /// A retry rarely helps.
        public static let rejected = Code(name: "rejected")
        /// The peer did not answer in time.
        ///
        /// A retry can help; a send may have arrived.
        public static let timedOut = Code(name: "timedOut")
        /// Messages came faster than they were taken.
        ///
        /// Subscribe again, and take them faster.
        public static let slowConsumer = Code(name: "slowConsumer")
        /// The transport or the server cannot do this.
        ///
        /// A retry cannot help.
        public static let unsupported = Code(name: "unsupported")
        /// The entry is not one that can be sent.
        ///
        /// Mend it; a retry cannot help.
        public static let invalidEntry = Code(name: "invalidEntry")
        /// The body could not be encoded.
        ///
        /// Mend it; a retry cannot help.
        public static let encodingFailed = Code(name: "encodingFailed")
        /// A message is not of the type asked for.
        ///
        /// Others may be.
        public static let decodingFailed = Code(name: "decodingFailed")
        /// The peer broke the protocol, and the connection was closed.
        ///
        /// A retry can help.
        public static let protocolViolation = Code(name: "protocolViolation")
        /// Something is larger than a limit of this side or of the peer.
        ///
        /// A retry cannot help.
        public static let limitExceeded = Code(name: "limitExceeded")
        /// An interceptor failed; `underlying` is its error.
        public static let interceptorFailed = Code(name: "interceptorFailed")
        /// No secure connection could be made.
        ///
        /// A retry helps where the handshake was cut off, or something else answered in the server's place, as the sign-in
        /// page of a network does (``TLSFailure/Reason/isRetryable``).
        public static let tls = Code(name: "tls")
        /// The task was cancelled after the request had been handed over: it may have arrived.
        ///
        /// In the results of a bulk send alone; other calls throw `CancellationError`.
        public static let cancelled = Code(name: "cancelled")
        /// The transport was shut down.
        ///
        /// Make a new one.
        public static let shutDown = Code(name: "shutDown")

        /// The kinds of errors after which the same request can succeed without being changed.
        public static let retryable: Set<Code> = [
            .notConnected, .connectionLost, .connectionRefused, .outOfDescriptors, .timedOut,
            .protocolViolation,
        ]
    }

    /// The kind of error.
    public var code: Code
    /// What happened, in a sentence for developers.
    public var message: String
    /// The topic of the request or message, where there is one.
    public var topic: String?
    /// The command of the request, where there is one.
    public var command: String?
    /// Which attempt failed, from 1.
    public var attempt: Int
    /// What the peer said: its reason code, status or words, as they came; ``description`` has them escaped.
    public var peerReason: String?
    /// The error behind this one.
    public var underlying: (any Error)?
    /// Which option of the request is not supported; nil of other errors, and where it is the command itself.
    public var unsupportedOption: UnsupportedOption?
    /// The best quality of service that is supported, where a better one is not.
    package var supportedQoS: QoS?
    /// Whether the option is one that this server does not support, and another one may.
    package var isLimitOfServer = false
    /// Whether the peer was said to have too much to do; what `underlying` says of that counts as well.
    private var isToldBusy = false
    /// Whether a token source has failed for a reason that time may mend.
    package var mayPass = false
    /// Whether interceptors have decided already that there is no other attempt.
    package var isDecided = false
    /// What the service said: see ``serviceError``.
    var decodedRefusal: (any Error)?

    /// Describes an error.
    public init(
        _ code: Code,
        _ message: String,
        topic: String? = nil,
        command: String? = nil,
        attempt: Int = 1,
        peerReason: String? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.topic = topic
        self.command = command
        self.attempt = attempt
        self.peerReason = peerReason
        self.underlying = underlying
    }

    /// Whether the same request can succeed later without being changed.
    public var isRetryable: Bool {
        Code.retryable.contains(code) || isServerBusy
            || code == .tls && (underlying as? TLSFailure)?.reason.isRetryable == true
    }

    /// Whether the server has too much to do, or has had enough of this client for now, and asks to be left alone for a
    /// while: Server busy, Quota exceeded, Use another server, Server moved and Connection rate exceeded in MQTT 5 (0x89,
    /// 0x97, 0x9C, 0x9D, 0x9F), 429 (Too Many Requests) in HTTP (RFC 6585, 4).
    ///
    /// ``serverDelay`` is for how long, if it has said so.
    public var isServerBusy: Bool {
        get {
            switch underlying {
            case let refusal as HTTPRefusal: isToldBusy || refusal.status == 429
            case let failure as FailoverFailure:
                isToldBusy
                    || !failure.attempts.isEmpty
                        && failure.attempts.allSatisfy(\.error.isServerBusy)
            default: isToldBusy
            }
        }
        set { isToldBusy = newValue }
    }

    /// Whether the request may have reached the peer, and have been carried out, all the same.
    var mayHaveArrived: Bool {
        if let refusal = underlying as? HTTPRefusal { return refusal.mayHaveBeenCarriedOut }
        return [.connectionLost, .timedOut, .protocolViolation].contains(code)
    }
}

extension WaybillError: CustomStringConvertible {
    /// Code and message, with topic, command, attempt and the peer's reason where they are known.
    public var description: String {
        var text = "\(code.name): \(message.escaped)"
        if let peerReason { text += " (the peer said: \(peerReason.escaped))" }
        if let command { text += ", command \(command)" }
        if let topic { text += ", topic \(topic.withoutQuery.escaped)" }
        if attempt > 1 { text += ", attempt \(attempt)" }
        return text
    }
}
