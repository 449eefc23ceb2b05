import EventStreamWire
import HTTPWire
package import Waybill

/// How an attempt to open a stream has ended, or the stream that it has opened.
package struct SSEOutcome: Sendable {
    /// Whether the server had begun to stream.
    var wasOpen = false
    /// Whether the answer may have been read late, as the app held the server back.
    var wasHeld = false
    /// The status of the answer, if one came.
    var status: Int?
    /// Nil for an end without a fault.
    var error: WaybillError?
    /// Whether a further attempt cannot help.
    var isFinal = false
    /// Whether interceptors or the source of credentials have ended it, so that another host cannot help.
    var isOwn = false
    /// Whether the request or its credentials have named the address, so that no other host is tried.
    var hasOwnURL = false
    /// The wait that the server asks for in its answer.
    var retryAfter: Duration?

    package init(
        wasOpen: Bool = false,
        status: Int? = nil,
        error: WaybillError?,
        isFinal: Bool = false,
        isOwn: Bool = false,
        retryAfter: Duration? = nil
    ) {
        self.wasOpen = wasOpen
        self.status = status
        self.error = error
        self.isFinal = isFinal
        self.isOwn = isOwn
        self.retryAfter = retryAfter
    }

    /// The outcome of an attempt that this side has broken off.
    static let cancelled = SSEOutcome(error: nil, isFinal: true)

    /// The outcome of an answer that is neither a stream nor a redirect.
    init(refusal head: HTTPResponseHead, _ body: [UInt8]) {
        // 204 tells the client to stop (HTML Standard, 9.2.2).
        guard head.status != 204 else {
            self.init(status: 204, error: nil, isFinal: true)
            return
        }
        let error =
            SSEMapping.error(.refused(head, body: body))
            ?? WaybillError(.rejected, "the server refused")
        self.init(
            status: head.status,
            error: error,
            isFinal: error.code != .connectionRefused,
            retryAfter: error.serverDelay
        )
    }

    /// The outcome of a connection that is over.
    init(_ closure: EventStreamClosure, wasOpen: Bool) {
        let isFinal =
            switch closure {
            case .closed, .violation, .unknownCoding, .invalidCoding: true
            case .refused, .endOfStream, .connection: false
            }
        self.init(
            wasOpen: wasOpen,
            status: wasOpen ? 200 : nil,
            error: SSEMapping.error(closure),
            isFinal: isFinal
        )
    }

    /// The outcome of an attempt that has failed before the server has answered, or at a proxy.
    init(_ error: WaybillError) {
        let refusal = error.underlying as? HTTPRefusal
        let status = refusal?.isFromProxy == false ? refusal?.status : nil
        self.init(status: status, error: error, isFinal: !error.isRetryable)
    }
}
