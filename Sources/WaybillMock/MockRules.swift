package import Waybill
package import WireCore

/// The protocol that a mock stands for.
///
/// The target of the mocks itself knows no protocol.
package protocol MockRules: Sendable {
    /// The dependence of requests on a connection.
    var connectivity: MockConnectivity { get }

    /// True when messages that wait for an acknowledgement outlive the connection, as in an MQTT session.
    var keepsSession: Bool { get }

    /// Tells whether a subscription to a filter gets the messages of a topic.
    func matches(_ filter: String, _ topic: String) -> Bool

    /// Tells whether the messages of a subscription wait for the app to acknowledge them.
    func waitsForAcknowledgement(_ command: EntryCommand) -> Bool

    /// Tells whether an acknowledgement covers the messages of a subscription before it, too.
    func isCumulative(_ command: EntryCommand) -> Bool

    /// The name of the group that a subscription is shared with.
    func shareName(of command: EntryCommand) -> String?

    /// What a command does to a transaction; nil for a command outside of any.
    func transaction(of command: EntryCommand) -> MockTransaction?

    /// The time that the peer has to answer, unless the request states one; nil for no limit.
    func timeout(of request: Request) -> Duration?

    /// Refuses what the transport of the protocol refuses before any input or output, with the same error.
    func check(_ request: Request) throws(WaybillError)

    /// Refuses a request that does not fit the open transactions.
    func check(_ request: Request, against open: Set<WireName>) throws(WaybillError)
}

/// What a command does to a transaction.
package enum MockTransaction: Sendable {
    case begin(String)
    case commit(String)
    case abort(String)
    /// An acknowledgement belongs to it.
    case part(String)
}

/// The dependence of a mock's requests on a connection.
package enum MockConnectivity: Sendable {
    /// A mock without a protocol: it is taken to be connected, unless the test has interrupted the connection.
    case assumed
    /// One connection carries all requests, and is made on demand.
    case shared
    /// Each event stream has a connection of its own.
    case perStream
}
