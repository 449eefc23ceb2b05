import HTTPWire
import Testing
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// Tokens that several streams share, and that the server refuses them one after another.
@Suite("Event stream transport: shared tokens", .timeLimit(.minutes(5)))
struct TokenTests {
    /// Opens two streams with the token `a`, and has the server refuse both, the second one when the first has shown `b`.
    private func refuseBoth(_ credentials: CredentialSource) async throws -> [String?] {
        let server = HTTPServer(Array(repeating: .open([]), count: 4))
        let transport = try server.transport { $0.credentials = credentials }
        let provider = Provider<StreamEntry>(transport: transport)
        var streams: [Messages<Message>] = []
        for count in 1...2 {
            streams.append(try await provider.messages(.listen { $0.startsOffline = true }))
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
}
