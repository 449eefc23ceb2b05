package import HTTPWire
package import Waybill
package import WaybillLink
import WebSocketWire

extension WaybillError {
    /// Converts an error of the link into the public error.
    package init(_ error: LinkError) {
        self.init(Self.code(of: error), error.description)
        underlying = Self.socketFailure(of: error)
        switch error {
        case .upgradeRefused(let head, let body), .proxyRefused(let head, let body):
            var refusal = HTTPRefusal(head, body)
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

    /// The system's error of the socket; nil for other kinds of failure.
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

    /// The same error; that of a refused connection names host and port.
    func naming(_ endpoint: Endpoint) -> WaybillError {
        guard code == .connectionRefused, !(underlying is HTTPRefusal) else { return self }
        var error = self
        error.message += " (\(endpoint))"
        return error
    }

    private static func code(of error: LinkError) -> WaybillError.Code {
        switch error {
        case .timedOut, .tlsTimedOut: .timedOut
        case .reset, .endOfStream, .truncated, .closed, .silent, .pathLost, .webSocketClosed:
            .connectionLost
        case .tls: .tls
        case .unsupported: .unsupported
        case .system where error.isOutOfDescriptors: .outOfDescriptors
        case .nameNotResolved, .refused, .unreachable, .cancelled, .notPermitted, .system:
            .connectionRefused
        case .upgradeRefused(let head, _), .proxyRefused(let head, _):
            code(ofRefusal: head.status)
        case .upgradeInvalid, .proxyInvalid: .invalidEntry
        case .webSocketViolation(.messageTooBig): .limitExceeded
        case .upgradeFailed, .webSocketViolation, .proxyViolation: .protocolViolation
        case .proxy(let error): code(of: error)
        }
    }

    /// The error code for a status that refuses a request, an upgrade or a tunnel (RFC 9110, 15.5 and 15.6).
    ///
    /// The status stands for refused credentials, for a temporary failure of the server, or for a rejection.
    package static func code(ofRefusal status: Int) -> WaybillError.Code {
        switch status {
        case 401, 403, 407: .unauthorized
        case 408, 425, 429, 500...599: .connectionRefused
        default: .rejected
        }
    }

    /// An error that follows from another error, which becomes its underlying error.
    package init(_ code: Code, _ message: String, after cause: WaybillError?) {
        self.init(code, message, peerReason: cause?.peerReason, underlying: cause)
    }

    /// An error with the peer's reason and the underlying error of another error, whose place it takes.
    package init(_ code: Code, _ message: String, restating cause: WaybillError?) {
        self.init(code, message, peerReason: cause?.peerReason, underlying: cause?.underlying)
    }

    /// The error for a request that a protocol does not support.
    ///
    /// - Parameters:
    ///   - protocolName: The protocol, such as `MQTT`.
    ///   - what: The missing feature, as in "MQTT has no transactions".
    ///   - request: The request.
    /// - Returns: The error, which names the request.
    package static func unsupported(
        by protocolName: String,
        _ what: String,
        _ request: Request
    ) -> WaybillError {
        WaybillError(.unsupported, "\(protocolName) has no \(what)").about(request)
    }

    /// Refuses options that a protocol does not support.
    ///
    /// - Parameters:
    ///   - stated: The options, and whether the request has them.
    ///   - protocolName: The protocol, such as `MQTT 3.1.1`.
    ///   - request: The request.
    /// - Throws: `unsupported`, which names the first option that the request has.
    package static func refuse(
        _ stated: KeyValuePairs<OptionName, Bool>,
        by protocolName: String,
        _ request: Request
    ) throws(WaybillError) {
        for (option, isStated) in stated where isStated {
            throw unsupported(option, "\(protocolName) has no option \(option)", in: request)
        }
    }

    /// The error for an unsupported quality of service, which names the highest supported one.
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

    /// Converts the error of a call for the events, including a cancellation.
    package init(reporting error: any Error) {
        self = error as? WaybillError ?? WaybillError(.notConnected, "cancelled")
    }

    /// The same error, about this server alone: another host may support what it lacks.
    package var asLimitOfServer: WaybillError {
        var error = self
        error.isLimitOfServer = true
        return error
    }

    /// The transport was shut down.
    package static var shutDown: WaybillError {
        WaybillError(.shutDown, "the transport was shut down")
    }

    /// The same error, with topic and command of the request if it has none.
    package func about(_ request: Request) -> WaybillError {
        var error = self
        error.topic = topic ?? request.topic
        error.command = command ?? request.command.name
        return error
    }
}

extension HTTPRefusal {
    /// The contents of a response.
    package init(_ head: HTTPResponseHead, _ body: [UInt8]) {
        self.init(
            status: head.status,
            reason: head.reason,
            headers: Headers(head.headers),
            body: Payload(body)
        )
    }
}

extension Result where Failure == any Error {
    /// The same result; an error gets topic and command of the request if it has none.
    package func about(_ request: Request) -> Result {
        mapError { ($0 as? WaybillError)?.about(request) ?? $0 }
    }
}
