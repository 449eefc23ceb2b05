import WireCore

/// The error of every failed call: what failed, and what the caller can do about it.
///
/// Every asynchronous call of the package throws this error, or `CancellationError` when its task was cancelled, and
/// nothing else. Descriptions name topic and command. They never print bodies, tokens or the values of headers.
public struct WaybillError: Error, Sendable {
    /// The kind of error.
    ///
    /// More codes may be added: a `switch` needs a `default`.
    public struct Code: Hashable, Sendable {
        /// The name of the code.
        public let name: String

        /// There is no connection, and the call does not open one.
        ///
        /// Connect first, then retry.
        public static let notConnected = Code(name: "notConnected")
        /// The connection was lost while the call was pending.
        ///
        /// A retry can help; a send of QoS 0 may have arrived.
        public static let connectionLost = Code(name: "connectionLost")
        /// No connection could be made.
        ///
        /// A retry can help once the network or the server is back.
        public static let connectionRefused = Code(name: "connectionRefused")
        /// No connection could be made, because this process or machine has no file descriptor left.
        ///
        /// A retry can help once other connections were closed; if not, raise the limit (`ulimit -n`).
        public static let outOfDescriptors = Code(name: "outOfDescriptors")
        /// The server does not accept the credentials.
        ///
        /// A retry helps only with other credentials.
        public static let unauthorized = Code(name: "unauthorized")
        /// The server refused this request; `peerReason` is its reason.
        ///
        /// A retry rarely helps.
        public static let rejected = Code(name: "rejected")
        /// The peer did not answer in time.
        ///
        /// A retry can help; a send may have arrived all the same (``WaybillError/mayHaveArrived``).
        public static let timedOut = Code(name: "timedOut")
        /// Messages arrived faster than the consumer took them.
        ///
        /// Subscribe again, and take messages faster.
        public static let slowConsumer = Code(name: "slowConsumer")
        /// The transport or the server does not support the request.
        ///
        /// A retry cannot help.
        public static let unsupported = Code(name: "unsupported")
        /// The entry is invalid and cannot be sent.
        ///
        /// Correct the entry; a retry cannot help.
        public static let invalidEntry = Code(name: "invalidEntry")
        /// The body could not be encoded.
        ///
        /// Correct the body or the encoder; a retry cannot help.
        public static let encodingFailed = Code(name: "encodingFailed")
        /// A message could not be decoded to the type that the caller asked for.
        ///
        /// Other messages may decode.
        public static let decodingFailed = Code(name: "decodingFailed")
        /// The peer violated the protocol, and the connection was closed.
        ///
        /// A retry can help.
        public static let protocolViolation = Code(name: "protocolViolation")
        /// A value exceeds a limit of this side or of the peer.
        ///
        /// A retry cannot help.
        public static let limitExceeded = Code(name: "limitExceeded")
        /// An interceptor failed; `underlying` is its error.
        public static let interceptorFailed = Code(name: "interceptorFailed")
        /// No secure connection could be made.
        ///
        /// A retry helps where the handshake was cut off, and where another machine answered in the server's place,
        /// such as the sign-in page of a network (``TLSFailure/Reason/isRetryable``).
        public static let tls = Code(name: "tls")
        /// The task was cancelled after the request was handed over: the request may have arrived.
        ///
        /// Only the results of a bulk send use this code; other calls throw `CancellationError`.
        public static let cancelled = Code(name: "cancelled")
        /// The transport was shut down.
        ///
        /// Make a new transport.
        public static let shutDown = Code(name: "shutDown")

        /// The codes of errors after which the same request can succeed unchanged.
        public static let retryable: Set<Code> = [
            .notConnected, .connectionLost, .connectionRefused, .outOfDescriptors, .timedOut,
            .protocolViolation,
        ]
    }

    /// The code of the error.
    public var code: Code
    /// The failure, in a sentence for developers.
    public var message: String
    /// The topic of the request or message, if there is one.
    public var topic: String?
    /// The command of the request, if there is one.
    public var command: String?
    /// The number of the attempt that failed, from 1.
    public var attempt: Int
    /// The peer's reason code, status or text, unchanged; ``description`` shows it escaped.
    public var peerReason: String?
    /// The error that caused this one.
    public var underlying: (any Error)?
    /// The unsupported option of the request; nil for other errors, and where the command itself is unsupported.
    public var option: OptionName?
    /// The highest supported quality of service, where the requested one is not supported.
    package var supportedQoS: QoS?
    /// Whether only this server does not support the option; another server may.
    package var isLimitOfServer = false
    /// True if the peer was reported as busy; `underlying` may report it, too.
    private var isToldBusy = false
    /// Whether a token source failed for a temporary reason.
    package var mayPass = false
    /// Whether the peer has broken the protocol in the same way again and again, so that another attempt cannot help.
    package var isRepeated = false
    /// A way to refuse credentials without an answer to the greeting.
    package enum WordlessRefusal: Sendable {
        /// A close before the greeting was answered, which may also have other reasons.
        case silence
        /// The end of an accepted connection.
        case dismissal
    }

    /// How the server may have refused the credentials of the connection; nil for other errors.
    package var wordlessRefusal: WordlessRefusal?
    /// Whether interceptors have already decided against another attempt.
    package var isDecided = false
    /// Whether the request may have arrived, if the transport knows it better than the code tells.
    private var statedArrival: Bool?
    /// The decoded error body of the service; see ``serviceError``.
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

    /// Whether the same request can succeed later unchanged.
    public var isRetryable: Bool {
        Code.retryable.contains(code) && !isRepeated || isServerBusy
            || code == .tls && (underlying as? TLSFailure)?.reason.isRetryable == true
    }

    /// Whether the server is overloaded or throttles this client, and asks for a pause.
    ///
    /// In MQTT 5 these are Server busy, Quota exceeded, Use another server, Server moved and Connection rate exceeded
    /// (0x89, 0x97, 0x9C, 0x9D, 0x9F). In HTTP it is 429 Too Many Requests (RFC 6585, 4). ``serverDelay`` is the length
    /// of the pause, if the server gave one.
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

    /// Whether the peer may have carried out the request in spite of the error, or may still do so.
    ///
    /// False promises that a message does not arrive, neither in this process nor in the next one with its store. True
    /// leaves that open. A message in a session that the server keeps is sent again after `timedOut`, because MQTT
    /// demands it (MQTT 5, 4.4).
    ///
    /// A transport may set it. Otherwise it follows from the code: true for `connectionLost`, `timedOut`,
    /// `protocolViolation` and `cancelled`, and for an HTTP status where the server may have acted before it.
    public var mayHaveArrived: Bool {
        get {
            if let statedArrival { return statedArrival }
            if let refusal = underlying as? HTTPRefusal { return refusal.mayHaveBeenCarriedOut }
            return [.connectionLost, .timedOut, .protocolViolation, .cancelled].contains(code)
        }
        set { statedArrival = newValue }
    }

    /// The same error, which says whether the request may have arrived.
    package func arriving(_ mayHaveArrived: Bool) -> WaybillError {
        var error = self
        error.mayHaveArrived = mayHaveArrived
        return error
    }
}

extension WaybillError: CustomStringConvertible {
    /// Code and message, with topic, command, attempt and the peer's reason where known.
    public var description: String {
        var text = "\(code.name): \(message.escaped)"
        if let peerReason { text += " (the peer said: \(peerReason.excerpt))" }
        if let command { text += ", command \(command)" }
        if let topic { text += ", topic \(topic.withoutQuery.excerpt)" }
        if attempt > 1 { text += ", attempt \(attempt)" }
        return text
    }
}
