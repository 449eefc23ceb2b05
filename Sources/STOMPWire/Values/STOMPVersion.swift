/// The protocol versions.
package enum STOMPVersion: CaseIterable, Comparable, Hashable, Sendable {
    /// STOMP 1.0 (2005).
    case v1_0
    /// STOMP 1.1 (2011).
    case v1_1
    /// STOMP 1.2 (2012).
    case v1_2

    /// The version as `accept-version` and `version` carry it.
    package var text: String {
        switch self {
        case .v1_0: "1.0"
        case .v1_1: "1.1"
        case .v1_2: "1.2"
        }
    }

    /// The name that a WebSocket handshake offers for this version (practice of the brokers).
    package var subprotocol: String {
        switch self {
        case .v1_0: "v10.stomp"
        case .v1_1: "v11.stomp"
        case .v1_2: "v12.stomp"
        }
    }

    /// The version of that text; nil when the specification knows none.
    package init?(text: String) {
        guard let version = Self.allCases.first(where: { $0.text == text }) else { return nil }
        self = version
    }

    /// The version of that subprotocol; nil when there is none.
    package init?(subprotocol: String) {
        guard let version = Self.allCases.first(where: { $0.subprotocol == subprotocol }) else {
            return nil
        }
        self = version
    }
}

/// Which end of a connection one is.
package enum STOMPRole: Hashable, Sendable {
    case client
    case server
}
