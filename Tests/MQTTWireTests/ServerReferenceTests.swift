import MQTTWire
import Testing

@Suite("MQTT 5, 4.11: the text of a Server Reference") struct ServerReferenceTests {
    private static let long = String(repeating: "a", count: 253)

    @Test(
        "References that are used, and the number of those that are not",
        arguments: [
            ("", [], 0), (" ", [], 0),
            ("b", ["b"], 0), ("b:1", ["b:1"], 0),
            ("b.example.org:65535", ["b.example.org:65535"], 0),
            ("127.0.0.1", ["127.0.0.1"], 0), ("a_b-c:2", ["a_b-c:2"], 0),
            ("[::1]", ["::1"], 0), ("[::1]:2", ["::1:2"], 0),
            ("[2001:DB8::a.1]:3", ["2001:DB8::a.1:3"], 0),
            // The order stays, and each is used once.
            ("c b:1 c [::1] b:1", ["c", "b:1", "::1"], 0), ("  b   c ", ["b", "c"], 0),
            // The first four.
            ("a b c d e f", ["a", "b", "c", "d"], 2), ("a a a a a b", ["a", "b"], 0),
            // Other forms.
            (":1", [], 1), ("b:", [], 1), ("b:0", [], 1), ("b:65536", [], 1), ("b:+1", [], 1),
            ("b:000001", [], 1), ("b:1:2", [], 1), ("b:x c", ["c"], 1), ("::1", [], 1),
            ("[::1", [], 1), ("[::1]x", [], 1), ("[::1]:", [], 1), ("[b]", [], 1), ("[]", [], 1),
            ("[fe80::1%eth0]", [], 1), ("[::1]]", [], 1), ("u:p@b", [], 1), ("u@b", [], 1),
            ("mqtts://b", [], 1), ("b/p", [], 1), ("b\tc", [], 1), ("b\u{0}", [], 1),
            ("b,c", [], 1), (".b", [], 1), ("-b", [], 1), ("b\u{E9}", [], 1), ("b\r\nc", [], 1),
            (Self.long, [Self.long], 0), (Self.long + "a", [], 1),
            (String(repeating: "b ", count: 512), ["b"], 0),
            (String(repeating: "b ", count: 512) + "c", [], 1),
        ] as [(String, [String], Int)]
    )
    func table(text: String, servers: [String], ignored: Int) {
        let reference = MQTTServerReference(text)
        let found = reference.servers.map { server in
            server.port.map { "\(server.name):\($0)" } ?? server.name
        }
        #expect(found == servers)
        #expect(reference.ignoredCount == ignored)
    }
}
