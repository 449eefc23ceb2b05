package import Waybill
package import WaybillLink
import WebSocketWire
package import WireCore

extension ReplaySuspicion.End {
    /// The close codes with which a server leaves for its own reasons: Going Away, Service Restart, Try Again Later and
    /// Bad Gateway (RFC 6455, 7.4.1, and IANA's registry).
    private static let leaving: Set<UInt16> = [1_001, 1_012, 1_013, 1_014]

    /// What the end of a stream says about the items that are sent again.
    package init(_ error: LinkError) {
        switch error {
        case .endOfStream, .reset, .truncated: self = .closed
        case .webSocketClosed(let code, _):
            self = Self.leaving.contains(code.rawValue) ? .unrelated : .closed
        default: self = .unrelated
        }
    }
}

extension WaybillError {
    /// The error of a message that a peer answers by ending each connection.
    package static func rejectedMessage(afterEnds count: some BinaryInteger) -> WaybillError {
        WaybillError(
            .rejected,
            "the server ended \(count) connection\(count == 1 ? "" : "s") after this message"
        )
    }
}
