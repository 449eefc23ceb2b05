import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.5 over real frames: a thousand requests, one token.
@Suite(
    "Every transport: a thousand requests, one token (design 5.5)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionTokenTests {
    private static let count = 1_000
    /// The limit on connections at the same time. Each takes up to two descriptors of this process, including the
    /// broker's. On some machines a process has no more than 1,024.
    private static let connections = 200

    /// Returns tokens in turn. A refresh waits until it may go on, and fails if the test says so.
    private actor Tokens: TokenSource {
        private(set) var calls: [String?] = []
        private let mayRefresh: @Sendable () -> Bool
        private let fails: Bool

        init(fails: Bool = false, mayRefresh: @escaping @Sendable () -> Bool = { true }) {
            self.fails = fails
            self.mayRefresh = mayRefresh
        }

        func token() -> String { next(nil) }

        func refresh(_ refused: String) async throws -> String {
            let token = next(refused)
            await until { mayRefresh() }
            if fails { throw WaybillError(.unauthorized, "signed out") }
            return token
        }

        private func next(_ refused: String?) -> String {
            calls.append(refused)
            return "token-\(calls.count)"
        }
    }

    /// Holds first attempts until this number of requests has arrived.
    private final class Gate: Interceptor {
        private let count: Int
        private let waiting = Kept([CheckedContinuation<Void, Never>]())

        init(_ count: Int) { self.count = count }

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard context.attempt == 1 else { return }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isLast = waiting.withLock { waiting in
                        waiting.append(continuation)
                        return waiting.count >= count || Task.isCancelled
                    }
                    if isLast { open() }
                }
            } onCancel: {
                open()
            }
        }

        private func open() {
            let all = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for one in all { one.resume() }
        }
    }

    private func interceptor(
        _ way: Way,
        _ tokens: Tokens,
        _ configuration: TokenInterceptor.Configuration = .init()
    ) -> TokenInterceptor {
        TokenInterceptor(
            .header("Authorization", on: way == .events ? [.send] : []) { token in
                "Basic " + Data("ada:\(token)".utf8).base64EncodedString()
            },
            source: tokens,
            configuration: configuration
        )
    }

    private func bench(
        _ way: Way,
        _ interceptor: TokenInterceptor,
        accepting token: String
    ) throws -> Bench {
        try Bench(way) { plan in
            plan.users = ["ada": token]
            plan.credentials = .token(of: interceptor) { token in
                Credentials(userName: "ada", password: token)
            }
        }
    }

    private func refusals(_ bench: Bench) -> Int { bench.words().count { $0 == "→ 401" } }

    @Test(
        "5.5: 1,000 requests refused at once for an expired token: one refresh, all go through (event streams)",
        arguments: [false, true]
    )
    func refusedAtOnce(fails: Bool) async throws {
        let refused = Kept<@Sendable () -> Bool>({ false })
        let tokens = Tokens(fails: fails) { refused.withLock { $0 }() }
        let interceptor = interceptor(.events, tokens)
        let bench = try bench(.events, interceptor, accepting: "token-2")
        // No refresh ends before the last request was refused.
        let known = Kept((lines: 0, refusals: 0))
        refused.withLock {
            $0 = {
                // Asked often, so each line is read once.
                let log = bench.log
                return known.withLock { known in
                    known.refusals += log[known.lines...].count { $0.contains("→ 401") }
                    known.lines = log.count
                    return known.refusals == Self.count
                }
            }
        }
        bench.dialer.limit(to: Self.connections)
        // All requests have the first token before the first one is sent.
        let provider = bench.provider.intercepted(interceptor).intercepted(Gate(Self.count))
        let calls = (0..<Self.count).map { number in
            Call { try await provider.request(.say("\(number)")) }
        }
        for call in calls { #expect(await call.error()?.code == (fails ? .unauthorized : nil)) }
        #expect(await tokens.calls == [nil, "token-1"])
        #expect(refusals(bench) == Self.count)
        #expect(bench.count("POST") == (fails ? 1 : 2) * Self.count)
    }

    @Test(
        "5.5: 1,000 requests wait for one connection, whose token is refused: one refresh, all go through; none after a loss",
        arguments: Way.shared
    )
    func waitForOne(way: Way) async throws {
        let tokens = Tokens()
        let interceptor = interceptor(way, tokens)
        let bench = try bench(way, interceptor, accepting: "token-2")
        let provider = bench.provider.intercepted(interceptor)
        for round in 0..<2 {
            let calls = (0..<Self.count).map { number in
                Call { try await provider.request(.say("\(number)")) }
            }
            for call in calls { #expect(await call.error() == nil) }
            #expect(await tokens.calls == [nil, "token-1"])
            #expect(bench.count("CONNECT") == 2 + round)
            guard round == 0 else { break }
            let messages: Messages<String> = try await provider.messages(.listen())
            var watch = bench.watch()
            await bench.lose(&watch)
            await bench.comeBack(&watch)
            withExtendedLifetime(messages) {}
        }
        #expect(await tokens.calls == [nil, "token-1"])
    }

    @Test(
        "5.5: 1,000 requests wait for one connection, and the refresh fails: 1,000 failures, no second refresh",
        arguments: Way.shared
    )
    func failedRefresh(way: Way) async throws {
        let tokens = Tokens(fails: true)
        let interceptor = interceptor(way, tokens)
        let bench = try bench(way, interceptor, accepting: "token-1")
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        // The broker now refuses the first token. Each new request has set a timer, which shows that it waits.
        bench.broker.faults.refusesConnections = .badUserNameOrPassword
        let timers = bench.timerCount(after: way.sendLimit)
        let provider = bench.provider
        let calls = (0..<Self.count).map { number in
            Call { try await provider.request(.say("\(number)")) }
        }
        await until { bench.timerCount(after: way.sendLimit) >= timers + Self.count }
        bench.clock.advance(by: Bench.wait)
        await watch.until("disconnected (unauthorized")
        for call in calls {
            let error = await call.error()
            #expect(error?.code == .notConnected)
            #expect((error?.underlying as? WaybillError)?.code == .unauthorized)
        }
        #expect(await tokens.calls == [nil, "token-1"])
        await untilQuiet()
        #expect(bench.count("CONNECT") == 2)
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.5: a source whose tokens are always refused is asked 5 times in 30 s, and no more",
        arguments: Way.allCases
    )
    func breaker(way: Way) async throws {
        let tokens = Tokens()
        let clock = ManualClock()
        var configuration = TokenInterceptor.Configuration()
        configuration.clock = clock
        let interceptor = interceptor(way, tokens, configuration)
        let bench = try bench(way, interceptor, accepting: "another")
        let provider = bench.provider.intercepted(interceptor)
        func attempt() async -> WaybillError? {
            await failure {
                if way == .events {
                    try await provider.request(.say("hello"))
                } else {
                    try await provider.request(.connect)
                }
            }
        }
        let word = way == .events ? "POST" : "CONNECT"
        for number in 1...10 {
            let error = await attempt()
            let isStopped = number > 5
            // The breaker does not stop connections for good: a connection may be tried again after a while.
            #expect(
                error?.code == (isStopped && way != .events ? .notConnected : .unauthorized),
                "\(number)"
            )
            let failure = error?.underlying as? TokenFailure
            #expect((failure == .tooManyRefreshes) == isStopped, "\(String(describing: error))")
            // The first token, and five more.
            #expect(await tokens.calls.count == min(number + 1, 6), "\(number)")
            #expect(bench.count(word) <= number * 2)
        }
        clock.advance(by: .seconds(30))
        _ = await attempt()
        #expect(await tokens.calls.count == 7)
    }
}
