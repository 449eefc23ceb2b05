import HTTPWire
public import Waybill
import WaybillSession

/// The head of the response with which a server begins an event stream.
public struct EventStreamResponse: Sendable {
    /// The status; 200 for a stream that opens.
    public let status: Int
    /// The fields of the head.
    public let headers: Headers

    init(_ head: HTTPResponseHead) {
        status = head.status
        headers = Headers(head.headers)
    }
}

extension EventStreamResponse: CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The status and the names of the fields, never their values.
    public var description: String { "\(status) \(headers)" }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: values of fields may be secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
