import Testing
import Waybill
import WaybillLink
import WaybillSSE
import WaybillTesting
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

@Suite(
    "Event streams by nginx with nchan",
    .enabled(
        if: TestServers.port("NGINX") != nil,
        "nginx is not running: Tests/Servers/with --install nginx -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct NchanTests {
    private let channel = "channel\(UInt64.random(in: 0 ... .max))"

    private func publish(
        _ texts: [String],
        eventType: String? = nil,
        at server: String
    ) async throws {
        let client = try EventStreamClient(server)
        for text in texts {
            let post = EventStreamEntry.post(text, to: "/publish/\(channel)", eventType: eventType)
            let receipt = try await client.provider.request(post)
            #expect(receipt.reason?.hasPrefix("20") == true)
        }
        await client.transport.shutdown()
    }

    @Test(
        "What was published is replayed, exactly after the id given",
        arguments: TestServers.nginxes
    )
    func replay(server: String) async throws {
        let texts = (1...200).map { "message \($0)" }
        try await publish(texts, at: server)
        let client = try EventStreamClient(server)
        let all = try await client.messages(.listen("/events/\(channel)"), first: 200)
        #expect(all.map(\.text) == texts)
        for index in [0, 99, 198] {
            let id = try #require(all[index].id)
            let entry = EventStreamEntry.listen(
                "/events/\(channel)",
                [.lastEventID(id.description)]
            )
            let rest = try await client.messages(entry, first: 199 - index)
            #expect(rest.map(\.text) == Array(texts[(index + 1)...]))
            #expect(
                rest.map { $0.id?.description } == all[(index + 1)...].map { $0.id?.description }
            )
        }
        await client.transport.shutdown()
    }

    @Test(
        "Events have names, lines of all kinds arrive, and types can be chosen",
        arguments: TestServers.nginxes
    )
    func names(server: String) async throws {
        try await publish(["plain"], at: server)
        try await publish(["one\ntwo\n\nfour", "größer"], eventType: "note", at: server)
        let client = try EventStreamClient(server)
        let heard = try await client.messages(.listen("/events/\(channel)"), first: 3)
        #expect(heard.map(\.text) == ["plain", "one\ntwo\n\nfour", "größer"])
        #expect(heard.map { $0[.eventType] } == [nil, "note", "note"])
        let notes = try await client.messages(
            .listen("/events/\(channel)", [.eventTypes(["note"])]),
            first: 2
        )
        #expect(notes.map(\.text) == ["one\ntwo\n\nfour", "größer"])
        await client.transport.shutdown()
    }

    @Test("Pings without data are no events, but signs of life", arguments: TestServers.nginxes)
    func pings(server: String) async throws {
        try await publish(["first"], at: server)
        let counter = ReadCounter()
        var configuration = SSEConfiguration()
        configuration.timeouts.silence = .seconds(20)
        configuration.tls.authorities = TestServers.authorities
        let transport = try SSETransport(
            url: try #require(URL(string: TestServers.url(server, "http"))),
            configuration: configuration,
            environment: counter.environment
        )
        let provider = Provider<EventStreamEntry>(transport: transport)
        let messages = try await provider.messages(.listen("/events/\(channel)"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "first")
        // Seventy-five seconds on the stream's clock, with a ping in every fifteen of them.
        for _ in 0..<5 {
            let count = counter.count
            try await waitUntil { counter.count > count }
            counter.clock.advance(by: .seconds(15))
        }
        try await publish(["second"], at: server)
        // No ping was taken for an event, and each of them kept the stream alive.
        #expect(try await iterator.next()?.text == "second")
        #expect(counter.dialCount == 1)
        await transport.shutdown()
    }

    @Test("A gzip stream is read as it comes", arguments: TestServers.nginxes)
    func gzip(server: String) async throws {
        try await publish(["first"], at: server)
        let client = try EventStreamClient(server)
        let messages = try await client.provider.messages(.listen("/zipped/\(channel)"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "first")
        try await publish(["second"], at: server)
        #expect(try await iterator.next()?.text == "second")
        await client.transport.shutdown()
    }

    @Test(
        "Redirects of all kinds lead there",
        arguments: TestServers.nginxes,
        [301, 302, 303, 307, 308]
    )
    func redirects(server: String, status: Int) async throws {
        try await publish(["there"], at: server)
        let client = try EventStreamClient(server)
        #expect(try await client.texts("/\(status)/events/\(channel)", first: 1) == ["there"])
        let post = EventStreamEntry.post("moved", to: "/\(status)/publish/\(channel)")
        let receipt = try await client.provider.request(post)
        #expect(receipt.reason?.hasPrefix("20") == true)
        // Only 307 and 308 keep the method and the body (RFC 9110, 15.4).
        try await publish(["end"], at: server)
        let keeps = status == 307 || status == 308
        let expected = keeps ? ["there", "moved", "end"] : ["there", "end"]
        #expect(
            try await client.texts("/events/\(channel)", first: expected.count) == expected
        )
        await client.transport.shutdown()
    }

    @Test(
        "A redirect in a circle ends; credentials do not go to another port",
        arguments: TestServers.nginxes
    )
    func redirectLimits(server: String) async throws {
        let client = try EventStreamClient(server) {
            $0.headers = ["Authorization": "Bearer t"]
            $0.reconnection = .never
        }
        let error = await #expect(throws: WaybillError.self) { try await client.texts("/loop") }
        #expect(error?.code == .rejected)
        #expect(error?.isRetryable == false)
        await #expect(throws: WaybillError.self) {
            try await client.provider.request(.post("x", to: "/loop"))
        }
        #expect(try await client.texts("/302/headers") == ["authorization Bearer t"])
        // Another scheme is another origin, too. A redirection from TLS to plain text is refused.
        if server == "NGINX_TLS" {
            for path in ["/exposed", "/elsewhere"] {
                let error = await #expect(throws: WaybillError.self) {
                    try await client.texts(path)
                }
                #expect(error?.code == .rejected)
            }
        } else {
            #expect(try await client.texts("/elsewhere") == ["authorization "])
            guard TestServers.areSecure else { return await client.transport.shutdown() }
            #expect(try await client.texts("/secured") == ["authorization "])
        }
        await client.transport.shutdown()
    }

    @Test("Basic and bearer credentials", arguments: TestServers.nginxes)
    func credentials(server: String) async throws {
        try await publish(["secret"], at: server)
        let nobody = try EventStreamClient(server)
        for path in ["/basic/\(channel)", "/bearer/\(channel)"] {
            let error = await #expect(throws: WaybillError.self) { try await nobody.texts(path) }
            #expect(error?.code == .unauthorized)
            let refusal = try #require(error?.underlying as? HTTPRefusal)
            #expect(refusal.status == 401)
            #expect(refusal.headers.contains { $0.name.lowercased() == "www-authenticate" })
            #expect(!refusal.body.isEmpty)
        }
        let ada = try EventStreamClient(server) {
            $0.userName = "ada"
            $0.password = "lovelace"
        }
        #expect(try await ada.texts("/basic/\(channel)", first: 1) == ["secret"])
        let bearer = try EventStreamClient(server) {
            $0.headers = ["Authorization": "Bearer open sesame"]
        }
        #expect(try await bearer.texts("/bearer/\(channel)", first: 1) == ["secret"])
        for client in [nobody, ada, bearer] { await client.transport.shutdown() }
    }

    @Test(
        "204 stops; 503 says when to come again; another content type is no stream",
        arguments: TestServers.nginxes
    )
    func refusals(server: String) async throws {
        let client = try EventStreamClient(server)
        let rows: [(String, Int?, WaybillError.Code, Bool)] = [
            ("/none", nil, .rejected, false), ("/busy", 503, .connectionRefused, true),
            ("/ok", 200, .protocolViolation, true), ("/gone", 410, .rejected, false),
            ("/refused", 403, .unauthorized, false),
        ]
        for (path, status, code, isRetryable) in rows {
            let error = await #expect(throws: WaybillError.self) { try await client.texts(path) }
            #expect(error?.code == code, "\(path)")
            #expect(error?.isRetryable == isRetryable, "\(path)")
            let refusal = error?.underlying as? HTTPRefusal
            #expect(refusal?.status == status, "\(path)")
            if path == "/busy" {
                let wait = refusal?.headers.first { $0.name.lowercased() == "retry-after" }
                #expect(wait?.value == "1")
            }
        }
        await client.transport.shutdown()
    }
}
