import EventStreamWire
import HTTPWire
import Testing
import WireCore
import WireTestSupport

/// The parser against the HTML Standard, 9.2.5 and 9.2.6.
@Suite("Event streams") struct ParserTests {
    struct Outcome: Equatable {
        var events: [WebPlatformCase.Event] = []
        var lastEventID = ""
        var reconnectionTime: Duration?
    }

    static func parse(
        _ pieces: [[UInt8]],
        lastEventID: String = "",
        limits: EventStreamLimits = EventStreamLimits()
    ) throws -> Outcome {
        var parser = EventStreamParser(lastEventID: lastEventID, limits: limits)
        var buffer = ReceiveBuffer(capacity: 16)
        var outcome = Outcome()
        for piece in pieces {
            buffer.append(piece)
            while let event = try parser.next(&buffer) {
                outcome.events.append(
                    .init(type: event.type, data: event.text, lastEventID: event.lastEventID)
                )
            }
        }
        outcome.lastEventID = parser.lastEventID
        outcome.reconnectionTime = parser.reconnectionTime
        return outcome
    }

    @Test("Comments are kept where they are wanted, however they are cut")
    func comments() throws {
        let bytes = Array(": one\ndata: 1\n:two\n\n:\n::3\nother\n".utf8)
        for pieces in Self.deliveries(bytes) {
            for keepsComments in [false, true] {
                var parser = EventStreamParser(keepsComments: keepsComments)
                var buffer = ReceiveBuffer(capacity: 16)
                var comments: [String] = []
                for piece in pieces {
                    buffer.append(piece)
                    while try parser.next(&buffer) != nil {}
                    comments += parser.takeComments()
                }
                #expect(comments == (keepsComments ? ["one", "two", "", ":3"] : []))
            }
        }
    }

    @Test(
        "A call reads no more lines than it may, and the next one goes on there",
        arguments: 1...6
    )
    func turns(_ limit: Int) throws {
        let bytes = Array(":\n:\r\ndata: 1\ndata: 2\n\n:\rdata: 3\n\n".utf8)
        var parser = EventStreamParser()
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(bytes)
        var texts: [String] = []
        var calls = 0
        while buffer.count > 0, calls < 20 {
            parser.linesLeft = limit
            calls += 1
            while let event = try parser.next(&buffer) { texts.append(event.text) }
        }
        #expect(texts == ["1\n2", "3"])
        #expect(calls == (8 + limit - 1) / limit)
    }

    @Test("A turn of a stream ends after 4,096 lines, whether or not they make an event")
    func lineTurns() throws {
        var core = EventStreamConnection(
            lastEventID: "",
            limits: EventStreamLimits(),
            idleTimeout: nil
        )
        let head = HTTPRequestHead(method: "GET", target: "/", headers: ["Host": "h"])
        try core.request(head, body: [UInt8](), timeout: .seconds(1), at: .zero)
        let lines = String(repeating: ":\n", count: 10_000)
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(
            Array(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\(lines)data: x\n\n".utf8
            )
        )
        var counts: [Int] = []
        repeat {
            core.receive(&buffer, at: .zero)
            counts.append(
                core.takeEvents().reduce(0) {
                    if case .events(let events) = $1 { $0 + events.count } else { $0 }
                }
            )
        } while core.hasMoreInput && counts.count < 10
        #expect(counts == [0, 0, 1])
    }

    /// Every way in which a network can deliver the bytes: whole, byte by byte, cut in two at every place.
    static func deliveries(_ bytes: [UInt8]) -> [[[UInt8]]] {
        [[bytes], bytes.map { [$0] }]
            + bytes.indices.map { [Array(bytes[..<$0]), Array(bytes[$0...])] }
    }

    @Test("There are cases")
    func cases() {
        #expect(WebPlatformCase.all.count == 54)
        #expect(WebPlatformCase.parse.count == 22)
    }

    @Test("The web platform's cases, under every chunking", arguments: WebPlatformCase.parse)
    func webPlatform(row: WebPlatformCase) throws {
        let bytes = try #require(row.responses.first).bytes
        for pieces in Self.deliveries(bytes) {
            let outcome = try Self.parse(pieces)
            #expect(outcome.events == row.events)
            #expect(outcome.lastEventID == row.reconnect?.lastEventID ?? "")
            if let delay = row.reconnect?.delay {
                // A case without a valid `retry` expects the client's default, for which 3,000 ms stand here.
                #expect(outcome.reconnectionTime ?? .seconds(3) == .milliseconds(delay))
            }
        }
    }

    struct Row: Sendable {
        let name: String
        let stream: String
        let events: [(String, String, String)]
        var id = ""
        var retry: Int?
    }

    static let rows: [Row] = [
        Row(name: "nothing", stream: "", events: []),
        Row(name: "an unfinished event", stream: "data: a\n", events: []),
        Row(name: "an empty data field", stream: "data\n\n", events: [("message", "", "")]),
        Row(
            name: "two empty data fields",
            stream: "data\ndata:\n\n",
            events: [("message", "\n", "")]
        ),
        Row(
            name: "no data",
            stream: "event: a\nid: 1\n\ndata: b\n\n",
            events: [("message", "b", "1")],
            id: "1"
        ),
        Row(
            name: "mixed ends",
            stream: "data: a\rdata: b\r\ndata: c\n\r\n",
            events: [("message", "a\nb\nc", "")]
        ),
        Row(
            name: "CR CR",
            stream: "data: a\r\rdata: b\r\r",
            events: [("message", "a", ""), ("message", "b", "")]
        ),
        Row(
            name: "a comment first",
            stream: ": hi\ndata: a\n: there\n\n",
            events: [("message", "a", "")]
        ),
        Row(name: "one space", stream: "data:  a \n\n", events: [("message", " a ", "")]),
        Row(
            name: "a colon in a value",
            stream: "data: a: b\n\n",
            events: [("message", "a: b", "")]
        ),
        Row(
            name: "case matters",
            stream: "Data: a\nDATA: b\ndata: c\n\n",
            events: [("message", "c", "")]
        ),
        Row(
            name: "longer names",
            stream: "dataset: a\nids: 1\ndata: c\n\n",
            events: [("message", "c", "")]
        ),
        Row(
            name: "the last type counts",
            stream: "event: a\nevent: b\ndata: c\n\n",
            events: [("b", "c", "")]
        ),
        Row(
            name: "an empty type",
            stream: "event: a\nevent:\ndata: c\n\n",
            events: [("message", "c", "")]
        ),
        Row(
            name: "a type is for one block",
            stream: "event: a\n\ndata: c\n\n",
            events: [("message", "c", "")]
        ),
        Row(name: "an unfinished id", stream: "id: 1\n\nid: 2\n", events: [], id: "1"),
        Row(name: "an id with NUL", stream: "id: 1\n\nid: 2\0\n\n", events: [], id: "1"),
        Row(name: "an empty id resets", stream: "id: 1\n\nid\n\n", events: [], id: ""),
        Row(name: "retry", stream: "retry: 1500\n", events: [], retry: 1_500),
        Row(
            name: "retry of nothing but digits",
            stream: "retry: 15\nretry: 1x\nretry: -1\nretry: +2\nretry:\n",
            events: [],
            retry: 15
        ),
        Row(
            name: "a line separator is data",
            stream: "data: a\u{2028}b\u{85}\n\n",
            events: [("message", "a\u{2028}b\u{85}", "")]
        ),
        Row(
            name: "a BOM inside",
            stream: "data: a\n\n\u{FEFF}data: b\n\ndata: c\n\n",
            events: [("message", "a", ""), ("message", "c", "")]
        ),
    ]

    @Test("What the standard says, under every chunking")
    func table() throws {
        for row in Self.rows {
            let expected = row.events.map {
                WebPlatformCase.Event(type: $0.0, data: $0.1, lastEventID: $0.2)
            }
            for pieces in Self.deliveries(Array(row.stream.utf8)) {
                let outcome = try Self.parse(pieces)
                #expect(outcome.events == expected, "\(row.name)")
                #expect(outcome.lastEventID == row.id, "\(row.name)")
                #expect(
                    outcome.reconnectionTime == row.retry.map { .milliseconds($0) },
                    "\(row.name)"
                )
            }
        }
    }

    @Test("What is not UTF-8 becomes U+FFFD")
    func replacement() throws {
        let bytes = Array("data: ".utf8) + [0x61, 0xFF, 0xE2, 0x82, 0x62] + Array("\n\n".utf8)
        for pieces in Self.deliveries(bytes) {
            #expect(try Self.parse(pieces).events.first?.data == "a\u{FFFD}\u{FFFD}b")
        }
    }

    @Test("An id from before stands until the stream sets another")
    func resumed() throws {
        let outcome = try Self.parse(
            [Array("data: a\n\nid: 8\ndata: b\n\n".utf8)],
            lastEventID: "7"
        )
        #expect(outcome.events.map(\.lastEventID) == ["7", "8"])
        #expect(try Self.parse([Array("data: a\n".utf8)], lastEventID: "7").lastEventID == "7")
    }

    @Test(
        "Events and lines of data over the limit are skipped, however they are cut; their ids count"
    )
    func limits() throws {
        let limits = EventStreamLimits(lineByteCount: 10, eventByteCount: 12)
        let kept = "data:1234\ndata:123\ndata:12\n\n"
        #expect(try Self.parse([Array(kept.utf8)], limits: limits).events.count == 1)
        let stream =
            "id:1\ndata: 12345\n\ndata:1234\ndata:1234\ndata:123\ndata:9\nid:2\n\n"
            + ":comment of any length\ndata: next\n\n"
        for ends in ["\n", "\r", "\r\n"] {
            let bytes = Array(stream.replacing("\n", with: ends).utf8)
            for pieces in Self.deliveries(bytes) {
                var parser = EventStreamParser(limits: limits)
                var buffer = ReceiveBuffer(capacity: 16)
                var events: [String] = []
                var (count, byteCount) = (0, 0)
                for piece in pieces {
                    buffer.append(piece)
                    while let event = try parser.next(&buffer) {
                        events.append("\(event.lastEventID) \(event.text)")
                    }
                    #expect(buffer.count <= 10)
                    guard let skipped = parser.takeSkipped() else { continue }
                    count += skipped.count
                    byteCount += skipped.byteCount
                }
                #expect(events == ["2 next"])
                #expect(count == 2)
                #expect(byteCount == 5 + 13)
            }
        }
    }

    @Test("A line over the limit that names or orders events is refused, and stays refused")
    func refusedLines() throws {
        let limits = EventStreamLimits(lineByteCount: 10, eventByteCount: 12)
        let violation = EventStreamViolation.lineTooLong(maximum: 10)
        for line in ["id: 1234567", "event: 1234", "retry: 1234"] {
            for pieces in Self.deliveries(Array("\(line)\n\n".utf8)) {
                #expect(throws: violation) { try Self.parse(pieces, limits: limits) }
            }
            var parser = EventStreamParser(limits: limits)
            var buffer = ReceiveBuffer()
            buffer.append(Array(line.utf8))
            #expect(throws: violation) { try parser.next(&buffer) }
            buffer.append(Array("\n\ndata: 1\n\n".utf8))
            #expect(throws: violation) { try parser.next(&buffer) }
        }
    }

    @Test("Mutated streams end in events, a request for more or a limit, whatever the pieces")
    func mutations() async throws {
        let seeds =
            WebPlatformCase.parse.compactMap { $0.responses.first?.bytes }
            + Self.rows.map { Array($0.stream.utf8) }.filter { !$0.isEmpty }
        let limits = EventStreamLimits(lineByteCount: 64, eventByteCount: 128)
        await Mutations.run(seeds, count: Mutations.count, seed: 0x9_2_6) { bytes in
            var parser = EventStreamParser(limits: limits)
            var buffer = ReceiveBuffer(capacity: 16)
            buffer.append(bytes)
            while let event = try? parser.next(&buffer) {
                if event.data.count > 128 { Issue.record("\(event.data.count) bytes") }
            }
        }
    }
}
