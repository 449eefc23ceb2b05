/// The endpoints of a messaging service, one case each.
///
/// Conform an enum and answer each requirement with a `switch`; the compiler then lists what was
/// forgotten. The URL is not the entry's: it belongs to the transport, so one enum serves staging,
/// production and tests.
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
    /// MQTT topic name or filter, STOMP destination, path of an event stream; nil where none applies.
    var topic: String? { get }

    /// The topics of a subscription to several at once; ``topic`` alone by default.
    ///
    /// One call subscribes to all of them, and one sequence brings their messages. MQTT sends one SUBSCRIBE, STOMP one
    /// frame for each destination. When the server refuses one topic, the call fails with that topic and the others are
    /// unsubscribed. Event streams have one topic each: several are `unsupported`.
    var topics: [String] { get }

    /// What is to be done.
    var command: EntryCommand { get }

    /// What goes with it; nothing by default.
    var body: EntryBody { get }

    /// What is said beside it, none by default. These win over what the command or the body set.
    var headers: Headers { get }

    /// Whether a ``TokenInterceptor`` puts its token on it; true by default.
    ///
    /// False for what a server takes from anybody: a sign-in, or the call that gets a token.
    var needsToken: Bool { get }

    /// How this entry is tried again; nil, the default, leaves that to the provider's interceptors.
    ///
    /// The policy is asked before the interceptors. An error that it is meant for is its own: once its attempts are used
    /// up, the request fails and no interceptor is asked.
    var retry: RetryPolicy? { get }

    /// How long the command may take; nil, the default, for the transport's own limit.
    ///
    /// It fills the `timeout` of the command's options where that is nil. Commands without such an option do not use it.
    var timeout: Duration? { get }
}

extension EntryType {
    /// Nothing.
    public var body: EntryBody { .none }

    /// None.
    public var headers: Headers { Headers() }

    /// A token is put on it, where there is an interceptor for that.
    public var needsToken: Bool { true }

    /// The topic, if there is one.
    public var topics: [String] { topic.map { [$0] } ?? [] }

    /// None: the interceptors decide.
    public var retry: RetryPolicy? { nil }

    /// None: the transport's own limit counts.
    public var timeout: Duration? { nil }
}
