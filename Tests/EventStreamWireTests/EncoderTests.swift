import EventStreamWire
import Testing
import WireCore
import WireTestSupport

/// Checks the bytes that the encoder writes, and that the parser reads them back unchanged.
@Suite("Event stream encoder") struct EncoderTests {
    private func text(
        _ body: (inout ByteWriter) throws(EventStreamEncodingError) -> Void
    ) throws -> String {
        var writer = ByteWriter()
        try body(&writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func encode(
        _ data: String,
        type: String = "message",
        id: String? = nil,
        retry: Duration? = nil
    ) throws -> String {
        try text { writer throws(EventStreamEncodingError) in
            try EventStreamEncoder.encode(
                type: type,
                data: Array(data.utf8),
                id: id,
                retry: retry,
                into: &writer
            )
        }
    }

    @Test("Events")
    func events() throws {
        #expect(try encode("a") == "data: a\n\n")
        #expect(try encode("") == "data: \n\n")
        let note = try encode("a\nb", type: "note", id: "7")
        #expect(note == "id: 7\nevent: note\ndata: a\ndata: b\n\n")
        #expect(try encode("a\r\nb\rc\n", id: "") == "id: \ndata: a\ndata: b\ndata: c\ndata: \n\n")
        #expect(try encode("a", retry: .milliseconds(1_500)) == "retry: 1500\ndata: a\n\n")
    }

    @Test("Comments and times")
    func others() throws {
        #expect(try text { EventStreamEncoder.encode(comment: "a\nb", into: &$0) } == ": a\n: b\n")
        let retry = try text { writer throws(EventStreamEncodingError) in
            try EventStreamEncoder.encode(retry: .seconds(3), into: &writer)
        }
        #expect(retry == "retry: 3000\n")
    }

    @Test("What cannot be said is refused, and nothing is written")
    func refusals() {
        var writer = ByteWriter()
        func refuses(
            _ error: EventStreamEncodingError,
            type: String = "t",
            id: String? = nil,
            retry: Duration? = nil
        ) {
            #expect(throws: error) {
                try EventStreamEncoder.encode(
                    type: type,
                    data: [UInt8](),
                    id: id,
                    retry: retry,
                    into: &writer
                )
            }
            #expect(writer.isEmpty)
        }
        for end in ["\n", "\r", "\r\n"] {
            refuses(.invalidType, type: "a\(end)b")
            refuses(.invalidID, id: "a\(end)b")
        }
        refuses(.invalidType, type: "")
        refuses(.invalidID, id: "a\0")
        refuses(.invalidRetry, retry: .milliseconds(-1))
    }

    @Test("What the encoder writes the parser reads, under every chunking")
    func pair() throws {
        let events: [(type: String, data: String, id: String)] = [
            ("message", "plain", "1"), (" note", " two\nlines\n", "é 2"), ("message", "", "3"),
            ("a:b", ": no comment\n\ndata: x", ""), ("message", "\u{2028}\u{FEFF}", "\u{FEFF}"),
        ]
        var writer = ByteWriter()
        EventStreamEncoder.encode(comment: "hello\n\nworld", into: &writer)
        for event in events {
            try EventStreamEncoder.encode(
                type: event.type,
                data: Array(event.data.utf8),
                id: event.id,
                into: &writer
            )
        }
        try EventStreamEncoder.encode(retry: .milliseconds(20), into: &writer)
        for pieces in ParserTests.deliveries(writer.bytes) {
            let outcome = try ParserTests.parse(pieces)
            #expect(outcome.reconnectionTime == .milliseconds(20))
            #expect(
                outcome.events
                    == events.map { .init(type: $0.type, data: $0.data, lastEventID: $0.id) }
            )
        }
    }
}
