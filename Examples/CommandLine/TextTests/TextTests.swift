import CommandText
import Testing

@Suite("What the command reads and writes")
struct TextTests {
    private static var message: ShownMessage {
        var message = ShownMessage()
        message.topic = "lamps/hall"
        message.body = Array("on\u{1}".utf8)
        message.qos = 1
        message.isRetained = true
        message.identifier = "7"
        message.contentType = "text/plain"
        message.replyTopic = "replies"
        message.correlationData = Array("c".utf8)
        message.expiry = 60
        message.headers = [("a", "1"), ("b", "2")]
        message.time = WallTime(seconds: 1_000_000_000, nanoseconds: 5_006_000)
        return message
    }

    @Test(
        "Each field of a format",
        arguments: [
            ("%t", "lamps/hall"), ("%p", "on\u{1}"), ("%x", "6f6e01"), ("%X", "6F6E01"),
            ("%l", "3"), ("%q", "1"), ("%r", "1"), ("%d", "0"), ("%m", "7"),
            ("%C", "text/plain"), ("%R", "replies"), ("%D", "c"), ("%E", "60"),
            ("%P", "a:1 b:2"), ("%I", "2001-09-09T01:46:40.005006Z"),
            ("%U", "1000000000.005006000"), ("100%%", "100%"), (#"a\tb\\\n"#, "a\tb\\\n"),
            ("[%t] %q", "[lamps/hall] 1"), ("", ""),
        ]
    )
    func fields(format: String, expected: String) throws {
        var output: [UInt8] = []
        try OutputFormat(format).append(Self.message, to: &output)
        #expect(String(decoding: output, as: UTF8.self) == expected)
    }

    @Test("What a peer has named controls no terminal; a body does not on a terminal")
    func terminal() throws {
        var message = Self.message
        message.topic = "a\u{1B}]0;x\u{7}"
        message.headers = [("n\u{9B}", "v\n\u{202E}")]
        message.identifier = "\u{1B}1"
        message.contentType = "\u{1B}2"
        message.replyTopic = "\u{1B}3"
        message.body = Array("b\u{1B}[2J\t\n\u{9B}".utf8) + [0x9B, 0xFF]
        message.correlationData = [0x1B]
        var format = try OutputFormat("%t %P %m %C %R %p %D %x %j")
        for isForTerminal in [false, true] {
            format.isForTerminal = isForTerminal
            var output: [UInt8] = []
            format.append(message, to: &output)
            let names = #"a\u{1b}]0;x\u{7} n\u{9b}:v\u{a}\u{202e} \u{1b}1 \u{1b}2 \u{1b}3 "#
            #expect(output.starts(with: names.utf8))
            let rest = Array(output.dropFirst(names.utf8.count))
            let body =
                isForTerminal
                ? Array("b\\u{1b}[2J\t\n\\u{9b}\\x9b\\xff \\u{1b} ".utf8)
                : message.body + [0x20, 0x1B, 0x20]
            #expect(rest.starts(with: body + Array("621b5b324a090ac29b9bff {".utf8)))
            let json = rest.dropFirst(body.count)
            #expect(!json.contains { $0 < 0x20 || $0 == 0x9B || $0 == 0x7F })
        }
        #expect(!OutputFormat.payload.isForTerminal && OutputFormat.payload.isPayloadAlone)
        #expect(TerminalText.spaced("a\u{9B}b\n") == "a b ")
    }

    @Test("A wrong format is refused", arguments: ["%", "%z", "a%"])
    func wrongFormats(format: String) {
        #expect(throws: TextError.self) { try OutputFormat(format) }
    }

    @Test("A message as JSON, with the payload as text or as JSON")
    func messageAsJSON() throws {
        var message = Self.message
        var output: [UInt8] = []
        try OutputFormat("%j").append(message, to: &output)
        #expect(JSONText.compact(output) == output)
        #expect(String(decoding: output, as: UTF8.self).hasSuffix(#""payload":"on\u0001"}"#))
        message.body = Array(#"{ "a" : [ 1 ] }"#.utf8)
        output = []
        try OutputFormat("%J").append(message, to: &output)
        #expect(String(decoding: output, as: UTF8.self).hasSuffix(#""payload":{"a":[1]}}"#))
    }

    @Test("JSON with a member on each line keeps numbers and the order of members")
    func prettyJSON() throws {
        let json = #"{"b":1.50e+3,"a":[true,null,"\"x"],"e":{},"f":[]}"#
        let expected = """
            {
              "b": 1.50e+3,
              "a": [
                true,
                null,
                "\\"x"
              ],
              "e": {},
              "f": []
            }
            """
        let pretty = try #require(JSONText.pretty(Array(json.utf8)))
        #expect(String(decoding: pretty, as: UTF8.self) == expected)
        #expect(JSONText.compact(pretty) == Array(json.utf8))
    }

    @Test("JSON that would control a terminal has numbers in place of these characters")
    func controlsInJSON() throws {
        let json = Array("[\"a\u{9B}\u{7F}\u{202E}ü😀\\u001b\"]".utf8)
        let compact = try #require(JSONText.compact(json))
        #expect(String(decoding: compact, as: UTF8.self) == #"["a\u009b\u007f\u202eü😀\u001b"]"#)
    }

    @Test("JSON that is no UTF-8 is refused, and shown as text within JSON")
    func invalidUTF8() throws {
        var message = Self.message
        message.body = [0x22, 0xC3, 0x22]
        #expect(JSONText.compact(message.body) == nil && JSONText.pretty(message.body) == nil)
        var output: [UInt8] = []
        try OutputFormat("%J").append(message, to: &output)
        #expect(
            String(validating: output, as: UTF8.self)?.hasSuffix(#""payload":"\"�\""}"#) == true
        )
        #expect(JSONText.compact(output) == output)
    }

    @Test("Nested JSON is not indented to many times its length")
    func deepJSON() {
        let deep = String(repeating: "[", count: 250)
        let ones = Array(repeating: "1", count: 100_000).joined(separator: ",")
        let json = Array((deep + ones + String(repeating: "]", count: 250)).utf8)
        #expect(JSONText.pretty(json) == nil)
        #expect(JSONText.compact(json) == json)
    }

    @Test(
        "What is no JSON is refused",
        arguments: [
            "", "{", #"{"a"}"#, "[1,]", "01", "1 2", "\"\u{1}\"", "nul", "'a'", "-", "1.", "[1 2]",
            #""\q""#, #""\u12g4""#, #""\u12"#, "\"\\\n\"", #""\"#, "\"\t\"",
            String(repeating: "[", count: 10_000),
        ]
    )
    func wrongJSON(text: String) {
        #expect(JSONText.pretty(Array(text.utf8)) == nil)
    }

    @Test(
        "Arguments are quoted for a shell",
        arguments: [
            ("plain-1.2/a:b", "plain-1.2/a:b"), ("", "''"), ("a b", "'a b'"),
            ("it's", #"'it'\''s'"#), ("$HOME `x`", "'$HOME `x`'"), ("#", "'#'"), ("+", "+"),
            ("ü\n", #"$'ü\x0a'"#), ("\u{1B}[2J'\\", #"$'\x1b[2J\'\\'"#),
            ("\u{9B}1m", #"$'\xc2\x9b1m'"#), ("~", "'~'"), ("!", "'!'"),
        ]
    )
    func quoting(argument: String, expected: String) {
        #expect(Shell.quoted(argument) == expected)
    }

    @Test("Lines over the borders of blocks", arguments: [1, 2, 3, 7, 100])
    func lines(blockSize: Int) throws {
        let input = Array("one\n\ntwo\r\nthree".utf8)
        var splitter = LineSplitter(limit: 10)
        var lines: [[UInt8]] = []
        for begin in stride(from: 0, to: input.count, by: blockSize) {
            let block = Array(input[begin..<min(begin + blockSize, input.count)])
            lines += try splitter.add(block)
        }
        let last = splitter.finish()
        #expect(lines.map { String(decoding: $0, as: UTF8.self) } == ["one", "", "two\r"])
        #expect(last == Array("three".utf8))
        #expect(splitter.finish() == nil)
    }

    @Test("A line above the limit is refused before it is kept")
    func longLine() {
        var splitter = LineSplitter(limit: 3)
        #expect(throws: TextError.self) {
            _ = try splitter.add(Array("abcd".utf8))
        }
    }

    @Test(
        "Times",
        arguments: [
            ("250ms", 250), ("1.5s", 1_500), ("2m", 120_000), ("1h", 3_600_000), ("30", 30_000),
            ("0", 0), ("100000h", 360_000_000_000),
        ]
    )
    func times(text: String, milliseconds: Int) {
        #expect(Duration(argument: text) == .milliseconds(milliseconds))
    }

    @Test(
        "What is no time is refused",
        arguments: ["", "s", "-1s", "1d", "1e99", "nan", "ms", "100001h"]
    )
    func wrongTimes(text: String) {
        #expect(Duration(argument: text) == nil)
    }

    @Test("A time that nanoseconds cannot count is the greatest")
    func longTime() {
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
    }

    @Test("A numbered body is read back, and any other one is not")
    func numberedBodies() {
        func read(_ text: String) -> [Int]? {
            Array(text.utf8).withUnsafeBytes { bytes in
                NumberedBody.read(bytes, count: 10, now: 100).map { [$0.number, $0.age] }
            }
        }
        let body = NumberedBody.bytes(9, time: 40, size: 12)
        #expect(body.count == 12)
        #expect(read(String(decoding: body, as: UTF8.self)) == [9, 60])
        let wrong = [
            "", "1", "1 ", "10 40 ", "1 101 ", "-1 40 ", "1 -40 ", "x 1 ", "1 x ", " 1 40 ", "1 40",
            "1 9223372036854775808 ", "18446744073709551617 40 ", "99999999999999999999999 1 ",
        ]
        for text in wrong { #expect(read(text) == nil, "\(text)") }
    }

    @Test("Figures as people read them")
    func figures() {
        #expect(shown(1_234_567) == "1,234,567")
        #expect(shown(-12) == "-12")
        #expect(shown(nanoseconds: 999) == "999 ns")
        #expect(shown(nanoseconds: 1_234_000) == "1.23 ms")
        #expect(shown(nanoseconds: 2_000_000_000) == "2 s")
        #expect(shown(nanoseconds: 131_072_000) == "131 ms")
    }

    @Test(
        "Packets with their sections",
        arguments: [
            ("PUBLISH id=1", ServerAddress.Family.mqtt, "MQTT 3.3"),
            ("PINGREQ", .mqtt, "MQTT 3.12"), ("MESSAGE", .stomp, "STOMP 1.2, MESSAGE"),
            ("GET /events", .events, "RFC 9110, 9.3"), ("200 OK", .events, "RFC 9110, 15"),
            ("event news", .events, "HTML 9.2.6"),
        ]
    )
    func sections(text: String, family: ServerAddress.Family, section: String) {
        #expect(PacketSections.section(of: text, in: family) == section)
    }

    @Test("A name that is no packet has no section")
    func noSection() {
        #expect(PacketSections.section(of: "SEND", in: .mqtt) == nil)
    }
}
