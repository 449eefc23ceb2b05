package import MQTTWire

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
    }

    /// Refuses connections with this reason.
    public var refusesConnections: Refusal?
    /// Refuses subscriptions to these filters.
    public var refusesSubscriptions: Set<String> = []
    /// Lets what clients send wait so long before it is read; for connections made from now on.
    public var delay = Duration.zero
    /// Writes at most so many bytes at once; for connections made from now on.
    ///
    /// Nil writes all.
    public var splitsWrites: Int?

    /// Nothing goes wrong.
    public init() {}

    var affectsBytes: Bool { delay > .zero || splitsWrites != nil }
}
