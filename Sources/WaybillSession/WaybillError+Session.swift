import HTTPWire
package import Waybill
package import WaybillLink
import WebSocketWire

extension WaybillError {
    /// What went wrong below the protocols, in the words of users.
    package init(_ error: LinkError) {
        self.init(Self.code(of: error), error.description)
        underlying = Self.socketFailure(of: error)
        switch error {
        case .upgradeRefused(let head, let body), .proxyRefused(let head, let body):
            var refusal = HTTPRefusal(
                status: head.status,
                reason: head.reason,
                headers: Headers(head.headers),
                body: Payload(body)
            )
            if case .proxyRefused = error { refusal.isFromProxy = true }
            if case .upgradeRefused = error { refusal.isOfUpgrade = true }
            peerReason = refusal.description
            underlying = refusal
        case .webSocketClosed(let code, let reason):
            peerReason = reason.isEmpty ? "\(code.rawValue)" : "\(code.rawValue) \(reason)"
            underlying = WebSocketClosure(code: .init(rawValue: code.rawValue), reason: reason)
        case .tls(let fault): underlying = TLSFailure(fault)
        default: break
        }
    }

    /// What the system said about the socket; nil where the failure is of another kind.
    private static func socketFailure(of error: LinkError) -> SocketFailure? {
        switch error {
        case .refused: .refused
        case .reset: .reset
        case .unreachable(let number): SocketFailure(errorNumber: number, call: "connect")
        // Network.framework has errors without a number.
        case .system(let number, let call) where number != 0:
            SocketFailure(errorNumber: number, call: call)
        case .proxy(let error): socketFailure(of: error)
        default: nil
        }
    }

    private static func code(of error: LinkError) -> WaybillError.Code {
        switch error {
        case .timedOut, .tlsTimedOut: .timedOut
        case .reset, .endOfStream, .truncated, .closed, .silent, .pathLost, .webSocketClosed:
            .connectionLost
        case .tls: .tls
        case .unsupported: .unsupported
        case .system where error.isOutOfDescriptors: .outOfDescriptors
        case .nameNotResolved, .refused, .unreachable, .cancelled, .system: .connectionRefused
        case .upgradeRefused(let head, _), .proxyRefused(let head, _):
            code(ofRefusal: head.status)
        case .upgradeInvalid, .proxyInvalid: .invalidEntry
        case .webSocketViolation(.messageTooBig): .limitExceeded
        case .upgradeFailed, .webSocketViolation, .proxyViolation: .protocolViolation
        case .proxy(let error): code(of: error)
        }
    }

    /// What a status that refuses an upgrade or a tunnel means: credentials that count for nothing, a server
    /// that may do better later (RFC 9110, 15.5 and 15.6), or a no.
    private static func code(ofRefusal status: Int) -> WaybillError.Code {
        switch status {
        case 401, 403, 407: .unauthorized
        case 408, 425, 429, 500...599: .connectionRefused
        default: .rejected
        }
    }

    /// A request for something that a protocol does not have.
    ///
    /// - Parameters:
    ///   - protocolName: The protocol, such as `MQTT`.
    ///   - what: What it has not, as in "MQTT has no transactions".
    ///   - request: The request.
    /// - Returns: The error, which names the request.
    package static func unsupported(
        by protocolName: String,
        _ what: String,
        _ request: Request
    ) -> WaybillError {
        WaybillError(.unsupported, "\(protocolName) has no \(what)").about(request)
    }

    /// Refuses options that a protocol does not have.
    ///
    /// - Parameters:
    ///   - stated: The options, and whether the request has them.
    ///   - protocolName: The protocol, such as `MQTT 3.1.1`.
    ///   - request: The request.
    /// - Throws: `unsupported`, which names the first option that the request has.
    package static func refuse(
        _ stated: KeyValuePairs<UnsupportedOption, Bool>,
        by protocolName: String,
        _ request: Request
    ) throws(WaybillError) {
        for (option, isStated) in stated where isStated {
            throw unsupported(option, "\(protocolName) has no option \(option)", in: request)
        }
    }

    /// Refuses a quality of service, and says which is supported.
    package static func unsupported(
        qosAbove supported: QoS,
        by protocolName: String,
        _ request: Request
    ) -> WaybillError {
        var error = unsupported(
            .qos,
            "\(protocolName) has no QoS above \(supported.rawValue)",
            in: request
        )
        error.supportedQoS = supported
        return error
    }

    /// What went wrong with a call, for the events: a cancellation, too.
    package init(reporting error: any Error) {
        self = error as? WaybillError ?? WaybillError(.notConnected, "cancelled")
    }

    /// The transport is no longer there.
    package static var shutDown: WaybillError {
        WaybillError(.shutDown, "the transport was shut down")
    }

    /// The same error, with topic and command of the request where it names none.
    package func about(_ request: Request) -> WaybillError {
        var error = self
        error.topic = topic ?? request.topic
        error.command = command ?? request.command.name
        return error
    }
}

extension Result where Failure == any Error {
    /// The same, with what the error does not tell of the request.
    package func about(_ request: Request) -> Result {
        mapError { ($0 as? WaybillError)?.about(request) ?? $0 }
    }
}
