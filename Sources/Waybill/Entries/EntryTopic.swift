import WireCore

/// A topic of a subscription, with a quality of service of its own where wanted.
///
/// A text is a topic without one:
///
/// ```swift
/// var topics: [EntryTopic] {
///     switch self {
///     case .news: ["news/#", EntryTopic("alerts/\(region)", qos: .exactlyOnce)]
///     default: topic.map { [EntryTopic($0)] } ?? []
///     }
/// }
/// ```
///
/// Two topics are equal if their bytes are, and what they ask for.
public struct EntryTopic: Hashable, Sendable {
    private var wireName: WireName
    /// The highest quality of service wanted; nil for that of the command.
    ///
    /// An `unsubscribe` does not look at it.
    public var qos: QoS?

    /// Makes a topic.
    ///
    /// - Parameters:
    ///   - name: The MQTT topic filter, STOMP destination, or path of an event stream.
    ///   - qos: The highest quality of service wanted; nil for that of the command.
    public init(_ name: String, qos: QoS? = nil) {
        wireName = WireName(name)
        self.qos = qos
    }

    /// The MQTT topic filter, STOMP destination, or path of an event stream.
    public var name: String {
        get { wireName.text }
        set { wireName = WireName(newValue) }
    }
}

extension EntryTopic: ExpressibleByStringInterpolation {
    /// Makes a topic of a text, without a quality of service of its own.
    public init(stringLiteral name: String) {
        self.init(name)
    }
}

extension EntryTopic: CustomStringConvertible, Unmirrored {
    /// The name without its query, and the quality of service if it has one.
    public var description: String {
        name.withoutQuery.escaped + (qos.map { " (QoS \($0.rawValue))" } ?? "")
    }
}
