public import Waybill
import WireCore

extension EventSource {
    /// How far it is.
    public enum ReadyState: Hashable, Sendable {
        /// Asking for the stream, or about to do so again.
        case connecting
        /// The server streams events.
        case open
        /// Neither; as it is before ``connect(lastEventID:)``.
        case closed
    }

    /// An event.
    public struct Event: Hashable, Sendable {
        /// Its type; `message` where the server names none.
        public let type: String
        /// Its data; lines are joined by line feeds.
        public let data: String
        /// The last event ID, of this event or of one before; empty for none.
        public let lastEventID: String

        init(_ message: Message) {
            type = message[.eventType] ?? "message"
            data = message.text ?? ""
            lastEventID = message.id?.description ?? ""
        }
    }

    /// How one attempt, or the stream that came of it, ended.
    public struct Completion: Sendable {
        /// The status of the server's answer; nil when there was none.
        public let status: Int?
        /// Whether the stream is asked for again, after the wait; if not, the source is closed.
        public let willReconnect: Bool
        /// What went wrong; nil for a stream that has ended as it may, and for 204 (No Content).
        public let error: WaybillError?
    }
}

extension EventSource.Event: CustomStringConvertible {
    /// Type and length, never the data.
    public var description: String { "event \(type.excerpt) (\(data.utf8.count) bytes)" }
}

extension EventSource.Event: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: data is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
