import WireCore

/// An event of the client's core for its driver.
package enum STOMPClientEvent: Sendable {
    /// The server has accepted the connection.
    case connected(STOMPConnected)
    /// A message of an open subscription, with a token if it must be acknowledged.
    case message(subscriptionID: String, STOMPFrame, STOMPAckToken?)
    /// A message above this side's limit, which was not kept; acknowledged where an ACK is about it alone.
    ///
    /// The token is that of a message which still has to be acknowledged, because its ACK is also about earlier ones.
    case skipped(subscriptionID: String, STOMPSkippedMessage, STOMPAckToken?)
    /// A message of a subscription that has ended, or that never was.
    case unheard(STOMPFrame)
    /// The server has carried out the request of a call, or sends no receipts; the headers are empty without a RECEIPT.
    case receipt(any STOMPCall, STOMPReceivedHeaders)
    /// The server could not carry out the request of a call; the connection ends.
    case failed(any STOMPCall, STOMPErrorFrame)
    /// The time limit of a call has passed; tells whether the server sends receipts at all, as far as is known.
    case timedOut(any STOMPCall, isAnswering: Bool)
    /// The server sends no receipts, so that requests do without them.
    case receiptsMissing
    /// A call will get no answer, because the connection has ended.
    case abandoned(any STOMPCall)
    /// The request of a call was never sent, because the connection has ended.
    case notSent(any STOMPCall)
    /// A frame on the wire, while tracing is on.
    case trace(STOMPTrace)
    /// The connection ended; no event follows.
    case closed(STOMPClosure)
}

/// The reason why a connection ended.
package enum STOMPClosure: Hashable, Sendable {
    /// This side sent DISCONNECT, or ended the connection before CONNECTED.
    case disconnected
    /// The server answered CONNECT with ERROR.
    case refused(STOMPErrorFrame)
    /// The server sent ERROR, after which it must close (STOMP 1.2, ERROR).
    case error(STOMPErrorFrame)
    /// The server violated the protocol.
    case violation(STOMPViolation)
    /// No CONNECTED arrived in time.
    case connectTimedOut
    /// Nothing arrived for twice the agreed interval and a margin.
    case heartBeatMissed
    /// The server closed the stream.
    case endOfStream
    /// The server answered CONNECT with a response of HTTP.
    case answeredInHTTP
}

/// The ERROR frame of a server, copied out of the receive buffer.
package struct STOMPErrorFrame: Hashable, Sendable {
    package let headers: STOMPHeaders
    /// The body: usually more text, of the type in `content-type`.
    package let body: [UInt8]

    package init(headers: STOMPHeaders, body: [UInt8]) {
        self.headers = headers
        self.body = body
    }

    init(_ frame: STOMPFrame) {
        self.init(headers: frame.headers.list, body: frame.body.bytes)
    }

    /// The short error text.
    package var message: String? { headers.first(STOMPHeaderName.message) }
    /// The receipt of the failed request, if the server names it.
    package var receiptID: String? { headers.first(STOMPHeaderName.receiptID) }

    /// The short texts of RabbitMQ for a refusal that names a queue or an exchange.
    private static let refusals: Set = [
        "not_found", "access_refused", "resource_locked", "precondition_failed", "not_allowed",
    ]

    /// Whether the error refuses a destination.
    ///
    /// RabbitMQ names the destination, its queue or its exchange in the text, and not the receipt.
    ///
    /// Examples: `'/nowhere/x' is not a valid destination.`, or `NOT_FOUND - no exchange 'nope' in vhost '/'` for
    /// `/exchange/nope/x`.
    func isAbout(destination: String) -> Bool {
        let names = quotedNames
        if names.contains(where: { $0.elementsEqual(destination.utf8) }) { return true }
        guard let message, Self.refusals.contains(message) else { return false }
        let parts = destination.utf8.split(separator: UInt8(ascii: "/"))
        return parts.contains { part in names.contains { $0.elementsEqual(part) } }
    }

    /// The names in single quotes in the body's first 4 KiB.
    private var quotedNames: [ArraySlice<UInt8>] {
        let parts = body.prefix(4_096).split(
            separator: UInt8(ascii: "'"),
            omittingEmptySubsequences: false
        )
        // Every second part is between two quotes; the last part has no closing quote.
        return parts.indices.dropLast().filter { $0 % 2 == 1 }.map { parts[$0] }
    }
}
