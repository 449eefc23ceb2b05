import EventStreamWire
import HTTPWire
import Waybill
import WaybillSession

extension SSEStream {
    /// How one attempt ended.
    struct Outcome {
        var wasOpen = false
        /// Whether it has brought an event.
        var hadEvents = false
        /// The status of the answer, if one came.
        var status: Int?
        /// Nil for an end without a fault.
        var error: WaybillError?
        /// Whether asking again cannot help.
        var isFinal = false
        /// Whether interceptors or the source of credentials have ended it, which no other host can help.
        var isOwn = false
        var retryAfter: Duration?
    }

    /// What a subscription fails with when this side ends it before the server has begun to stream.
    static var closed: WaybillError {
        WaybillError(.notConnected, "disconnected while the stream was asked for")
    }

    /// What a subscription fails with when the server has nothing to stream (HTML Standard, 9.2.2).
    static var noStream: WaybillError {
        WaybillError(.rejected, "the server has no stream", peerReason: "204")
    }
}

extension SSEStream.Outcome {
    /// What an answer means that is no stream, and no redirect.
    init(refusal head: HTTPResponseHead, _ body: [UInt8]) {
        // Told to stop (HTML Standard, 9.2.2).
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

    /// With the end of a connection.
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
