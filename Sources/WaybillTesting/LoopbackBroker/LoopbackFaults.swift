package import MQTTWire
public import Waybill
import WireCore

/// What goes wrong at a ``LoopbackBroker``, on demand.
public struct LoopbackFaults: Sendable {
    /// Why a connection is refused.
    public enum Refusal: Sendable {
        /// Server unavailable.
        case serverUnavailable
        /// Bad user name or password.
        case badUserNameOrPassword
        /// Not authorized.
        case notAuthorized
        /// Client identifier not valid.
        case clientIdentifierNotValid

        package var reasonCode: MQTTReasonCode {
            switch self {
            case .serverUnavailable: .serverUnavailable
            case .badUserNameOrPassword: .badUserNameOrPassword
            case .notAuthorized: .notAuthorized
            case .clientIdentifierNotValid: .clientIdentifierNotValid
            }
        }

        /// The status of an HTTP response.
        var status: Int {
            switch self {
            case .serverUnavailable: 503
            case .badUserNameOrPassword: 401
            case .notAuthorized: 403
            case .clientIdentifierNotValid: 400
            }
        }

        /// What an ERROR frame says.
        var message: String {
            switch self {
            case .serverUnavailable: "Server unavailable"
            case .badUserNameOrPassword, .notAuthorized: "Access refused"
            case .clientIdentifierNotValid: "Client identifier not valid"
            }
        }
    }

    /// What a STOMP client may ask for.
    public enum Request: Hashable, Sendable {
        /// CONNECT.
        case connect
        /// SEND.
        case send
        /// SUBSCRIBE.
        case subscribe
        /// UNSUBSCRIBE.
        case unsubscribe
        /// ACK and NACK.
        case acknowledge
        /// BEGIN, COMMIT and ABORT.
        case transaction
    }

    /// Why a message is refused (MQTT 5, 3.4.2.1).
    public enum MessageRefusal: Sendable {
        /// Not authorized.
        case notAuthorized
        /// Quota exceeded.
        case quotaExceeded
        /// Payload format invalid.
        case payloadFormatInvalid

        var reasonCode: MQTTReasonCode {
            switch self {
            case .notAuthorized: .notAuthorized
            case .quotaExceeded: .quotaExceeded
            case .payloadFormatInvalid: .payloadFormatInvalid
            }
        }
    }

    /// An HTTP response on demand, instead of what was asked for.
    public struct Answer: Sendable {
        /// The status, such as 302 or 503.
        public var status: Int
        /// Fields such as `Location` or `Retry-After`.
        public var headers: Headers
        /// The body.
        public var body: Payload

        /// Describes a response.
        public init(_ status: Int, headers: Headers = [:], body: Payload = Payload()) {
            self.status = status
            self.headers = headers
            self.body = body
        }
    }

    /// Refuses connections with this reason; over HTTP every request, with a status.
    public var refusesConnections: Refusal?
    /// Refuses to switch to WebSocket, with this status and a body.
    public var refusesUpgrades: Int?
    /// Refuses subscriptions to these filters and destinations.
    public var refusesSubscriptions: Set<String> = []

    /// Whether a subscription to a topic is refused.
    func refusesSubscription(_ topic: String) -> Bool {
        refusesSubscriptions.contains(where: topic.hasSameBytes(as:))
    }
    /// Ends each MQTT session with its connection, whatever the client has asked for.
    public var losesSessions = false
    /// Answers so many of the next requests of a kind with ERROR (STOMP), after which it closes; `.max`
    /// for ever.
    public var answersWithError: [Request: Int] = [:]
    /// Answers the next requests with these, the first one first (HTTP).
    public var answers: [Answer] = []
    /// Keeps events back from the streams: they are remembered, and follow when the next one does after the
    /// fault is gone (event streams).
    public var withholdsEvents = false
    /// Cuts each event stream after so many events; nil cuts none.
    public var dropsStreamsAfter: Int?
    /// Does what is asked and answers no request with a receipt (STOMP), or at all (HTTP POST).
    public var withholdsReceipts = false
    /// Takes messages of QoS 1 and 2 and acknowledges none with PUBACK or PUBREC (MQTT).
    ///
    /// What is withheld follows with the next acknowledgement after the fault is gone.
    public var withholdsAcknowledgements = false
    /// Does what SUBSCRIBE and UNSUBSCRIBE ask for and answers neither (MQTT).
    public var withholdsSubscriptionAnswers = false
    /// Refuses messages of QoS 1 and 2 with this reason, and passes on none (MQTT 5).
    public var refusesMessages: MessageRefusal?
    /// Lets what clients send wait so long before it is read; for connections made from now on.
    public var delay = Duration.zero
    /// Writes at most so many bytes at once; for connections made from now on.
    ///
    /// Nil writes all.
    public var splitsWrites: Int?

    /// Nothing goes wrong.
    public init() {}

    /// How messages of QoS 1 and 2 are acknowledged; nil for not yet.
    var publishAnswer: MQTTReasonCode? {
        withholdsAcknowledgements ? nil : refusesMessages?.reasonCode ?? .success
    }

    var affectsBytes: Bool { delay > .zero || splitsWrites != nil }

    /// The response on demand for the next request, if there is one; it counts as given.
    mutating func takeAnswer() -> Answer? {
        answers.isEmpty ? nil : answers.removeFirst()
    }

    /// Whether the next request of a kind is answered with ERROR; it counts as answered.
    mutating func takeError(for request: Request) -> Bool {
        guard let count = answersWithError[request], count > 0 else { return false }
        if count < .max { answersWithError[request] = count - 1 }
        return true
    }
}
