public import Waybill
import WireCore

/// The contents of a server's ERROR frame.
///
/// It is the `underlying` error of a ``Waybill/WaybillError`` that a server has caused. The `peerReason` of that error
/// is ``message``.
public struct STOMPServerError: Error, Sendable {
    /// A short description of the failure; nil if the server gives none.
    public var message: String?
    /// All headers of the frame.
    public var headers: Headers
    /// The body, which usually has a longer description.
    public var body: Payload

    /// Describes an ERROR frame.
    public init(message: String?, headers: Headers, body: Payload) {
        self.message = message
        self.headers = headers
        self.body = body
    }
}

extension STOMPServerError: PeerRefusal {
    /// The body of the frame, with its headers and its content type.
    public var refusal: Message {
        Message(topic: "", body: body, headers: headers, contentType: headers["content-type"])
    }
}

extension STOMPServerError {
    /// Whether another client has a queue for itself, which may be an earlier connection of this one.
    var isLocked: Bool { message == "resource_locked" }
}

extension STOMPServerError: CustomStringConvertible {
    /// The short description.
    ///
    /// It never contains the body, which may repeat the request.
    public var description: String { message?.excerpt ?? "ERROR without a message" }
}

extension STOMPServerError: CustomDebugStringConvertible, CustomReflectable {
    /// The same as ``description``.
    public var debugDescription: String { description }

    /// An empty mirror, because headers and body are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
