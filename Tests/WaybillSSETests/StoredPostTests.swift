import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

extension OptionName {
    /// An option of an app's own.
    fileprivate static let post = OptionKey<Bool>(stored: "test.post")
    /// One that no other test uses, because the first use makes it known.
    fileprivate static let latePost = OptionKey<Bool>(stored: "test.post.late")
}

/// POSTs whose requests are in a store. One that is there before the transport is made was left by another process.
@Suite("Event stream transport: POSTs in a store", .inSimulation, .timeLimit(.minutes(30)))
struct StoredPostTests {
    private let store = InMemorySessionStore()

    private var bodies: [String] {
        store.messages().map { String(decoding: $0.body, as: UTF8.self) }
    }

    private func post(
        _ body: String,
        key: String? = "k",
        method: String? = nil
    ) -> StreamEntry {
        .command(
            .send(options: method.map { [.method($0)] } ?? []),
            topic: "messages",
            body: .text(body),
            headers: key.map { ["Idempotency-Key": $0] } ?? [:]
        )
    }

    private func leave(_ bodies: String...) {
        for body in bodies {
            let headers = [["Idempotency-Key", "key-\(body)"]]
            let message = StoredMessage(
                topic: "messages",
                body: Array(body.utf8),
                headers: headers,
                qos: 1
            )
            _ = store.insert(message)
        }
    }

    private func provider(
        _ server: HTTPServer,
        _ interceptors: any Interceptor...
    ) throws -> (SSETransport, Provider<StreamEntry>) {
        // The longest waits.
        let transport = try server.transport(dice: { .max }) { $0.store = store }
        var provider = Provider<StreamEntry>(transport: transport)
        for interceptor in interceptors { provider = provider.intercepted(interceptor) }
        return (transport, provider)
    }

    private struct Stamp: Interceptor {
        let name: String
        let value: String

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            request.headers.append(name: name, value: value)
        }
    }

    private func sent(_ server: HTTPServer) -> [String] {
        server.requests.map { String(decoding: $0.body, as: UTF8.self) }
    }

    @Test("With a key it is stored, as the entry states it, until its response")
    func stored() async throws {
        let server = HTTPServer([.open(Say.status(200)), .open([])])
        let (transport, provider) = try provider(server, Stamp(name: "Authorization", value: "one"))
        try await provider.request(post("a"))
        #expect(bodies == [])
        let sending = Task { try await provider.request(post("b")) }
        try await waitUntil { server.requests.count == 2 }
        #expect(bodies == ["b"])
        #expect(store.messages().map(\.headers) == [[["Idempotency-Key", "k"]]])
        await transport.shutdown()
        let error = await expectError(.shutDown) { try await sending.value }
        #expect(error?.mayHaveArrived == true && bodies == ["b"])
    }

    @Test("Removed if refused; not stored without a key of the entry, or as PUT")
    func notStored() async throws {
        let server = HTTPServer([.open(Say.status(400)), .open([]), .open([]), .open([])])
        let (transport, provider) = try provider(server)
        await expectError(.rejected) { try await provider.request(post("a")) }
        #expect(bodies == [])
        let keyed = provider.intercepted(Stamp(name: "Idempotency-Key", value: "k"))
        Task { try await provider.request(post("b", key: nil)) }
        Task { try await keyed.request(post("c", key: nil)) }
        Task { try await provider.request(post("d", method: "PUT")) }
        try await waitUntil { server.requests.count == 4 }
        #expect(bodies == [])
        await transport.shutdown()
    }

    @Test("Sent at the first request, in order, with the key and new interceptors")
    func left() async throws {
        leave("a", "b")
        let server = HTTPServer(
            [Say.status(200), Say.status(200), Say.status(200)].map { .open($0) }
        )
        let (transport, provider) = try provider(server, Stamp(name: "Token", value: "two"))
        var events = transport.events.makeAsyncIterator()
        #expect(server.requests.isEmpty)
        try await provider.connect()
        for _ in 0..<2 {
            let end = await take(to: .acknowledged, &events).last
            #expect(end?.topic == "messages")
        }
        #expect(sent(server) == ["a", "b"] && bodies == [])
        #expect(server.requests.map { $0.head.headers.first("token") } == ["two", "two"])
        let keys = server.requests.map { $0.head.headers.first("idempotency-key") }
        #expect(keys == ["key-a", "key-b"])
        try await provider.request(post("c"))
        #expect(sent(server) == ["a", "b", "c"])
        await transport.shutdown()
    }

    @Test("One that the server always answers by an error keeps the others away no longer")
    func poison() async throws {
        leave("a", "b", "c")
        let server = HTTPServer([500, 200, 200, 500].map { .open(Say.status($0)) })
        let (transport, provider) = try provider(server)
        try await provider.connect()
        try await waitUntil { server.requests.count == 3 }
        await untilQuiet()
        #expect(sent(server) == ["a", "b", "c"] && bodies == ["a"])
        await transport.shutdown()
        #expect(bodies == ["a"])
    }

    @Test("One with an option that is not known stays, is told once, and is not asked for again")
    func unknownOption() async throws {
        let unknown = [StoredOption("of a later version", .flag(true))]
        let headers = [["Idempotency-Key", "key-a"]]
        let body = Array("a".utf8)
        _ = store.insert(
            StoredMessage(topic: "messages", body: body, headers: headers, qos: 1, options: unknown)
        )
        leave("b")
        let server = HTTPServer([.open(Say.status(200))])
        let (transport, provider) = try provider(server)
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.code == .unsupported && failure?.error?.mayHaveArrived == true)
        let next = await take(to: .acknowledged, &events)
        #expect(next.allSatisfy { $0.kind != .sendFailed })
        await untilQuiet()
        // No wait is under way that would end with another look.
        server.clock.advance(by: .seconds(100_000))
        await untilQuiet()
        #expect(sent(server) == ["b"] && store.messages().map(\.options) == [unknown])
        await transport.shutdown()
    }

    /// Takes an option of the app out.
    private struct Taking: Interceptor {
        let key: OptionKey<Bool>

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            request.command[key] = nil
        }
    }

    @Test("An option of the app's own waits for the provider whose interceptor takes it out")
    func otherProvider() async throws {
        _ = OptionName.post
        let options = [StoredOption("test.post", .flag(true))]
        _ = store.insert(
            StoredMessage(topic: "messages", body: Array("a".utf8), qos: 1, options: options)
        )
        let server = HTTPServer([.open(Say.status(200))])
        let (transport, provider) = try provider(server)
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.option == .post && failure?.error?.mayHaveArrived == true)
        await untilQuiet()
        #expect(sent(server) == [] && bodies == ["a"])
        try await provider.intercepted(Taking(key: .post)).connect()
        try await waitUntil { bodies == [] }
        #expect(sent(server) == ["a"])
        await transport.shutdown()
    }

    @Test("One whose option is known later is sent with the next request")
    func knownLater() async throws {
        let options = [StoredOption("test.post.late", .flag(true))]
        _ = store.insert(
            StoredMessage(topic: "messages", body: Array("a".utf8), qos: 1, options: options)
        )
        let server = HTTPServer([.open(Say.status(200))])
        let (transport, provider) = try provider(server)
        try await provider.connect()
        await untilQuiet()
        #expect(sent(server) == [] && bodies == ["a"])
        try await provider.intercepted(Taking(key: .latePost)).connect()
        try await waitUntil { bodies == [] }
        #expect(sent(server) == ["a"])
        await transport.shutdown()
    }

    @Test(
        "A pause and a disconnect stop it; the end of the pause, or the next request, goes on",
        arguments: [true, false]
    )
    func stopped(disconnects: Bool) async throws {
        leave("a")
        let server = HTTPServer([500, 200].map { .open(Say.status($0)) })
        let (transport, provider) = try provider(server)
        try await provider.connect()
        try await waitUntil { server.requests.count == 1 }
        await untilQuiet()
        if disconnects { try await provider.disconnect() } else { await provider.pause() }
        server.clock.advance(by: .seconds(100))
        await untilQuiet()
        #expect(sent(server) == ["a"] && bodies == ["a"])
        if disconnects { try await provider.connect() } else { provider.resume() }
        try await waitUntil { server.requests.count == 2 }
        await untilQuiet()
        #expect(sent(server) == ["a", "a"] && bodies == [])
        await transport.shutdown()
    }

    @Test("Without interceptors, one that needs a token waits for those that have it")
    func withoutToken() async throws {
        leave("a")
        let server = HTTPServer([.open(Say.status(401))])
        let (transport, provider) = try provider(server)
        try await provider.connect()
        try await waitUntil { server.requests.count == 1 }
        await untilQuiet()
        #expect(bodies == ["a"])
        await transport.shutdown()
    }

    @Test("Again after an error that may pass or a refused token; given up after another refusal")
    func failures() async throws {
        leave("a", "b")
        let server = HTTPServer(
            [503, 401, 200, 422].map { .open(Say.status($0)) }
        )
        let source = Locked(0)
        let tokens = TokenInterceptor(.bearer) { _ in
            source.withLock {
                $0 += 1; return "\($0)"
            }
        }
        let (transport, provider) = try provider(server, tokens)
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { server.requests.count == 3 }
        await untilQuiet()
        // What is behind it does not wait.
        #expect(sent(server) == ["a", "b", "b"] && bodies == ["a"])
        #expect(await take(to: .acknowledged, &events).last?.error == nil)
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(100)) }) {
            server.requests.count == 4
        }
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.code == .rejected)
        #expect(sent(server) == ["a", "b", "b", "a"] && bodies == [])
        await transport.shutdown()
    }
}
