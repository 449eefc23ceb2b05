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
public struct StoredMessage: Hashable, Sendable, Identifiable {
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
    /// The quality of service: 1 or 2.
    public var qos: Int
    /// The time after which the message is not sent any more; nil for never.
    public var expiry: Date?
    /// The options whose keys are made to be stored (``OptionKey/init(stored:canBeOmitted:)``), in the order of the bytes
    /// of their names.
    ///
    /// Of two with the same name the last one counts. An option that a later program does not know stays here; the
    /// message is then not sent.
    public var options: [StoredOption] {
        get { storedOptions.options }
        set { storedOptions = StoredOptions(newValue) }
    }
    /// The options as a store keeps them.
    package var storedOptions: StoredOptions
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
        expiry: Date? = nil,
        options: [StoredOption] = [],
        needsToken: Bool = true
    ) {
        id = 0
        self.topic = topic
        self.body = body
        self.contentType = contentType
        self.headers = headers
        self.needsToken = needsToken
        isAdapted = false
        self.qos = qos
        self.expiry = expiry
        storedOptions = StoredOptions(options)
        attempts = 0
        stage = .published
        suspiciousEnds = 0
    }
}

extension StoredMessage: Codable {
    private enum CodingKeys: String, CodingKey {
        case id, topic, body, contentType, headers, qos, expiry, options, needsToken, isAdapted
        case attempts, stage, suspiciousEnds
        // What a message had before it had a list of options.
        case isRetained, responseTopic, correlationData, isText
    }

    /// Decodes a message, also one that was encoded before it had its newer properties.
    ///
    /// These are the options, the expiry, the attempts, the stage, the suspicious ends and `needsToken`. A message without
    /// `isAdapted` was adapted.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        id = try values.decode(UInt64.self, forKey: .id)
        topic = try values.decode(String.self, forKey: .topic)
        body = try values.decode([UInt8].self, forKey: .body)
        contentType = try values.decodeIfPresent(String.self, forKey: .contentType)
        headers = try values.decode([[String]].self, forKey: .headers)
        qos = try values.decode(Int.self, forKey: .qos)
        expiry = try values.decodeIfPresent(Date.self, forKey: .expiry)
        if let options = try values.decodeIfPresent([StoredOption].self, forKey: .options) {
            storedOptions = StoredOptions(options)
        } else {
            storedOptions = StoredOptions(
                isRetained: try values.decode(Bool.self, forKey: .isRetained),
                responseTopic: try values.decodeIfPresent(String.self, forKey: .responseTopic),
                correlationData: try values.decodeIfPresent(
                    [UInt8].self,
                    forKey: .correlationData
                ),
                isText: try values.decodeIfPresent(Bool.self, forKey: .isText)
            )
        }
        attempts = try values.decodeIfPresent(Int.self, forKey: .attempts) ?? 0
        stage = try values.decodeIfPresent(Stage.self, forKey: .stage) ?? .published
        suspiciousEnds = try values.decodeIfPresent(Int.self, forKey: .suspiciousEnds) ?? 0
        needsToken = try values.decodeIfPresent(Bool.self, forKey: .needsToken) ?? true
        isAdapted = try values.decodeIfPresent(Bool.self, forKey: .isAdapted) ?? true
    }

    /// Encodes a message.
    ///
    /// A version of this package that knows no list of options refuses it.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(id, forKey: .id)
        try values.encode(topic, forKey: .topic)
        try values.encode(body, forKey: .body)
        try values.encodeIfPresent(contentType, forKey: .contentType)
        try values.encode(headers, forKey: .headers)
        try values.encode(qos, forKey: .qos)
        try values.encodeIfPresent(expiry, forKey: .expiry)
        try values.encode(options, forKey: .options)
        try values.encode(needsToken, forKey: .needsToken)
        try values.encode(isAdapted, forKey: .isAdapted)
        try values.encode(attempts, forKey: .attempts)
        try values.encode(stage, forKey: .stage)
        try values.encode(suspiciousEnds, forKey: .suspiciousEnds)
    }
}
