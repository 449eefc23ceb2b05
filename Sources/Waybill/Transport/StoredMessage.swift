#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A send that a transport has accepted and the peer has not acknowledged.
///
/// It is the request of the entry before the interceptors, so that a token that one of them adds does not lie in the
/// store. They run again when a later process sends the message. A time limit is not stored, because no caller waits any
/// more.
public struct StoredMessage: Hashable, Codable, Sendable, Identifiable {
    /// The stage of the exchange between client and server.
    public enum Stage: Int, Hashable, Codable, Sendable {
        /// The message may have been sent; the server has not confirmed that it has it.
        case published = 1
        /// The server has the message (PUBREC of QoS 2), and waits to be told that it can forget the identifier.
        case released = 2
    }

    /// The number of the message; the store assigns numbers in the order of the calls.
    public var id: UInt64
    /// The topic.
    public var topic: String
    /// The body.
    public var body: [UInt8]
    /// The content type of the body.
    public var contentType: String?
    /// The headers, as pairs of name and value.
    public var headers: [[String]]
    /// The topic to which the receiver sends its reply.
    public var responseTopic: String?
    /// Data that a reply carries back.
    public var correlationData: [UInt8]?
    /// Whether the body is declared as text; nil declares nothing.
    public var isText: Bool?
    /// The quality of service: 1 or 2.
    public var qos: Int
    /// Whether the server keeps the message for later subscribers.
    public var isRetained: Bool
    /// The time after which the message is not sent any more; nil for never.
    public var expiry: Date?
    /// Whether a ``TokenInterceptor`` adds its token.
    public var needsToken: Bool
    /// Whether interceptors have adapted the message before it was stored: it is sent as it is.
    ///
    /// True for messages that a version of this package stored which kept them after the interceptors.
    public var isAdapted: Bool
    /// The number of transports that have taken the message from the store to send it again.
    public var attempts: Int
    /// The stage of the exchange.
    public var stage: Stage
    /// The number of connections in a row that the server has ended after this message.
    public var suspiciousEnds: Int

    /// Makes a message that no interceptor has adapted.
    ///
    /// The store sets its number, its attempts, its stage and its suspicious ends.
    public init(
        topic: String,
        body: [UInt8],
        contentType: String? = nil,
        headers: [[String]] = [],
        qos: Int,
        isRetained: Bool = false,
        expiry: Date? = nil,
        responseTopic: String? = nil,
        correlationData: [UInt8]? = nil,
        isText: Bool? = nil,
        needsToken: Bool = true
    ) {
        id = 0
        self.topic = topic
        self.body = body
        self.contentType = contentType
        self.headers = headers
        self.responseTopic = responseTopic
        self.correlationData = correlationData
        self.isText = isText
        self.needsToken = needsToken
        isAdapted = false
        self.qos = qos
        self.isRetained = isRetained
        self.expiry = expiry
        attempts = 0
        stage = .published
        suspiciousEnds = 0
    }

    /// Decodes a message, also one that was encoded before it had its newer properties.
    ///
    /// These are the expiry, the attempts, the stage, the response topic, the correlation data, `isText`, the suspicious
    /// ends and `needsToken`. A message without `isAdapted` was adapted.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        id = try values.decode(UInt64.self, forKey: .id)
        topic = try values.decode(String.self, forKey: .topic)
        body = try values.decode([UInt8].self, forKey: .body)
        contentType = try values.decodeIfPresent(String.self, forKey: .contentType)
        headers = try values.decode([[String]].self, forKey: .headers)
        responseTopic = try values.decodeIfPresent(String.self, forKey: .responseTopic)
        correlationData = try values.decodeIfPresent([UInt8].self, forKey: .correlationData)
        isText = try values.decodeIfPresent(Bool.self, forKey: .isText)
        qos = try values.decode(Int.self, forKey: .qos)
        isRetained = try values.decode(Bool.self, forKey: .isRetained)
        expiry = try values.decodeIfPresent(Date.self, forKey: .expiry)
        attempts = try values.decodeIfPresent(Int.self, forKey: .attempts) ?? 0
        stage = try values.decodeIfPresent(Stage.self, forKey: .stage) ?? .published
        suspiciousEnds = try values.decodeIfPresent(Int.self, forKey: .suspiciousEnds) ?? 0
        needsToken = try values.decodeIfPresent(Bool.self, forKey: .needsToken) ?? true
        isAdapted = try values.decodeIfPresent(Bool.self, forKey: .isAdapted) ?? true
    }
}
