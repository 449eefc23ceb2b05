package import MQTTWire
public import Waybill
import WireCore

/// The faults of a ``LoopbackBroker``.
///
/// Each fault lasts until the test removes it, except those with a number.
public struct LoopbackFaults: Sendable {
    /// The reason for refusing a connection.
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

        /// The message of an ERROR frame.
        var message: String {
            switch self {
            case .serverUnavailable: "Server unavailable"
            case .badUserNameOrPassword, .notAuthorized: "Access refused"
            case .clientIdentifierNotValid: "Client identifier not valid"
            }
        }
    }

    /// A kind of request of a STOMP client.
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

    /// The reason for refusing a message (MQTT 5, 3.4.2.1).
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

    /// An HTTP response that replaces the broker's own.
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

    /// Refuses new connections with this reason; over HTTP it refuses every request, with a status.
    public var refusesConnections: Refusal?
    /// Refuses WebSocket upgrades with this status and a body.
    public var refusesUpgrades: Int?
    /// Refuses subscriptions to these filters and destinations.
    public var refusesSubscriptions: Set<String> = []

    /// Whether a subscription to a topic is refused.
    func refusesSubscription(_ topic: String) -> Bool {
        refusesSubscriptions.contains(where: topic.hasSameBytes(as:))
    }
    /// Ends the connection without an answer at a message to one of these topics, and at a subscription to one.
    ///
    /// STOMP: only at a subscription, with an ERROR that names no receipt. Event streams have no such fault.
    public var endsConnectionsAt: Set<String> = []
    /// Ends the connection without an answer at a SUBSCRIBE or UNSUBSCRIBE with more filters; nil for no limit (MQTT).
    public var maximumFiltersPerPacket: Int?

    var poison: Set<WireName> { Set(endsConnectionsAt.map(WireName.init)) }

    /// Whether the connection ends at a packet with these filters.
    func endsConnection(at filters: [String]) -> Bool {
        filters.count > maximumFiltersPerPacket ?? .max
            || filters.contains { poison.contains($0) }
    }

    /// Ends each MQTT session with its connection, also if the client requested a longer one.
    public var losesSessions = false
    /// The number of next requests of a kind that are answered with ERROR, after which the broker closes (STOMP).
    ///
    /// `.max` means all requests.
    public var answersWithError: [Request: Int] = [:]
    /// The responses to the next requests, in order (HTTP).
    public var answers: [Answer] = []
    /// Does not send events (event streams).
    ///
    /// They are stored, and follow with the first event after the fault is removed.
    public var withholdsEvents = false
    /// The number of events after which each event stream is cut; nil cuts none.
    public var dropsStreamsAfter: Int?
    /// Carries out requests without a RECEIPT (STOMP) or without a response (HTTP POST).
    public var withholdsReceipts = false
    /// Accepts messages of QoS 1 and 2 without PUBACK or PUBREC (MQTT).
    ///
    /// The withheld acknowledgements follow with the first one after the fault is removed.
    public var withholdsAcknowledgements = false
    /// Carries out SUBSCRIBE and UNSUBSCRIBE without an acknowledgement (MQTT).
    public var withholdsSubscriptionAnswers = false
    /// Refuses messages of QoS 1 and 2 with this reason, and delivers none of them (MQTT 5).
    public var refusesMessages: MessageRefusal?
    /// The delay before bytes of clients are read, for connections that are made from now on.
    public var delay = Duration.zero
    /// The maximum number of bytes of one write, for connections that are made from now on; nil for no limit.
    public var splitsWrites: Int?

    /// Makes the state without faults.
    public init() {}

    /// The reason code for messages of QoS 1 and 2; nil while acknowledgements are withheld.
    var publishAnswer: MQTTReasonCode? {
        withholdsAcknowledgements ? nil : refusesMessages?.reasonCode ?? .success
    }

    var affectsBytes: Bool { delay > .zero || splitsWrites != nil }

    /// Takes the response for the next request; nil if there is none.
    mutating func takeAnswer() -> Answer? {
        answers.isEmpty ? nil : answers.removeFirst()
    }

    /// Whether the next request of a kind is answered with ERROR; counts it as answered.
    mutating func takeError(for request: Request) -> Bool {
        guard let count = answersWithError[request], count > 0 else { return false }
        if count < .max { answersWithError[request] = count - 1 }
        return true
    }
}
