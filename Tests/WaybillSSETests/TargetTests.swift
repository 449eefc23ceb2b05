import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

/// For tests of compressed replies.
private let decodes = ConditionTrait.enabled(
    if: HTTPContentDecoder.acceptedCodings != nil,
    "the system has no zlib"
)

@Suite("Event stream transport: targets and replies", .inSimulation, .timeLimit(.minutes(30)))
struct TargetTests {
    @Test(
        "A query of the base URL stays behind the path",
        arguments: [
            ("http://a/b?k=1", "c", "/b/c?k=1"), ("http://a/b?k=1", "?d=2", "/b?k=1&d=2"),
            ("http://a/?k=1", "/c?d=2", "/c?k=1&d=2"), ("http://a/b/", "c?d?e", "/b/c?d?e"),
            ("http://a", "?", "/?"),
        ]
    )
    func baseQuery(_ url: String, _ topic: String, _ target: String) async throws {
        let server = HTTPServer([.close(Say.status(204))])
        let transport = try server.transport(url)
        try await Provider<StreamEntry>(transport: transport).request(.post(.none, to: topic))
        #expect(server.requests.map(\.head.target) == [target])
        await transport.shutdown()
    }

    @Test("A compressed reply that was cut short is no reply", decodes)
    func cutReply() async throws {
        let whole: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 1, 227, 81,
            61, 141, 23, 0, 0, 0,
        ]
        for count in [whole.count, whole.count - 9, whole.count - 1, 0] {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(count)\r\n\r\n"
            let server = HTTPServer([.open(Array(head.utf8) + whole[..<count])])
            let transport = try server.transport()
            let provider = Provider<StreamEntry>(transport: transport)
            if count == 0 || count == whole.count {
                let reply: String = try await provider.request(.post(.text("x")))
                #expect(reply == (count == 0 ? "" : "hello hello hello hello"))
            } else {
                let error = await #expect(throws: WaybillError.self) {
                    try await provider.request(.post(.text("x")))
                }
                #expect(error?.code == .protocolViolation)
            }
            await transport.shutdown()
        }
    }

    @Test("A stream of several gzip members is one stream", decodes, arguments: [true, false])
    func members(_ isWhole: Bool) async throws {
        let members: [[UInt8]] = [
            [
                31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 73, 44, 73, 180, 82, 72, 228, 226, 2, 0, 126,
                227, 196, 56, 9, 0, 0, 0,
            ],
            [
                31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 73, 44, 73, 180, 82, 72, 226, 226, 2, 0, 39,
                93, 130, 58, 9, 0, 0, 0,
            ], [0, 0],
        ]
        let bytes = Array(members.joined())
        let chunks: [[UInt8]] = isWhole ? [bytes] : bytes.map { [$0] }
        var body: [UInt8] = []
        for chunk in chunks {
            body += Array("\(String(chunk.count, radix: 16))\r\n".utf8)
            body += chunk + [13, 10]
        }
        let fields = "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
        let server = HTTPServer([.open(Say.stream("", fields) + body)])
        let transport = try server.transport()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        await untilQuiet()
        await transport.shutdown()
        var texts: [String?] = []
        for try await message in messages { texts.append(message.text) }
        #expect(texts == ["a", "b"])
    }

    @Test("A reply that is coded twice is handed on as it is")
    func codedTwice() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\nContent-Length: 2\r\n\r\nab"
        let server = HTTPServer([.open(Array(head.utf8))])
        let transport = try server.transport()
        let reply: String = try await Provider<StreamEntry>(transport: transport)
            .request(.post(.text("x")))
        #expect(reply == "ab")
        await transport.shutdown()
    }
}
