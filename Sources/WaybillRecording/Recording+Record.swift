public import Waybill
import WireCore

extension Recording {
    /// The kind of a record.
    ///
    /// More kinds may be added: a `switch` needs a `default`. The name is the value of `kind` in a file.
    public struct Kind: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// A frame, packet, HTTP request or HTTP response on the wire.
        public static let frame = Kind(name: "frame")
        /// A request of a provider, after the interceptors.
        public static let request = Kind(name: "request")
        /// A request was confirmed.
        public static let receipt = Kind(name: "receipt")
        /// A message was received, before the interceptors.
        public static let message = Kind(name: "message")
        /// A request failed.
        public static let failure = Kind(name: "failure")
        /// A transport has changed its state.
        public static let state = Kind(name: "state")
        /// A transport has reported an event.
        public static let event = Kind(name: "event")
        /// Records are missing here: there was no room for them, or they could not be written.
        ///
        /// ``Record/count`` is their number.
        public static let dropped = Kind(name: "dropped")

        /// The kinds that this version of the format has.
        static let all: [Kind] = [
            .frame, .request, .receipt, .message, .failure, .state, .event, .dropped,
        ]

        private init(name: String) {
            self.name = name
        }

        /// The kind of a logger's record.
        init(_ kind: WireRecord.Kind) {
            self =
                switch kind {
                case .frame: .frame
                case .request: .request
                case .receipt: .receipt
                case .message: .message
                case .failure: .failure
                }
        }
    }

    /// A record of a recording: one line of its file.
    public struct Record: Sendable {
        /// The number that the recorder has given it, from 1; a gap means that records are missing.
        public var number: UInt64
        /// The time of the recorder's call, as the time since 1970-01-01 00:00 UTC; files have microseconds.
        public var time: Duration
        /// The kind of record.
        public var kind: Kind
        /// The direction; nil for states, events and dropped records.
        public var direction: WireRecord.Direction?
        /// The name of the packet, frame, method, status, command, state or event.
        public var name: String
        /// The topic, without the query of a path; nil where there is none.
        ///
        /// It is the text of the peer, unchanged: escape it before it is shown.
        public var topic: String?
        /// The length in bytes; zero where there is none.
        public var byteCount: Int
        /// The label of the client; nil without one.
        public var label: String?
        /// The content in one line, without secrets; text from a peer is escaped.
        public var text: String
        /// The body, or its beginning, if bodies were asked for; nil otherwise.
        public var body: Payload?
        /// The length of the whole body in bytes, if ``body`` is only its beginning; nil otherwise.
        public var bodyByteCount: Int?
        /// The number of the missing records of ``Kind/dropped``; nil for other kinds.
        public var count: Int?

        /// Makes a record.
        ///
        /// - Parameters:
        ///   - number: The number, from 1.
        ///   - time: The time since 1970-01-01 00:00 UTC.
        ///   - kind: The kind.
        ///   - direction: The direction; nil where there is none.
        ///   - name: The name of the packet, frame, method, status, command, state or event.
        ///   - topic: The topic; nil where there is none.
        ///   - byteCount: The length in bytes.
        ///   - text: The content in one line.
        public init(
            number: UInt64,
            time: Duration,
            kind: Kind,
            direction: WireRecord.Direction? = nil,
            name: String,
            topic: String? = nil,
            byteCount: Int = 0,
            text: String
        ) {
            self.number = number
            self.time = time
            self.kind = kind
            self.direction = direction
            self.name = name
            self.topic = topic
            self.byteCount = byteCount
            self.text = text
        }
    }
}

extension Recording.Record {
    /// The memory that the record takes in a queue or a buffer, in bytes.
    var memorySize: Int {
        let texts = name.utf8.count + text.utf8.count
        let optional = (topic?.utf8.count ?? 0) + (label?.utf8.count ?? 0) + (body?.count ?? 0)
        return MemoryLayout<Self>.stride + texts + optional
    }

    /// The record without its body.
    public var redacted: Self {
        var record = self
        (record.body, record.bodyByteCount) = (nil, nil)
        return record
    }
}

extension Recording.Record: Equatable {
    /// Compares all values; texts are equal if their bytes are.
    public static func == (left: Self, right: Self) -> Bool {
        func isSame(_ one: String?, _ other: String?) -> Bool {
            one.map(WireName.init) == other.map(WireName.init)
        }
        return left.number == right.number && left.time == right.time && left.kind == right.kind
            && left.direction == right.direction && isSame(left.name, right.name)
            && isSame(left.topic, right.topic) && left.byteCount == right.byteCount
            && isSame(left.label, right.label) && isSame(left.text, right.text)
            && left.body == right.body && left.bodyByteCount == right.bodyByteCount
            && left.count == right.count
    }
}

extension Recording.Record: CustomStringConvertible {
    /// The time in seconds, the label, an arrow for the direction, the text and the length, without the body.
    public var description: String {
        let arrow =
            switch direction {
            case .outbound: "→ "
            case .inbound: "← "
            case nil: "\(kind.name) "
            }
        let label = label.map { "[\($0.escaped)] " } ?? ""
        let size = kind == .frame ? "  [\(byteCount) bytes]" : ""
        return "\(RecordingTime.text(time)) \(label)\(arrow)\(text.escaped)\(size)"
    }
}
