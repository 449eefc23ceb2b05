import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// What goes with a request that is redirected, and which header wins (design 3).
@Suite("Event stream transport: redirects and headers", .inSimulation, .timeLimit(.minutes(30)))
struct RedirectTests {
    @Test(
        "Headers of the credentials source stay at their origin, others go along",
        arguments: [
            ("http://other.example/x", false), ("http://example.com:81/x", false),
            ("http://example.com/x", true),
        ]
    )
    func secrets(_ location: String, _ isKept: Bool) async throws {
        let server = HTTPServer([
            .open(Say.status(307, "Location: \(location)\r\n")), .open(Say.stream("data: a\n\n")),
        ])
        let transport = try server.transport {
            $0.headers = ["X-App": "1"]
            $0.credentials = CredentialSource { _ in
                Credentials(headers: ["X-Api-Key": "secret", "Authorization": "Bearer secret"])
            }
        }
        var messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
            .makeAsyncIterator()
        #expect(try await messages.next()?.text == "a")
        let fields = server.requests.map(\.head.headers)
        #expect(fields.map { $0.first("x-api-key") } == ["secret", isKept ? "secret" : nil])
        #expect(fields[1].first("authorization") == (isKept ? "Bearer secret" : nil))
        #expect(fields.map { $0.first("x-app") } == ["1", "1"])
        await transport.shutdown()
    }

    @Test(
        "A method and its body stay, except where a POST becomes a GET",
        arguments: [
            ("PUT", 301, "PUT"), ("PUT", 302, "PUT"), ("PUT", 303, "GET"), ("PUT", 307, "PUT"),
            ("PATCH", 302, "PATCH"), ("DELETE", 301, "DELETE"), ("HEAD", 303, "HEAD"),
            ("POST", 301, "GET"), ("POST", 302, "GET"), ("POST", 303, "GET"),
            ("POST", 307, "POST"), ("POST", 308, "POST"),
        ]
    )
    func methods(_ method: String, _ status: Int, _ expected: String) async throws {
        let server = HTTPServer([
            .open(Say.status(status, "Location: /other\r\n")), .open(Say.status(204)),
        ])
        let transport = try server.transport()
        try await Provider<StreamEntry>(transport: transport).request(
            .command(.send(.method(method)), topic: "x", body: .text("body"))
        )
        let last = try #require(server.requests.last)
        #expect(last.head.method == expected)
        #expect(String(decoding: last.body, as: UTF8.self) == (expected == "GET" ? "" : "body"))
        #expect((last.head.headers.first("content-type") == nil) == (expected == "GET"))
        await transport.shutdown()
    }

    @Test(
        "A redirect from https to http is refused, and nothing is sent there",
        arguments: [("https", "http", 1), ("https", "https", 2), ("http", "https", 2)]
    )
    func downgraded(_ from: String, _ to: String, _ count: Int) async throws {
        for isStream in [true, false] {
            let server = HTTPServer([
                .open(Say.status(307, "Location: \(to)://example.com/x\r\n")),
                .open(isStream ? Say.stream("data: a\n\n") : Say.status(200)),
            ])
            let transport = try server.transport("\(from)://example.com/api")
            let provider = Provider<StreamEntry>(transport: transport)
            var refusal: WaybillError?
            do {
                if isStream {
                    _ = try await provider.messages(.listen())
                } else {
                    try await provider.request(.post(.text("secret")))
                }
            } catch let error as WaybillError {
                refusal = error
            }
            #expect(refusal?.code == (count == 1 ? .rejected : nil))
            #expect(server.requests.count == count)
            await transport.shutdown()
        }
    }

    @Test("A send follows five redirects and no more")
    func endless() async throws {
        let server = HTTPServer(
            Array(repeating: .open(Say.status(307, "Location: /again\r\n")), count: 9)
        )
        let transport = try server.transport()
        await expectError(.rejected) {
            try await Provider<StreamEntry>(transport: transport).request(.post(.text("x")))
        }
        #expect(server.requests.count == 6)
        await transport.shutdown()
    }

    @Test("An interceptor's header wins over the credentials', and theirs over a fixed one")
    func precedence() async throws {
        struct Own: Interceptor {
            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                request.headers.append(name: "Authorization", value: "own")
            }
        }
        for (hasSource, isIntercepted, expected) in [
            (false, false, "fixed"), (true, false, "source"), (false, true, "own"),
            (true, true, "own"),
        ] {
            let server = HTTPServer([.open(Say.stream("data: a\n\n"))])
            let transport = try server.transport { configuration in
                configuration.headers = ["Authorization": "fixed"]
                guard hasSource else { return }
                configuration.credentials = CredentialSource { _ in
                    Credentials(headers: ["Authorization": "source"])
                }
            }
            var provider = Provider<StreamEntry>(transport: transport)
            if isIntercepted { provider = provider.intercepted(Own()) }
            _ = try await provider.messages(.listen())
            let shown = server.requests[0].head.headers.filter {
                HTTPSyntax.areSameName($0.name, "authorization")
            }
            #expect(shown.map(\.value) == [expected])
            await transport.shutdown()
        }
    }

    @Test("The time for an answer counts once over all redirects")
    func timeLimit() async throws {
        let server = HTTPServer([
            .open(Say.status(307, "Location: /a\r\n")), .open([]), .open([]),
        ])
        let transport = try server.transport { $0.timeouts.confirmation = .seconds(10) }
        let provider = Provider<StreamEntry>(transport: transport)
        let asking = Task { try await provider.request(.post(.text("x"))) }
        try await waitUntil { server.requests.count == 2 }
        await untilQuiet()
        server.clock.advance(by: .seconds(6))
        for number in server.unanswered() {
            server.send(Say.status(307, "Location: /b\r\n"), on: number)
        }
        try await waitUntil { server.requests.count == 3 }
        await untilQuiet()
        server.clock.advance(by: .seconds(4) - .nanoseconds(1))
        await untilQuiet()
        #expect(server.ends == 0)
        server.clock.advance(by: .nanoseconds(1))
        await expectError(.timedOut) { try await asking.value }
        await transport.shutdown()
    }
}
