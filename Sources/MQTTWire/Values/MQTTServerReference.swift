/// The servers that a Server Reference names (MQTT 5, 4.11).
///
/// The text is a list of references with a space between two of them. Each is `name`, `name:port`, `[address]` or
/// `[address]:port`. The specification leaves other forms open. They are not used, because their meaning is unknown.
///
/// The text comes from a peer, so that it is bounded: a longer text is not read at all, and references beyond
/// ``maximumCount`` are not used.
package struct MQTTServerReference: Hashable, Sendable {
    /// One server.
    package struct Server: Hashable, Sendable {
        /// A name, or an IPv4 or IPv6 address without brackets.
        package let name: String
        /// The TCP port; nil if the reference has none.
        package let port: UInt16?

        package init(name: String, port: UInt16?) {
            self.name = name
            self.port = port
        }
    }

    /// The longest text that is read, in bytes.
    package static let maximumLength = 1_024
    /// The number of references that are used.
    package static let maximumCount = 4
    /// The longest name, in bytes (RFC 1035, 2.3.4).
    static let maximumNameLength = 253

    /// The servers, each once, in the order of the text.
    package private(set) var servers: [Server] = []
    /// The number of references that are not used; 1 for a text that is too long.
    package private(set) var ignoredCount = 0

    /// Reads the text of a Server Reference.
    package init(_ text: String) {
        let bytes = text.utf8
        guard bytes.count <= Self.maximumLength else {
            ignoredCount = 1
            return
        }
        for reference in bytes.split(separator: UInt8(ascii: " ")) {
            guard let server = Self.server(reference), servers.count < Self.maximumCount else {
                ignoredCount += 1
                continue
            }
            if !servers.contains(server) { servers.append(server) }
        }
    }

    private static func server(_ reference: Substring.UTF8View) -> Server? {
        var rest = reference
        let name: Substring.UTF8View
        if rest.first == UInt8(ascii: "[") {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            name = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
            guard isAddress(name) else { return nil }
        } else {
            name = rest.prefix { $0 != UInt8(ascii: ":") }
            rest = rest[name.endIndex...]
            guard isName(name) else { return nil }
        }
        guard !rest.isEmpty else { return Server(name: String(Substring(name)), port: nil) }
        guard rest.removeFirst() == UInt8(ascii: ":"), let port = port(rest) else { return nil }
        return Server(name: String(Substring(name)), port: port)
    }

    /// Whether the bytes may be an IPv6 address; its zone would mean nothing on another machine.
    private static func isAddress(_ bytes: Substring.UTF8View) -> Bool {
        bytes.count <= 45 && bytes.contains(UInt8(ascii: ":"))
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                    UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: ":"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }

    /// Whether the bytes may be a host name or an IPv4 address.
    private static func isName(_ bytes: Substring.UTF8View) -> Bool {
        !bytes.isEmpty && bytes.count <= maximumNameLength
            && bytes.first != UInt8(ascii: ".") && bytes.first != UInt8(ascii: "-")
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    private static func port(_ digits: Substring.UTF8View) -> UInt16? {
        guard (1...5).contains(digits.count),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let port = UInt16(Substring(digits)), port > 0
        else { return nil }
        return port
    }
}
