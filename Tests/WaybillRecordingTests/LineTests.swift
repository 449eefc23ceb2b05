import Testing
import WaybillRecording
import WireCore
import WireTestSupport

@testable import enum WaybillRecording.JSONFault
@testable import struct WaybillRecording.JSONScanner
@testable import enum WaybillRecording.RecordingLine
@testable import enum WaybillRecording.RecordingTime

/// One line of a file: written, read, and hostile.
@Suite("Lines of a recording", .timeLimit(.minutes(30))) struct LineTests {
    private static let header = #"{"format":"waybill-recording","version":1,"time":0.000000}"#

    private static func line(_ text: String) throws -> RecordingLine {
        try RecordingLine(Array(text.utf8))
    }

    private static var full: Recording.Record {
        var record = Recording.Record(
            number: 7,
            time: .microseconds(1_732_788_000_000_042),
            kind: .frame,
            direction: .inbound,
            name: "PUBLISH",
            topic: "chat/é",
            byteCount: 31,
            text: "PUBLISH topic=chat"
        )
        record.label = "app"
        record.body = "hi \"you\"\n"
        return record
    }

    @Test("The keys stand in the order of the page, and empty ones are left out")
    func keys() throws {
        #expect(
            Self.full.json == """
                {"time":1732788000.000042,"number":7,"direction":"in","kind":"frame","name":"PUBLISH",\
                "topic":"chat/é","bytes":31,"label":"app","text":"PUBLISH topic=chat",\
                "body":"hi \\"you\\"\\n"}
                """
        )
        let state = Recording.Record(
            number: 1,
            time: .zero,
            kind: .state,
            name: "idle",
            text: "idle"
        )
        #expect(
            state.json
                == #"{"time":0.000000,"number":1,"kind":"state","name":"idle","text":"idle"}"#
        )
    }

    @Test(
        "A record comes back as it was, with bodies of text and of bytes and with each control character"
    )
    func roundTrip() throws {
        var bytes = Self.full
        bytes.body = Payload([0, 0xFF, 0xC2])
        (bytes.bodyByteCount, bytes.label, bytes.topic) = (100, nil, nil)
        var empty = Self.full
        (empty.name, empty.text, empty.topic) = ("", "", "")
        var controls = Self.full
        controls.topic = String(
            String.UnicodeScalarView((0..<0x120).compactMap(Unicode.Scalar.init))
        )
        controls.body = Payload("\u{2028}\u{202E}👩‍👩‍👧\u{0}")
        var dropped = Recording.Record(
            number: UInt64.max,
            time: .microseconds(Int64.max),
            kind: .dropped,
            name: "dropped",
            text: ""
        )
        dropped.count = .max
        for record in [Self.full, bytes, empty, controls, dropped] {
            let json = record.json
            #expect(json.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            #expect(!json.unicodeScalars.contains { (0x80..<0xA0).contains($0.value) })
            #expect(try Self.line(json) == .record(record))
        }
    }

    @Test("Unknown keys and kinds, white space, escapes and nulls are read")
    func tolerant() throws {
        let text = #"""
             { "new" : [ 1 , -2.5e+7 , {"a":{"b":[]},"c":"\u00e9"}, true,false,null , {} ] ,"kind":"frame",
             "name":"PI\u004eG","topic":null,"text":"\ud83d\ude00\/\b\f\t","time":12,"number":3,"direction":"out"}
            """#
        guard case .record(let record) = try Self.line(text) else {
            Issue.record("no record")
            return
        }
        #expect(record.name == "PING" && record.topic == nil && record.text == "😀/\u{8}\u{C}\t")
        #expect(record.time == .seconds(12) && record.direction == .outbound && record.number == 3)
        #expect(
            try Self.line(#"{"kind":"later","time":1,"text":{}}"#.replacing("{}", with: "\"\""))
                == .unknown
        )
    }

    @Test(
        "A line that is none is an error, and nothing traps",
        arguments: [
            ("", JSONFault.syntax(0)), ("{", .syntax(1)), ("[]", .syntax(0)),
            ("{}", .value("kind")),
            ("null", .syntax(0)), (#"{"kind":"frame"} x"#, .syntax(17)),
            (#"{"kind":"frame",}"#, .syntax(16)), (#"{"kind" "frame"}"#, .syntax(8)),
            (#"{"kind":frame}"#, .syntax(8)), (#"{"kind":"fr"#, .syntax(11)),
            (#"{"kind":"\x"}"#, .syntax(9)), (#"{"kind":"\u12g4"}"#, .syntax(11)),
            (#"{"kind":"\ud83d"}"#, .syntax(9)), (#"{"kind":"\ud83d\u0041"}"#, .syntax(9)),
            (#"{"kind":"\ude00"}"#, .syntax(9)), ("{\"kind\":\"a\tb\"}", .syntax(10)),
            (#"{"time":1e3}"#, .value("time")), (#"{"time":-1}"#, .value("time")),
            (#"{"time":99999999999999999999}"#, .value("time")),
            (#"{"time":9223372036854}"#, .value("kind")),
            (#"{"time":9223372036855}"#, .value("time")),
            (#"{"number":-1}"#, .value("number")), (#"{"number":1.5}"#, .value("number")),
            (#"{"number":18446744073709551616}"#, .value("number")),
            (#"{"bytes":9223372036854775808}"#, .value("bytes")),
            (#"{"count":"1"}"#, .syntax(9)), (#"{"direction":"up"}"#, .value("direction")),
            (#"{"body64":"a"}"#, .value("body64")), (#"{"new":01}"#, .syntax(8)),
            (#"{"new":1.}"#, .syntax(9)), (#"{"new":-}"#, .syntax(8)), (#"{"new":1e}"#, .syntax(9)),
            (#"{"new":[1,]}"#, .syntax(10)), (#"{"new":[1}"#, .syntax(9)),
            (#"{"new":{"a"}}"#, .syntax(11)), (#"{"new":tru}"#, .syntax(7)),
            (#"{"format":"other","version":1}"#, .value("kind")),
            (#"{"format":"waybill-recording"}"#, .value("version")),
            (#"{"format":"waybill-recording","version":0}"#, .value("version")),
        ]
    )
    func hostile(text: String, fault: JSONFault) {
        #expect(throws: fault) { try Self.line(text) }
    }

    @Test("Bad UTF-8 and deep nesting are errors, and the deepest allowed nesting is read")
    func limits() throws {
        #expect(throws: JSONFault.encoding) {
            try RecordingLine(
                Array(#"{"kind":"frame","text":""#.utf8) + [0xC0, 0x80] + Array(#""}"#.utf8)
            )
        }
        for open in ["[", #"{"a":"#] {
            let close = open == "[" ? "]" : "}"
            func nested(_ depth: Int) -> String {
                let value =
                    String(repeating: open, count: depth) + "1"
                    + String(repeating: close, count: depth)
                return #"{"kind":"frame","new":\#(value)}"#
            }
            #expect(throws: Never.self) { try Self.line(nested(JSONScanner.maximumDepth)) }
            #expect(throws: JSONFault.depth) { try Self.line(nested(JSONScanner.maximumDepth + 1)) }
            #expect(throws: JSONFault.depth) { try Self.line(nested(1_000_000)) }
        }
    }

    @Test("Changed bytes are read, or are an error, and what is read is written alike")
    func mutated() async {
        let seeds = [Self.full.json, Self.header, #"{"new":[{"a":[]}],"kind":"event"}"#]
        await Mutations.run(seeds.map { Array($0.utf8) }, count: Mutations.count, seed: 34) {
            bytes in
            guard case .record(let record)? = try? RecordingLine(bytes) else { return }
            #expect((try? Self.line(record.json)) == .record(record))
        }
    }

    @Test("Times have six decimals, cut and not rounded")
    func times() {
        #expect(RecordingTime.text(.nanoseconds(1_999_999_999)) == "1.999999")
        #expect(RecordingTime.text(.microseconds(60_000_001)) == "60.000001")
        #expect(RecordingTime.text(.seconds(-1)) == "0.000000")
        #expect(RecordingTime.time("1.9999999".utf8) == .microseconds(1_999_999))
        #expect(RecordingTime.time("1.5".utf8) == .milliseconds(1_500))
    }
}
