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
            if entry.command.kind == .subscribe {
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

    @Test("The status of a refusal is kept, and 64 KiB of its body")
    func longRefusal() async throws {
        let body = String(repeating: "x", count: 70_000)
        let server = HTTPServer([.open(Say.status(500, body: body)), .open(Say.status(200))])
        let transport = try server.transport {
            $0.limits.eventSize = 1_000
            $0.limits.replySize = 1_000
        }
        let provider = Provider<StreamEntry>(transport: transport)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("x")))
        }
        #expect(error?.code == .connectionRefused)
        let refusal = try #require(error?.underlying as? HTTPRefusal)
        #expect(refusal.status == 500)
        #expect(refusal.body.text == String(repeating: "x", count: 65_536))
        // The rest of the body was not awaited, so the connection cannot be used again.
        try await provider.request(.post(.text("y")))
        #expect(server.endpoints.count == 2)
        await transport.shutdown()
    }

    @Test(
        "A reply may be as long as its own limit, and no longer; a broken coding is another error"
    )
    func replies() async throws {
        let server = HTTPServer([
            .open(Say.status(200, body: String(repeating: "x", count: 1_000))),
            .open(Say.status(200, body: String(repeating: "x", count: 1_001))),
            .open(Say.status(200, "Content-Encoding: gzip\r\n", body: "no gzip")),
        ])
        let transport = try server.transport {
            $0.limits.eventSize = 10
            $0.limits.replySize = 1_000
        }
        let provider = Provider<StreamEntry>(transport: transport)
        let text: String = try await provider.request(.post(.text("x")))
        #expect(text.utf8.count == 1_000)
        await expectError(.limitExceeded) { try await provider.request(.post(.text("x"))) }
        let broken = await expectError(.protocolViolation) {
            try await provider.request(.post(.text("x")))
        }
        #expect(broken?.isRetryable == true && broken?.mayHaveArrived == true)
        await transport.shutdown()
    }

    @Test(
        "Text is read in its character set",
        arguments: [
            ("text/plain; charset=iso-8859-1", [0x67, 0xFC, 0x6E] as [UInt8], "gün"),
            ("text/plain;Charset=\"UTF-16\"", [0xFF, 0xFE, 0xFC, 0x00], "ü"),
            ("text/plain; charset=utf-16", [0x00, 0xFC], "ü"),
            ("text/plain; charset=utf-16le", [0xFC, 0x00], "ü"),
            ("text/plain; charset=utf-8", Array("ü".utf8), "ü"),
            ("text/plain; charset=koi8-r", Array("ü".utf8), "ü"),
            ("text/plain", [0xFC], nil), ("text/plain; charset=utf-16", [0xFC], nil),
            ("text/plain; charset=utf-16be", [0xD8, 0x00], nil),
        ]
    )
    func characterSets(_ type: String, _ bytes: [UInt8], _ expected: String?) async throws {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Length: \(bytes.count)\r\nContent-Type: \(type)\r\n\r\n"
        let server = HTTPServer([.open(Array(head.utf8) + bytes)])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        if let expected {
            let text: String = try await provider.request(.post(.text("x")))
            #expect(text == expected)
        } else {
            await expectError(.decodingFailed) {
                let _: String = try await provider.request(.post(.text("x")))
            }
        }
        await transport.shutdown()
    }

    @Test("A refusal whose body does not end is told after a second", arguments: [true, false])
    func drippingRefusal(_ isStream: Bool) async throws {
        let head = Array("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nbecause".utf8)
        let server = HTTPServer([.open(head)])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let asking = Task {
            if isStream {
                _ = try await provider.messages(.listen())
            } else {
                try await provider.request(.post(.text("x")))
            }
        }
        try await waitUntil { server.requests.count == 1 }
        await untilQuiet()
        server.clock.advance(by: .nanoseconds(999_999_999))
        await untilQuiet()
        #expect(server.ends == 0)
        server.clock.advance(by: .nanoseconds(1))
        let error = await expectError(.unauthorized) { try await asking.value }
        #expect((error?.underlying as? HTTPRefusal)?.body.text == "because")
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
        let transport = try server.transport { $0.limits.eventSize = 1_000 }
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
