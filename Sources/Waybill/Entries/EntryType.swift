/// The endpoints of a messaging service, one case each.
///
/// Conform an enum and answer each requirement with a `switch`; the compiler then reports missing cases. The URL
/// belongs to the transport and not to the entry, so one enum serves staging, production and tests.
///
/// ```swift
/// enum ChatEntry: EntryType {
///     case connect
///     case join(room: String)
///     case say(ChatMessage, room: String)
///
///     var topic: String? {
///         switch self {
///         case .connect: nil
///         case .join(let room), .say(_, let room): "chat/\(room)"
///         }
///     }
///
///     var command: EntryCommand {
///         switch self {
///         case .connect: .connect
///         case .join: .subscribe(qos: .atLeastOnce)
///         case .say: .send(qos: .atLeastOnce)
///         }
///     }
///
///     var body: EntryBody {
///         switch self {
///         case .connect, .join: .none
///         case .say(let message, _): .json(message)
///         }
///     }
/// }
/// ```
public protocol EntryType: Sendable {
    /// The MQTT topic name or filter, STOMP destination, or path of an event stream; nil for commands without a topic.
    var topic: String? { get }

    /// The topics of a subscription to several topics, or of the end of several; only ``topic`` by default.
    ///
    /// One call subscribes to all of them, and one sequence delivers their messages. MQTT sends one SUBSCRIBE, STOMP
    /// one frame for each destination. When the server refuses one topic, the call fails with that topic and the others
    /// are unsubscribed. An `unsubscribe` ends the subscriptions to all of them. An event stream has one topic: several
    /// are `unsupported`. Each topic may have a quality of service of its own: see ``EntryTopic``.
    var topics: [EntryTopic] { get }

    /// The command to carry out.
    var command: EntryCommand { get }

    /// The body to send; none by default.
    var body: EntryBody { get }

    /// The headers to send; none by default. They replace headers that the command or the body sets.
    var headers: Headers { get }

    /// Whether a ``TokenInterceptor`` adds its token; true by default.
    ///
    /// Return false for calls that need no token, such as a sign-in or the call that fetches a token.
    var needsToken: Bool { get }

    /// The retry policy of this entry; nil, the default, leaves retries to the provider's interceptors.
    ///
    /// The policy is asked before the interceptors. Once its attempts are used up for an error that it covers, the
    /// request fails without asking the interceptors.
    var retry: RetryPolicy? { get }
}

extension EntryType {
    /// No body.
    public var body: EntryBody { .none }

    /// No headers.
    public var headers: Headers { Headers() }

    /// The token is added.
    public var needsToken: Bool { true }

    /// The topic alone, or none.
    public var topics: [EntryTopic] { topic.map { [EntryTopic($0)] } ?? [] }

    /// Nil: the interceptors decide.
    public var retry: RetryPolicy? { nil }
}
