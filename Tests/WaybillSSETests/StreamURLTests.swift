import Foundation
import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

@Suite(
    "Event stream transport: the URL of one stream or request",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct StreamURLTests {
    private static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// The target of each request with its `Host`.
    private func targets(_ server: HTTPServer) -> [String] {
        server.requests.map { "\($0.head.headers.first("host") ?? "") \($0.head.target)" }
    }

    private func fields(_ server: HTTPServer, _ name: String) -> [String?] {
        server.requests.map { $0.head.headers.first(name) }
    }

    private func transport(
        _ server: HTTPServer,
        _ credentials: CredentialSource? = nil
    ) throws -> SSETransport {
        try server.transport {
            $0.userName = "ada"
            $0.password = "own"
            $0.headers = ["X-Own": "own"]
            $0.failover.hosts = ["spare"]
            $0.credentials = credentials
            $0.reconnection.initialDelay = .zero
        }
    }

    @Test("A stream and a send go to the URL of their option, with the topic behind it")
    func option() async throws {
        let server = HTTPServer([.open(Say.stream("data: x\n\n")), .open(Say.status(200))])
        let credentials = CredentialSource { _ in
            Credentials(url: URL(string: "http://offered"))
        }
        let transport = try transport(server, credentials)
        let provider = Provider<StreamEntry>(transport: transport)
        let url = try Self.url("http://node7:77/tenant?sig=s3")
        let messages = try await provider.messages(.listen("events", .url(url)))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        try await provider.request(.command(.send(.url(url)), topic: ""))
        #expect(targets(server) == ["node7:77 /tenant/events?sig=s3", "node7:77 /tenant?sig=s3"])
        await transport.shutdown()
    }

    @Test("Credentials name the address of each attempt at a stream anew")
    func credentials() async throws {
        let server = HTTPServer([
            .open(Say.stream("id: 1\ndata: x\n\n")), .open(Say.stream("data: y\n\n")),
        ])
        let number = Locked(0)
        let source = CredentialSource { _ in
            let count = number.withLock { number in
                number += 1
                return number
            }
            return Credentials(
                userName: "u",
                password: "p\(count)",
                url: URL(string: "http://node\(count)/b?sig=s\(count)")
            )
        }
        let transport = try transport(server, source)
        let provider = Provider<StreamEntry>(transport: transport)
        var iterator = try await provider.messages(.listen()).makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        server.endOfStream()
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(100)) }) {
            server.requests.count >= 2
        }
        #expect(try await iterator.next()?.text == "y")
        #expect(targets(server) == ["node1 /b/events?sig=s1", "node2 /b/events?sig=s2"])
        // The progress is the stream's, wherever it is asked for.
        #expect(fields(server, "last-event-id") == [nil, "1"])
        let basics = ["u:p1", "u:p2"].map { "Basic " + Data($0.utf8).base64EncodedString() }
        #expect(fields(server, "authorization") == basics)
        #expect(fields(server, "x-own") == [nil, nil])
        await transport.shutdown()
    }

    @Test("Another host is not tried in the place of one that is named", arguments: [true, false])
    func noFailover(isOption: Bool) async throws {
        let server = HTTPServer([.refuse, .open(Say.stream("data: x\n\n"))])
        let url = try Self.url("http://down/x?sig=s3cret")
        let source = isOption ? nil : CredentialSource { _ in Credentials(url: url) }
        let transport = try transport(server, source)
        let provider = Provider<StreamEntry>(transport: transport)
        let entry: StreamEntry = isOption ? .listen("events", .url(url)) : .listen()
        let error = await expectError(.connectionRefused) {
            _ = try await provider.messages(entry)
        }
        #expect(server.endpoints.map(\.host) == ["down"])
        #expect(error.map { "\($0)".contains("s3cret") } == false)
        await transport.shutdown()
    }

    @Test(
        "Secrets of the configuration go to the service alone",
        arguments: [
            ("http://example.com/x", true), ("http://EXAMPLE.com:80/x", true),
            ("http://spare", true), ("http://example.com:81", false), ("http://other", false),
            ("https://example.com", nil),
        ] as [(String, Bool?)]
    )
    func origins(url: String, isOfService: Bool?) async throws {
        // TLS needs a real server; here it counts as another origin before anything is dialled.
        guard let isOfService else {
            let check = try SSERequestCheck(
                url: "http://example.com",
                configuration: SSEConfiguration()
            )
            try check.check(
                Request(topic: "a", command: .subscribe(.url(try Self.url(url))))
            )
            return
        }
        let server = HTTPServer([.open(Say.status(200)), .open(Say.stream("data: x\n\n"))])
        let transport = try transport(server)
        let provider = Provider<StreamEntry>(transport: transport)
        try await provider.request(.command(.send(.url(Self.url(url))), topic: "a"))
        _ = try await provider.messages(.listen("b", .url(try Self.url(url))))
        for name in ["authorization", "x-own"] {
            #expect(fields(server, name).allSatisfy { ($0 != nil) == isOfService }, "\(name)")
        }
        await transport.shutdown()
    }

    @Test("A token of an interceptor does not go to another origin that the entry names")
    func interceptors() async throws {
        struct Placing: Interceptor {
            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                request.headers["Authorization"] = "Bearer token"
            }
        }
        for (url, isSent) in [("http://example.com/t", true), ("http://other/t", false)] {
            let server = HTTPServer([.open(Say.status(200)), .open(Say.stream("data: x\n\n"))])
            let transport = try server.transport()
            let provider = Provider<StreamEntry>(transport: transport).intercepted(Placing())
            let stated: Headers = ["X-Stated": "entry"]
            try await provider.request(
                .command(.send(.url(Self.url(url))), topic: "a", headers: stated)
            )
            _ = try await provider.messages(.listen("b", .url(try Self.url(url))))
            let found = fields(server, "authorization")
            #expect(found == (isSent ? ["Bearer token", "Bearer token"] : [nil, nil]))
            #expect(fields(server, "x-stated") == ["entry", nil])
            await transport.shutdown()
        }
    }

    @Test("A redirect is followed without the query and the credentials of the URL")
    func redirected() async throws {
        let server = HTTPServer([
            .close(Say.status(307, "Location: http://else/there\r\nConnection: close\r\n")),
            .open(Say.stream("data: x\n\n")),
        ])
        let source = CredentialSource { _ in
            Credentials(
                userName: "u",
                password: "p",
                headers: ["X-Key": "k"],
                url: URL(string: "http://node/b?sig=s")
            )
        }
        let transport = try transport(server, source)
        var iterator = try await Provider<StreamEntry>(transport: transport).messages(.listen())
            .makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        #expect(targets(server) == ["node /b/events?sig=s", "else /there"])
        #expect(fields(server, "x-key") == ["k", nil])
        #expect(fields(server, "authorization").last == .some(nil))
        await transport.shutdown()
    }

    @Test(
        "A URL that cannot be is refused before any input or output",
        arguments: [
            ("http://home/x", WaybillError.Code.invalidEntry), ("mqtt://home", .unsupported),
            ("//home", .invalidEntry), ("https:///x", .invalidEntry),
            ("https://home:0", .invalidEntry), ("https://home/#s3cret", .invalidEntry),
        ]
    )
    func refused(text: String, code: WaybillError.Code) async throws {
        let url = try Self.url(text)
        let server = HTTPServer([])
        let transport = try server.transport("https://home") { configuration in
            configuration.credentials = CredentialSource { _ in Credentials(url: url) }
        }
        let provider = Provider<StreamEntry>(transport: transport)
        let send = await expectError(code) {
            try await provider.request(.command(.send(.url(url)), topic: "a"))
        }
        #expect(send?.option == (code == .unsupported ? .url : nil))
        for entry: StreamEntry in [.listen("a", .url(url)), .listen()] {
            let error = await expectError(code) { _ = try await provider.messages(entry) }
            #expect(error.map { "\($0)".contains("s3cret") } == false)
        }
        await expectError(.unsupported) {
            try await provider.request(.command(.connect(.url(url))))
        }
        #expect(server.endpoints == [])
        await transport.shutdown()
    }

    @Test("A send with a URL of its own is not stored: a later process would send it elsewhere")
    func notStored() async throws {
        for (url, isStored) in [("http://other/x", false), (nil, true)] as [(String?, Bool)] {
            let store = InMemorySessionStore()
            let server = HTTPServer([.open([])])
            let transport = try server.transport { $0.store = store }
            let provider = Provider<StreamEntry>(transport: transport)
            let options = try url.map { [SendOption.url(try Self.url($0))] } ?? []
            let entry = StreamEntry.command(
                .send(options: options),
                topic: "a",
                body: .text("x"),
                headers: ["Idempotency-Key": "k"]
            )
            let send = Task { try await provider.request(entry) }
            try await waitUntil { !server.requests.isEmpty }
            #expect(store.messages().isEmpty != isStored)
            send.cancel()
            _ = try? await send.value
            await transport.shutdown()
        }
    }
}
