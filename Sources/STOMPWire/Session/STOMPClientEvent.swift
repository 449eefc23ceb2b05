import WireCore

/// What a client's core tells its driver.
package enum STOMPClientEvent: Sendable {
    /// The server has accepted the connection.
    case connected(STOMPConnected)
    /// A message of an open subscription; one that is to be acknowledged comes with its token.
    case message(subscriptionID: String, STOMPFrame, STOMPAckToken?)
    /// The server has done what a call asked for.
    case receipt(any STOMPCall, STOMPReceivedHeaders)
    /// The server could not do what a call asked for; the connection ends with it.
    case failed(any STOMPCall, STOMPErrorFrame)
    /// A call has waited for its receipt long enough.
    case timedOut(any STOMPCall)
    /// A call will never be answered, since the connection is over.
    case abandoned(any STOMPCall)
    /// A call's request was never sent, since the connection is over.
    case notSent(any STOMPCall)
    /// A frame as it went over the wire, while tracing is on.
    case trace(STOMPTrace)
    /// The connection is over; nothing follows.
    case closed(STOMPClosure)
}

/// Why a connection is over.
package enum STOMPClosure: Hashable, Sendable {
    /// This side sent DISCONNECT, or gave up before it was connected.
    case disconnected
    /// The server answered CONNECT with ERROR.
    case refused(STOMPErrorFrame)
    /// The server sent ERROR, after which it must close (STOMP 1.2, ERROR).
    case error(STOMPErrorFrame)
    /// The server broke the protocol.
    case violation(STOMPViolation)
    /// No CONNECTED in time.
    case connectTimedOut
    /// Not a byte for twice the interval that was agreed, and a margin.
    case heartBeatMissed
    /// The server closed the stream.
    case endOfStream
}

/// What a server says about a failure, copied out of the receive buffer.
package struct STOMPErrorFrame: Hashable, Sendable {
    /// All headers.
    package let headers: STOMPHeaders
    /// The body: mostly more words, of the type that `content-type` says.
    package let body: [UInt8]

    package init(headers: STOMPHeaders, body: [UInt8]) {
        self.headers = headers
        self.body = body
    }

    init(_ frame: STOMPFrame) {
        self.init(headers: frame.headers.list, body: frame.body.bytes)
    }

    /// What failed, in short.
    package var message: String? { headers.first(STOMPHeaderName.message) }
    /// Which request failed, where the server knows.
    package var receiptID: String? { headers.first(STOMPHeaderName.receiptID) }

    /// Whether it says that there is no such destination, as RabbitMQ does: it names the destination in its words, and not
    /// the receipt.
    ///
    /// `'/nowhere/x' is not a valid destination.`, or `NOT_FOUND - no exchange 'nope' in vhost '/'` for `/exchange/nope/x`.
    func isAbout(destination: String) -> Bool {
        let names = quotedNames
        if names.contains(where: { $0.elementsEqual(destination.utf8) }) { return true }
        guard message == "not_found" else { return false }
        let parts = destination.utf8.split(separator: UInt8(ascii: "/"))
        return parts.contains { part in names.contains { $0.elementsEqual(part) } }
    }

    /// What the body names in single quotes, within its first 4 KiB.
    private var quotedNames: [ArraySlice<UInt8>] {
        let parts = body.prefix(4_096).split(
            separator: UInt8(ascii: "'"),
            omittingEmptySubsequences: false
        )
        // Every other part stands between two quotes; the last one has none behind it.
        return parts.indices.dropLast().filter { $0 % 2 == 1 }.map { parts[$0] }
    }
}
