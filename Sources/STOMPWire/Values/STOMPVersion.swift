/// The protocol versions.
package enum STOMPVersion: CaseIterable, Comparable, Hashable, Sendable {
    /// STOMP 1.0 (2005).
    case v1_0
    /// STOMP 1.1 (2011).
    case v1_1
    /// STOMP 1.2 (2012).
    case v1_2

    /// The version as written in `accept-version` and `version`.
    package var text: String {
        switch self {
        case .v1_0: "1.0"
        case .v1_1: "1.1"
        case .v1_2: "1.2"
        }
    }

    /// The subprotocol name of this version in a WebSocket handshake (a convention of the brokers).
    package var subprotocol: String {
        switch self {
        case .v1_0: "v10.stomp"
        case .v1_1: "v11.stomp"
        case .v1_2: "v12.stomp"
        }
    }

    /// The version with a text; nil for an unknown one.
    package init?(text: String) {
        guard let version = Self.allCases.first(where: { $0.text == text }) else { return nil }
        self = version
    }

    /// The version of a subprotocol; nil for an unknown one.
    package init?(subprotocol: String) {
        guard let version = Self.allCases.first(where: { $0.subprotocol == subprotocol }) else {
            return nil
        }
        self = version
    }
}

/// A side of a connection.
package enum STOMPRole: Hashable, Sendable {
    case client
    case server
}
