import Waybill
import WaybillLink
import WaybillSession
import WebSocketWire

extension WebSocketClient.Closure {
    /// Converts the core's terminal event.
    init(_ closure: WebSocketEnding) {
        switch closure {
        case .closed(let code, let reason, _):
            self.init(code: .init(rawValue: code.rawValue), reason: reason)
        case .violation(let violation):
            self.init(
                code: .init(rawValue: violation.closeCode.rawValue),
                reason: "\(violation)"
            )
        case .refused, .handshakeFailed, .timedOut, .endOfStream:
            self.init(code: .abnormalClosure, reason: "")
        }
    }
}

extension WaybillError {
    static func webSocketSend(_ error: WebSocketSendError) -> WaybillError {
        switch error {
        case .notOpen: WaybillError(.notConnected, "the connection is closed or closing")
        case .invalidCloseCode(let code):
            WaybillError(.invalidEntry, "the close code \(code) must not be sent")
        case .controlPayloadTooLong(let count):
            WaybillError(.invalidEntry, "\(count) bytes are more than a control frame holds, 125")
        }
    }
}
