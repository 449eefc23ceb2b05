import Foundation
import Testing
import Waybill
import WaybillTesting

/// Design 5.4 and 5.5 over real frames, with connections that come and go.
@Suite(
    "Every transport: interceptors, retries and tokens (design 5.4, 5.5)",
    .serialized,
    .timeLimit(.minutes(5)), .benchesEnd
)
struct ConnectionRetryTests {
    /// Which of the requests is tried.
    enum Kind: CaseIterable, Sendable { case connect, subscribe, send }

    @Test(
        "Part 3, 1: a server that refuses for ever: `count` retries of connect, subscribe and send alike",
        arguments: Way.allCases,
        Kind.allCases
    )
    func retryLimit(way: Way, kind: Kind) async throws {
        // To connect is nothing in itself where each subscription has its own connection.
        if way == .events, kind == .connect { return }
        let bench = try Bench(way)
        bench.dialer.mode = .refuse
        let provider = bench.provider.intercepted(RetryPolicy(attempts: 4, delay: .none))
        let error = await failure {
            switch kind {
            case .connect: try await provider.request(.connect)
            case .subscribe: _ = try await provider.messages(.listen())
            case .send: try await provider.request(.say("hello"))
            }
        }
        #expect(error?.code == .connectionRefused && error?.attempt == 4)
        #expect(bench.dialer.count == 4)
        await bench.end()
    }

    @Test(
        "5.4: refused with the connection: connected, subscribed, then sent again, each step awaited (STOMP)",
        arguments: Way.allSTOMP
    )
    func refusedWithTheConnection(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        let last = bench.lastClient
        bench.broker.faults.answersWithError = [.send: 1]
        let provider = bench.provider.intercepted(
            RetryPolicy(attempts: 2, delay: .none, codes: [.rejected, .connectionLost])
        )
        let call = Call { try await provider.request(.say("hello")) }
        await watch.until("waiting")
        await letOthersRun()
        await bench.comeBack(&watch)
        #expect(await call.error() == nil)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        #expect(
            bench.words(from: last + 1).prefix(6) == [
                "← CONNECT", "→ CONNECTED", "← SUBSCRIBE", "→ RECEIPT", "← SEND", "→ RECEIPT",
            ]
                || bench.words(from: last + 1).prefix(6) == [
                    "← CONNECT", "→ CONNECTED", "← SUBSCRIBE", "→ RECEIPT", "← SEND", "→ MESSAGE",
                ],
            "\(bench.log)"
        )
        await bench.end()
    }

    @Test("5.4: lost with the link: sent again over the next one", arguments: Way.allCases)
    func lostWithTheLink(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mute()
        if way == .events { bench.dialer.next(.silent) }
        let provider = bench.provider.intercepted(
            RetryPolicy(attempts: 2, delay: .none, codes: [.connectionLost, .timedOut])
        )
        let call = Call { try await provider.request(.say("hello")) }
        if way == .events {
            // Nothing but its own time ends a request whose answer does not come.
            _ = await bench.advance { bench.dialer.count == 3 }
        } else {
            await until { bench.dialer.swallowed > 0 }
            await bench.lose(&watch)
            await bench.comeBack(&watch)
        }
        #expect(await call.error() == nil)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        await bench.end()
    }

    /// Adds a header after a while, and notes what it sees.
    private struct Marking: Interceptor {
        let name: String
        let seen: Kept<[String]>
        var isLast = false

        func execute(
            _ request: Request,
            context: InterceptorContext
        ) async throws -> Request {
            await Task.yield()
            seen.withLock { seen in
                seen.append("\(name)\(context.attempt) \(request.headers.map(\.name))")
            }
            var request = request
            request.headers[name] = "\(context.attempt)"
            guard isLast else { return request }
            if context.attempt == 1 { throw WaybillError(.connectionRefused, "not yet") }
            // MQTT 3.1.1 has no headers to send.
            request.headers = [:]
            return request
        }

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision {
            seen.withLock { $0.append("original \(request.headers.map(\.name))") }
            return isLast ? .retry(count: 1, delay: .zero) : .noOpinion
        }
    }

    @Test(
        "Part 3, 3: the second interceptor sees what the first has added; the original is unchanged",
        arguments: Way.allCases
    )
    func chain(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        let seen = Kept([String]())
        let provider = bench.provider.intercepted(Marking(name: "a", seen: seen))
            .intercepted(Marking(name: "b", seen: seen, isLast: true))
        try await provider.request(.say("hello"))
        let none = "[]"
        #expect(
            seen.withLock { $0 } == [
                "a1 \(none)", "b1 [\"a\"]", "original \(none)", "original \(none)", "a2 \(none)",
                "b2 [\"a\"]",
            ]
        )
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        await bench.end()
    }

    private actor Tokens: TokenSource {
        private(set) var calls: [String?] = []

        func token() -> String { next(nil) }
        func refresh(_ refused: String) -> String { next(refused) }

        private func next(_ refused: String?) -> String {
            calls.append(refused)
            return "token-\(calls.count)"
        }
    }

    @Test(
        "5.5: 1,000 requests refused at once for an expired token: one refresh, all go through; none after a loss",
        arguments: Way.allCases
    )
    func expiredToken(way: Way) async throws {
        let tokens = Tokens()
        let interceptor = TokenInterceptor(
            .header("Authorization", on: way == .events ? [.send] : []) { token in
                "Basic " + Data("ada:\(token)".utf8).base64EncodedString()
            },
            source: tokens
        )
        let bench = try Bench(way) { plan in
            plan.users = ["ada": "token-2"]
            plan.credentials = .token(of: interceptor) { token in
                Credentials(userName: "ada", password: token)
            }
        }
        let provider = bench.provider.intercepted(interceptor)
        for round in 0..<2 {
            let calls = (0..<1_000).map { number in
                Call { try await provider.request(.say("\(number)")) }
            }
            for call in calls { #expect(await call.error() == nil) }
            #expect(await tokens.calls == [nil, "token-1"])
            guard round == 0 else { break }
            let messages: Messages<String> = try await provider.messages(.listen())
            var watch = bench.watch()
            await bench.lose(&watch)
            await bench.comeBack(&watch)
            withExtendedLifetime(messages) {}
        }
        #expect(await tokens.calls == [nil, "token-1"])
        await bench.end()
    }
}
