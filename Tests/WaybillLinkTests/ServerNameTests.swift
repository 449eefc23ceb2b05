import Testing
import WaybillLink

@Suite("The name of a server, as it is asked for and verified")
struct ServerNameTests {
    @Test(
        "A name is asked for without the dot of an absolute one, an address without its zone",
        arguments: [
            ("example.com", "example.com", false), ("example.com.", "example.com", false),
            ("localhost", "localhost", false), ("a_b.example", "a_b.example", false),
            ("127.0.0.1", "127.0.0.1", true), ("255.255.255.255", "255.255.255.255", true),
            ("::1", "::1", true), ("fe80::1%eth0", "fe80::1", true),
            // Forms that only some resolvers accept as addresses are names.
            ("127.1", "127.1", false), ("127.0.0.01", "127.0.0.01", false),
            ("127.0.0.256", "127.0.0.256", false), ("0x7f000001", "0x7f000001", false),
        ]
    )
    func taken(host: String, text: String, isAddress: Bool) throws {
        let name = try ServerName(host)
        #expect(name.text == text)
        #expect(name.isAddress == isAddress)
    }

    @Test(
        "What cannot be one host's name is refused",
        arguments: [
            "", ".", "..", ".example.com", "a..example.com", "example.com..", "*.example.com", "*",
            "a b", "a\0b", "b\u{FC}cher.example", "%eth0:",
        ]
    )
    func refused(host: String) {
        #expect(throws: LinkError.self) { try ServerName(host) }
    }
}
