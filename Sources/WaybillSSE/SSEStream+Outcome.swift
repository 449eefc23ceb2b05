import EventStreamWire
import HTTPWire
import Waybill
import WaybillSession

extension SSEStream {
    /// The end of one attempt.
    struct Outcome {
        var wasOpen = false
        /// Whether an event has arrived.
        var hadEvents = false
        /// The status of the response; nil without one.
        var status: Int?
        /// The cause; nil for an end without an error.
        var error: WaybillError?
        /// Whether no other attempt can succeed.
        var isFinal = false
        /// Whether interceptors or the source of credentials ended the attempt, so that no other host is tried.
        var isOwn = false
        var retryAfter: Duration?
    }

    /// The error of a subscription that this side ends before the stream is open.
    static var closed: WaybillError {
        WaybillError(.notConnected, "disconnected while the stream was asked for")
    }

    /// The error of a subscription to which the server answers 204 (HTML Standard, 9.2.2).
    static var noStream: WaybillError {
        WaybillError(.rejected, "the server has no stream", peerReason: "204")
    }
}

extension SSEStream.Outcome {
    /// Makes the outcome of a response that is neither a stream nor a redirect.
    init(refusal head: HTTPResponseHead, _ body: [UInt8]) {
        // 204 asks the client to stop (HTML Standard, 9.2.2).
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

    /// Makes the outcome of the end of a connection.
    init(_ closure: EventStreamClosure, wasOpen: Bool, hadEvents: Bool) {
        let isFinal =
            switch closure {
            case .closed, .violation, .unknownCoding, .invalidCoding: true
            case .refused, .endOfStream, .connection: false
            }
        self.init(
            wasOpen: wasOpen,
            hadEvents: hadEvents,
            status: wasOpen ? 200 : nil,
            error: SSEMapping.error(closure),
            isFinal: isFinal
        )
    }
}
