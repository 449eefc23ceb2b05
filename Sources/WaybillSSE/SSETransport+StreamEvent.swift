import Waybill
import WireCore

extension SSETransport {
    /// An opening or a comment of an event stream, which is not one of its events.
    ///
    /// Stream events and messages (`message[.serial]`) of a transport have increasing serials.
    public enum StreamEvent: Sendable {
        /// The stream is open, for the first time or after a lost connection.
        case opened(topic: String, EventStreamResponse, serial: UInt64)
        /// A comment (HTML Standard, 9.2.6), as servers send to keep a connection alive.
        case comment(topic: String, String, serial: UInt64)
    }
}

extension SSETransport.StreamEvent: CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The kind and the topic, never the text of the server.
    public var description: String {
        switch self {
        case .opened(let topic, let response, _):
            "opened \(topic.withoutQuery.escaped): \(response)"
        case .comment(let topic, let text, _):
            "comment of \(text.utf8.count) bytes on \(topic.withoutQuery.escaped)"
        }
    }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a comment may be secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
