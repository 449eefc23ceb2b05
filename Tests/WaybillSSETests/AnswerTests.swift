import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

/// Responses with wrong content, or larger than a limit.
@Suite("Event stream transport: answers", .inSimulation, .timeLimit(.minutes(30)))
struct AnswerTests {
    /// The text "no room" as gzip.
    private static let zipped: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0xCB, 0x57, 0x28, 0xCA,
        0xCF, 0xCF, 0x05, 0x00, 0xCA, 0xF4, 0x5D, 0x2D, 0x07, 0x00, 0x00, 0x00,
    ]
    private static var hasZlib: Bool { HTTPContentDecoder.acceptedCodings != nil }

    private static func zipped(_ status: Int, _ fields: String = "") -> [UInt8] {
        let head =
            "HTTP/1.1 \(status) Words\r\nContent-Encoding: gzip\r\nContent-Length: \(zipped.count)\r\n"
        return Array("\(head)\(fields)\r\n".utf8) + zipped
    }

    private func failure(
        _ server: HTTPServer,
        _ entry: StreamEntry,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) async throws -> WaybillError? {
        let transport = try server.transport("http://example.com/api", change)
        let provider = Provider<StreamEntry>(transport: transport)
        let error = await #expect(throws: WaybillError.self) {
            if case .subscribe = entry.command {
                _ = try await provider.messages(entry)
            } else {
                try await provider.request(entry)
            }
        }
        await transport.shutdown()
        return error
    }

    @Test(
        "The compressed body of a refusal is decoded, of a stream's as of a send's",
        .enabled(if: hasZlib, "no zlib here")
    )
    func compressedRefusals() async throws {
        for entry in [StreamEntry.listen(), .post(.text("x"))] {
            let server = HTTPServer([.open(Self.zipped(503))])
            let error = try await failure(server, entry)
            #expect(error?.code == .connectionRefused)
            #expect((error?.underlying as? HTTPRefusal)?.body.text == "no room")
        }
    }

    @Test(
        "A compressed answer is refused where identity was asked for",
        .enabled(if: hasZlib, "no zlib here")
    )
    func uninvitedCodings() async throws {
        for entry in [StreamEntry.listen(), .post(.text("x"))] {
            let server = HTTPServer([
                .open(Self.zipped(200, "Content-Type: text/event-stream\r\n"))
            ])
            let error = try await failure(server, entry) { $0.acceptsCompression = false }
            #expect(error?.code == .protocolViolation)
            #expect(error?.message.contains("gzip") == true)
            #expect(server.requests.first?.head.headers.first("accept-encoding") == "identity")
        }
    }

    @Test("The status of a refusal is kept, however long its body")
    func longRefusal() async throws {
        let body = String(repeating: "x", count: 5_000)
        let server = HTTPServer([.open(Say.status(500, body: body)), .open(Say.status(200))])
        let transport = try server.transport { $0.maximumEventSize = 1_000 }
        let provider = Provider<StreamEntry>(transport: transport)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("x")))
        }
        #expect(error?.code == .connectionRefused)
        let refusal = try #require(error?.underlying as? HTTPRefusal)
        #expect(refusal.status == 500)
        #expect(refusal.body.text == String(repeating: "x", count: 1_000))
        // The rest of the body was not awaited, so the connection cannot be used again.
        try await provider.request(.post(.text("y")))
        #expect(server.endpoints.count == 2)
        await transport.shutdown()
    }

    @Test("The status of a refusal is kept when its body is cut short")
    func cutRefusal() async throws {
        let half = Array("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nbecause".utf8)
        let error = try await failure(HTTPServer([.close(half)]), .post(.text("x")))
        #expect(error?.code == .unauthorized)
        #expect((error?.underlying as? HTTPRefusal)?.body.text == "because")
    }

    @Test(
        "A Location that is no URL is the server's fault",
        arguments: ["http://", "http://[::1", "http://h:99999/", "http://a b/", "//"]
    )
    func badLocation(_ location: String) async throws {
        for entry in [StreamEntry.listen(), .post(.text("x"))] {
            let server = HTTPServer([.close(Say.status(302, "Location: \(location)\r\n"))])
            let error = try await failure(server, entry)
            #expect(error?.code == .protocolViolation, "\(location)")
        }
    }

    @Test("An event of one line may be as long as an event may be, and no longer")
    func longLine() async throws {
        let data = String(repeating: "x", count: 1_000)
        let stream = "data: \(data)\n\ndata: \(data)x\n\ndata: y\n\n"
        let server = HTTPServer([.open(Say.stream(stream))])
        let transport = try server.transport { $0.maximumEventSize = 1_000 }
        var messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
            .makeAsyncIterator()
        #expect(try await messages.next()?.text == data)
        #expect(try await messages.next()?.text == "y")
        await transport.shutdown()

        // Half a megabyte of JSON on one line, with the default limits.
        let json = "[" + String(repeating: "1,", count: 1 << 18) + "1]"
        let defaults = HTTPServer([.open(Say.stream("data: \(json)\n\n"))])
        let other = try defaults.transport()
        var long = try await Provider<StreamEntry>(transport: other).messages(.listen())
            .makeAsyncIterator()
        #expect(try await long.next()?.text == json)
        await other.shutdown()
    }
}
