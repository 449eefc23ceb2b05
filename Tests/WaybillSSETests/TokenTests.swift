import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// Tokens that several streams share, refused by the server for one stream after another.
@Suite("Event stream transport: shared tokens", .inSimulation, .timeLimit(.minutes(30)))
struct TokenTests {
    /// Opens two streams with the token `a`. The server refuses both: the second one after the first has used `b`.
    private func refuseBoth(_ credentials: CredentialSource) async throws -> [String?] {
        let server = HTTPServer(Array(repeating: .open([]), count: 4))
        let transport = try server.transport { $0.credentials = credentials }
        let provider = Provider<StreamEntry>(transport: transport)
        var streams: [Messages<Message>] = []
        for count in 1...2 {
            let entry = StreamEntry.listen("events", .waitsForConnection)
            streams.append(try await provider.messages(entry))
            try await waitUntil { server.requests.count == count }
        }
        for number in 0..<2 {
            server.send(Say.status(401), on: number)
            try await waitUntil { server.requests.count == 3 + number }
        }
        for number in 2..<4 { server.send(Say.stream("data: x\n\n"), on: number) }
        for stream in streams {
            var iterator = stream.makeAsyncIterator()
            #expect(try await iterator.next()?.text == "x")
        }
        await transport.shutdown()
        return server.requests.map { $0.head.headers.first("authorization") }
    }

    private static func bearer(_ token: String) -> Credentials {
        Credentials(headers: ["Authorization": "Bearer \(token)"])
    }

    @Test("What a stream was refused is what it names, whatever another one has got meanwhile")
    func ownRefusal() async throws {
        let refused = Locked<[String?]>([])
        let shown = try await refuseBoth(
            CredentialSource { occasion in
                guard let last = occasion.refused else { return Self.bearer("a") }
                refused.withLock { $0.append(last.headers["Authorization"]) }
                return Self.bearer("b")
            }
        )
        #expect(refused.withLock { $0 } == ["Bearer a", "Bearer a"])
        #expect(shown == ["Bearer a", "Bearer a", "Bearer b", "Bearer b"])
    }

    @Test("A token that two streams were refused is replaced once")
    func oneRefresh() async throws {
        let tokens = Locked(["a", "b", "c"])
        let interceptor = TokenInterceptor { _ in tokens.withLock { $0.removeFirst() } }
        let shown = try await refuseBoth(.token(of: interceptor) { Self.bearer($0) })
        #expect(shown == ["Bearer a", "Bearer a", "Bearer b", "Bearer b"])
        #expect(tokens.withLock { $0 } == ["c"])
    }

    /// Opens a stream with two hosts. The server gives these answers to one request after another.
    ///
    /// - Returns: The error; nil when the stream opened. The host and the token of each request. The refused token
    ///   that the source got at each call.
    private func open(
        _ answers: [HTTPServer.Answer],
        _ fail: WaybillError? = nil
    ) async throws -> (error: WaybillError?, shown: [String], refused: [String?]) {
        let refused = Locked<[String?]>([])
        let server = HTTPServer(answers)
        let transport = try server.transport("http://a/api") { configuration in
            configuration.failover.hosts = ["b"]
            configuration.credentials = CredentialSource { occasion in
                let count = refused.withLock { refused in
                    refused.append(occasion.refused?.headers["Authorization"])
                    return refused.count
                }
                if let fail { throw fail }
                return Self.bearer("\(count)")
            }
        }
        let provider = Provider<StreamEntry>(transport: transport)
        var failure: WaybillError?
        do { _ = try await provider.messages(.listen()) } catch let error as WaybillError {
            failure = error
        }
        await transport.shutdown()
        let shown = server.requests.map { request in
            let headers = request.head.headers
            return "\(headers.first("host") ?? "") \(headers.first("authorization") ?? "")"
        }
        return (failure, shown, refused.withLock { $0 })
    }

    @Test("Each host is shown credentials of its own time, and others when it refuses them")
    func eachHost() async throws {
        let (error, shown, refused) = try await open([
            .open(Say.status(503)), .open(Say.status(401)), .open(Say.stream("")),
        ])
        #expect(error == nil)
        #expect(shown == ["a Bearer 1", "b Bearer 2", "b Bearer 3"])
        #expect(refused == [nil, nil, "Bearer 2"])
    }

    @Test(
        "A token that one host has refused is not shown to the next one, which may have its own replaced",
        arguments: [false, true]
    )
    func nextHost(isRefusedAgain: Bool) async throws {
        let count = Locked(0)
        let tokens = TokenInterceptor { _ in
            count.withLock { count in
                count += 1
                return "\(count)"
            }
        }
        let refusal = HTTPServer.Answer.open(Say.status(401))
        let server = HTTPServer(
            [refusal, .open(Say.status(503))] + (isRefusedAgain ? [refusal] : [])
                + [.open(Say.stream(""))]
        )
        let transport = try server.transport("http://a/api") { $0.failover.hosts = ["b"] }
        let provider = Provider<StreamEntry>(transport: transport).intercepted(tokens)
        _ = try await provider.messages(.listen())
        let shown = server.requests.map { request in
            let headers = request.head.headers
            return "\(headers.first("host") ?? "") \(headers.first("authorization") ?? "")"
        }
        let last = isRefusedAgain ? ["b Bearer 3"] : []
        #expect(shown == ["a Bearer 1", "a Bearer 2", "b Bearer 2"] + last)
        await transport.shutdown()
    }

    @Test("Where there are no credentials, no other host is tried")
    func noCredentials() async throws {
        let (error, shown, refused) = try await open([], WaybillError(.timedOut, "no token"))
        #expect(error?.message == "no token")
        #expect(shown.isEmpty && refused == [nil])
    }

    @Test("What interceptors have set is refused, not what the transport's source gave beside it")
    func notShown() async throws {
        let refused = Locked<[String?]>([])
        let tokens = Locked(["a", "b"])
        let server = HTTPServer([.open(Say.status(401)), .open(Say.stream(""))])
        let transport = try server.transport { configuration in
            configuration.credentials = CredentialSource { occasion in
                refused.withLock { $0.append(occasion.refused?.headers["Authorization"]) }
                return Self.bearer("c")
            }
        }
        let provider = Provider<StreamEntry>(transport: transport)
            .intercepted(TokenInterceptor { _ in tokens.withLock { $0.removeFirst() } })
        _ = try await provider.messages(.listen())
        let shown = server.requests.map { $0.head.headers.first("authorization") }
        #expect(shown == ["Bearer a", "Bearer b"])
        #expect(refused.withLock { $0 }.allSatisfy { $0 == nil })
        await transport.shutdown()
    }

    @Test("A refusal that is read late, as the app held the server back, is not the last word")
    func late() async throws {
        let count = Locked(0)
        let shown = try await shownLate { configuration in
            configuration.credentials = CredentialSource { _ in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                return Self.bearer("\(number)")
            }
        }
        #expect(shown == (1...4).map { "Bearer \($0)" })
    }

    @Test("Nor is it where an interceptor's source answers with another token that is old")
    func lateInterceptor() async throws {
        let asked = Locked<[String?]>([])
        let tokens = TokenInterceptor { refused in
            asked.withLock { asked in
                asked.append(refused)
                return "\(asked.count)"
            }
        }
        let shown = try await shownLate(tokens)
        #expect(shown == ["Bearer 1", "Bearer 1", "Bearer 2", "Bearer 3"])
        #expect(asked.withLock { $0 } == [nil, "1", "2"])
    }

    /// The credentials of a stream whose second request is refused while the app reads nothing, and its third as well.
    private func shownLate(
        _ interceptor: (any Interceptor)? = nil,
        _ configure: (inout SSEConfiguration) -> Void = { _ in }
    ) async throws -> [String?] {
        let events = (1...3).map { "data: \($0)\n\n" }.joined()
        let server = HTTPServer([
            .open(Say.stream(events)), .open(Say.status(401)), .open(Say.status(401)),
            .open(Say.stream("data: 4\n\n")),
        ])
        let transport = try server.transport { configuration in
            configuration.buffering = BufferPolicy(.holdBack, messageLimit: 1)
            configure(&configuration)
        }
        var provider = Provider<StreamEntry>(transport: transport)
        if let interceptor { provider = provider.intercepted(interceptor) }
        let messages = try await provider.messages(.listen())
        await untilQuiet()
        await transport.pause()
        try await waitUntil { server.ends == 1 }
        transport.resume()
        try await waitUntil { server.requests.count == 2 }
        await untilQuiet()
        // The app has not read the response, so there was no further request.
        #expect(server.requests.count == 2)
        var iterator = messages.makeAsyncIterator()
        for number in 1...4 { #expect(try await iterator.next()?.text == "\(number)") }
        await transport.shutdown()
        return server.requests.map { $0.head.headers.first("authorization") }
    }
}
