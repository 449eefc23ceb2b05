public import Waybill
import WireCore

/// What a server said in an ERROR frame.
///
/// The `underlying` error of a ``Waybill/WaybillError`` that a server brought about; its `peerReason` is
/// ``message``.
public struct STOMPServerError: Error, Sendable {
    /// What failed, in short; nil where the server does not say.
    public var message: String?
    /// All headers of the frame.
    public var headers: Headers
    /// The body: mostly more words.
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

extension STOMPServerError: CustomStringConvertible {
    /// What failed, in short; never the body, which may repeat what was sent.
    public var description: String { message?.escaped ?? "ERROR without a message" }
}

extension STOMPServerError: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: headers and body are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
