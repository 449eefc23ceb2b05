/// What a server's core tells its driver; what asks for a receipt carries its id.
///
/// The broker answers with ``STOMPServerConnection/receipt(_:at:)`` when the work is done.
package enum STOMPServerEvent: Sendable {
    /// A client asks to be connected.
    case connect(STOMPConnectRequest)
    /// A message from the client, in a transaction or not.
    case send(destination: String, STOMPFrame, transaction: String?, receipt: String?)
    /// A subscription of an id that is free; in 1.0 the destination may stand for it.
    case subscribe(
        id: String,
        destination: String,
        ackMode: STOMPAckMode,
        STOMPHeaders,
        receipt: String?
    )
    /// The end of a subscription that is there.
    case unsubscribe(id: String, receipt: String?)
    /// A message is taken.
    case acknowledge(STOMPAcknowledgement, receipt: String?)
    /// A message is not taken.
    case refuse(STOMPAcknowledgement, receipt: String?)
    case begin(transaction: String, receipt: String?)
    case commit(transaction: String, receipt: String?)
    case abort(transaction: String, receipt: String?)
    /// The client takes its leave; the core answers it after the receipts that it still owes.
    case disconnect(receipt: String?)
    /// A frame as it went over the wire, while tracing is on.
    case trace(STOMPTrace)
    /// The connection is over; nothing follows.
    case closed(STOMPServerClosure)
}

/// What a client asks for when it opens a connection (STOMP 1.2, Connecting).
package struct STOMPConnectRequest: Hashable, Sendable {
    /// The best version that both ends have.
    package let version: STOMPVersion
    /// The virtual host.
    package let host: String?
    /// The user.
    package let login: String?
    /// The user's secret.
    package let passcode: String?
    /// What the client can give and wants to hear.
    package let heartBeat: STOMPHeartBeat
    /// All headers.
    package let headers: STOMPHeaders
}

/// Which message an ACK or NACK is about, as the version names it.
package struct STOMPAcknowledgement: Hashable, Sendable {
    /// The `ack` of the message in 1.2, else its `message-id`.
    package let identifier: String
    /// The id of the subscription in 1.1.
    package let subscriptionID: String?
    /// The transaction that it belongs to.
    package let transaction: String?
}

/// Why a server's connection is over.
package enum STOMPServerClosure: Hashable, Sendable {
    /// The client sent DISCONNECT.
    case disconnected
    /// The server sent ERROR.
    case error
    /// The client broke the protocol.
    case violation(STOMPViolation)
    /// No CONNECT, or no sign of life, in time.
    case timedOut
    /// The client closed the stream.
    case endOfStream
}
