import STOMPWire
import Waybill
import WireCore

/// The frame of a request other than a send.
enum STOMPRequestFrame: Sendable {
    case subscribe(STOMPSubscribe, id: String, ackMode: STOMPAckMode, timeout: Duration?)
    case unsubscribe(id: String, STOMPHeaders)
    case acknowledge(STOMPAckToken, isAccepted: Bool, in: String?, STOMPHeaders)
    case begin(String, STOMPHeaders)
    case commit(String, STOMPHeaders)
    case abort(String, STOMPHeaders)

    /// Sends the frame.
    ///
    /// - Parameters:
    ///   - core: The core of the connection.
    ///   - call: The call that waits for the receipt; nil requests no receipt.
    ///   - now: The time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    func write(
        to core: inout STOMPClientConnection,
        _ call: STOMPPendingCall?,
        at now: WireInstant
    ) throws(STOMPSendError) {
        switch self {
        case .subscribe(let subscribe, let id, let ackMode, let timeout):
            try core.subscribe(
                id: id,
                destination: subscribe.destination,
                ackMode: ackMode,
                headers: subscribe.headers,
                call: call,
                timeout: timeout,
                at: now
            )
        case .unsubscribe(let id, let headers):
            try core.unsubscribe(id: id, headers: headers, call: call, at: now)
        case .acknowledge(let token, isAccepted: true, let name, let headers):
            try core.acknowledge(token, transaction: name, headers: headers, call: call, at: now)
        case .acknowledge(let token, isAccepted: false, let name, let headers):
            try core.refuse(token, transaction: name, headers: headers, call: call, at: now)
        case .begin(let name, let headers):
            try core.begin(transaction: name, headers: headers, call: call, at: now)
        case .commit(let name, let headers):
            try core.commit(transaction: name, headers: headers, call: call, at: now)
        case .abort(let name, let headers):
            try core.abort(transaction: name, headers: headers, call: call, at: now)
        }
    }
}
