package import Waybill
package import WaybillLink

extension WaybillError {
    /// What went wrong below the protocols, in the words of users.
    package init(_ error: LinkError) {
        let code: WaybillError.Code =
            switch error {
            case .timedOut: .timedOut
            case .reset, .endOfStream, .closed: .connectionLost
            case .unsupported: .unsupported
            case .nameNotResolved, .refused, .unreachable, .cancelled, .system: .connectionRefused
            }
        self.init(code, error.description, underlying: error)
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
