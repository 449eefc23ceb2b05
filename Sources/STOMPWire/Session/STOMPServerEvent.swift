import WireCore

/// An event of the server's core for its driver; an event of a request with a receipt carries the receipt id.
///
/// The broker answers with ``STOMPServerConnection/receipt(_:at:)`` when the work is done.
package enum STOMPServerEvent: Sendable {
    /// A client requests a connection.
    case connect(STOMPConnectRequest)
    /// A message from the client, with or without a transaction.
    case send(destination: String, STOMPFrame, transaction: String?, receipt: String?)
    /// A subscription with an unused id; in 1.0 the destination can replace the id.
    case subscribe(
        id: String,
        destination: String,
        ackMode: STOMPAckMode,
        STOMPHeaders,
        receipt: String?
    )
    /// The end of an existing subscription.
    case unsubscribe(id: String, receipt: String?)
    /// A message is acknowledged.
    case acknowledge(STOMPAcknowledgement, receipt: String?)
    /// A message is refused.
    case refuse(STOMPAcknowledgement, receipt: String?)
    case begin(transaction: String, receipt: String?)
    case commit(transaction: String, receipt: String?)
    case abort(transaction: String, receipt: String?)
    /// The client sent DISCONNECT; the core answers it after the receipts that are still owed.
    case disconnect(receipt: String?)
    /// A frame on the wire, while tracing is on.
    case trace(STOMPTrace)
    /// The connection ended; no event follows.
    case closed(STOMPServerClosure)
}

/// The contents of a client's CONNECT (STOMP 1.2, Connecting).
package struct STOMPConnectRequest: Hashable, Sendable {
    /// The highest version that both sides support.
    package let version: STOMPVersion
    /// The virtual host.
    package let host: String?
    /// The user name.
    package let login: String?
    /// The password.
    package let passcode: String?
    /// The heart-beats that the client can send and wants to receive.
    package let heartBeat: STOMPHeartBeat
    package let headers: STOMPHeaders

    /// Reads the first frame of a client.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - versions: The versions of the server.
    /// - Throws: `STOMPViolation`.
    package init(_ frame: STOMPFrame, offering versions: [STOMPVersion]) throws(STOMPViolation) {
        guard frame.command == .connect || frame.command == .stomp else {
            throw .frameBeforeConnected(frame.command)
        }
        headers = frame.headers.list
        let offer = headers.first(STOMPHeaderName.acceptVersion)
        version = try Self.agreedVersion(offer, versions)
        host = headers.first(STOMPHeaderName.host)
        login = headers.first(STOMPHeaderName.login)
        passcode = headers.first(STOMPHeaderName.passcode)
        guard version > .v1_0 else {
            heartBeat = .none
            return
        }
        if host == nil { throw .headerMissing(frame.command, STOMPHeaderName.host) }
        guard let text = headers.first(STOMPHeaderName.heartBeat) else {
            heartBeat = .none
            return
        }
        guard let told = STOMPHeartBeat(text: text) else { throw .heartBeatInvalid }
        heartBeat = told
    }

    /// The highest common version; a CONNECT without an offer means 1.0 (Protocol Negotiation).
    private static func agreedVersion(_ offer: String?, _ versions: [STOMPVersion])
        throws(STOMPViolation) -> STOMPVersion
    {
        let offered = (offer ?? STOMPVersion.v1_0.text).split(atByte: ",")
            .compactMap { STOMPVersion(text: String($0)) }
        guard let best = offered.filter({ versions.contains($0) }).max() else {
            throw .versionNotOffered
        }
        return best
    }
}

/// The message of an ACK or NACK, as the version identifies it.
package struct STOMPAcknowledgement: Hashable, Sendable {
    /// The `ack` header of the message in 1.2, otherwise its `message-id`.
    package let identifier: String
    /// The id of the subscription in 1.1.
    package let subscriptionID: String?
    /// The transaction of the acknowledgement.
    package let transaction: String?
}

/// The reason why a server's connection ended.
package enum STOMPServerClosure: Hashable, Sendable {
    /// The client sent DISCONNECT.
    case disconnected
    /// The server sent ERROR.
    case error
    /// The client violated the protocol.
    case violation(STOMPViolation)
    /// No CONNECT or no heart-beat arrived in time.
    case timedOut
    /// The client closed the stream.
    case endOfStream
}
