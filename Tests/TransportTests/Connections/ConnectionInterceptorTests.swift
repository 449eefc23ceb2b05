import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Design 5.4 to 5.6: cases of interceptors, tokens and time limits that the other suites leave out.
@Suite(
    "Every transport: chains, tokens and limits (design 5.4 to 5.6)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionInterceptorTests {
    /// An interceptor made of closures.
    private struct Acting: Interceptor {
        var onExecute: @Sendable (Request, InterceptorContext) throws -> Request = { request, _ in
            request
        }
        var onReceive: @Sendable (Message) -> Message = { $0 }
        var decision: @Sendable (WaybillError) -> RetryDecision = { _ in .noOpinion }

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            request = try onExecute(request, context)
        }

        func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
            onReceive(message)
        }

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision { decision(error) }
    }

    // MARK: 5.4

    @Test("5.4: what comes in goes through the interceptors in reverse", arguments: Way.allCases)
    func reverse(way: Way) async throws {
        let bench = try Bench(way)
        let marking = ["a", "b", "c"].map { name in
            Acting(onReceive: { message in
                var message = message
                message.body = Payload((message.text ?? "") + name)
                return message
            })
        }
        let provider = bench.others.intercepted(marking[0]).intercepted(marking[1])
            .intercepted(marking[2])
        let messages = try await provider.messages(.listen(), as: String.self)
        try await bench.others.request(.say("x") { $0.qos = .atLeastOnce })
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "xcba")
    }

    @Test(
        "5.4: of several opinions on a retry the first one counts, in the order of the interceptors",
        arguments: Way.allCases,
        [true, false]
    )
    func firstOpinion(way: Way, triesAgain: Bool) async throws {
        struct Stopped: Error {}
        let bench = try Bench(way)
        let calls = Kept(0)
        let failing = Acting(onExecute: { request, _ in
            calls.withLock { $0 += 1 }
            throw WaybillError(.connectionRefused, "no")
        })
        let silent = Acting()
        let again = Acting(decision: { _ in .retry(count: 2, delay: .zero) })
        let stop = Acting(decision: { _ in .doNotRetryWithError(Stopped()) })
        let provider = bench.others.intercepted(silent)
            .intercepted(triesAgain ? again : stop).intercepted(triesAgain ? stop : again)
            .intercepted(failing)
        let error = await failure { try await provider.request(.say("x")) }
        #expect(calls.withLock { $0 } == (triesAgain ? 3 : 1))
        #expect((error?.underlying is Stopped) == !triesAgain)
        #expect(bench.log.isEmpty && bench.dialer.count == 0)
    }

    /// One command of each kind. The chain sees all of them, whether the transport supports them or not.
    private static let commands: [EntryCommand] = [
        .connect, .send, .subscribe, .unsubscribe, .disconnect, .ack(.named("1")),
        .nack(.named("1")), .begin(transaction: "t"), .commit(transaction: "t"),
        .abort(transaction: "t"),
    ]

    @Test(
        "5.4: the number of retries is kept to for every command, and counts for each request by itself",
        arguments: Way.allCases
    )
    func everyCommand(way: Way) async throws {
        let bench = try Bench(way)
        for command in Self.commands {
            let attempts = Kept([Int]())
            let failing = Acting(
                onExecute: { _, context in
                    attempts.withLock { $0.append(context.attempt) }
                    throw WaybillError(.connectionRefused, "no")
                },
                decision: { _ in .retry(count: 3, delay: .zero) }
            )
            let provider = bench.others.intercepted(failing)
            for _ in 0..<2 {
                let line = Line(topic: "room", command: command)
                let error = await failure {
                    if command.kind == .subscribe {
                        _ = try await provider.messages(line, as: String.self)
                    } else {
                        try await provider.request(line)
                    }
                }
                #expect(error?.code == .connectionRefused && error?.attempt == 4, "\(command.name)")
            }
            #expect(attempts.withLock { $0 } == [1, 2, 3, 4, 1, 2, 3, 4], "\(command.name)")
        }
        #expect(bench.dialer.count == 0)
    }

    @Test(
        "5.4: what was not answered in time is sent again, and counted on the wire",
        arguments: Way.allCases
    )
    func afterTimeout(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        bench.broker.faults.withholdsReceipts = true
        if way.isMQTT { bench.dialer.mute() }
        let provider = bench.provider.intercepted(
            RetryPolicy(maximumAttempts: 3, delay: .none, codes: [.timedOut])
        )
        let call = Call { try await provider.request(.say("x")) }
        var sent = 0
        for attempt in 1...3 {
            await until {
                way.isMQTT
                    ? bench.dialer.swallowed > sent : bench.count(way.sendWord) == attempt
            }
            sent = bench.dialer.swallowed
            await bench.pass(way.sendLimit, endsAt: call)
        }
        // A further attempt would need time of its own.
        _ = await bench.advance(inStepsOf: way.sendLimit) { call.isDone }
        let error = await call.error()
        #expect(error?.code == .timedOut && error?.attempt == 3)
        await untilQuiet()
        #expect(way.isMQTT ? bench.dialer.swallowed == sent : bench.count(way.sendWord) == 3)
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.4: a send that may have arrived is not sent again, unless its entry says that this does no harm",
        arguments: Way.allSTOMP + [.events],
        [false, true]
    )
    func idempotency(way: Way, isIdempotent: Bool) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        bench.broker.faults.withholdsReceipts = true
        let provider = bench.others.intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .none, codes: [.timedOut])
        )
        let call = Call {
            try await provider.request(.say("x") { $0[.idempotent] = isIdempotent })
        }
        for attempt in 1...(isIdempotent ? 2 : 1) {
            await until { bench.count(way.sendWord) == attempt }
            await bench.pass(way.sendLimit, endsAt: call)
        }
        // A further attempt would need time of its own.
        _ = await bench.advance(inStepsOf: way.sendLimit) { call.isDone }
        let error = await call.error()
        #expect(error?.code == .timedOut && error?.attempt == (isIdempotent ? 2 : 1))
        await untilQuiet()
        #expect(bench.count(way.sendWord) == (isIdempotent ? 2 : 1))
        withExtendedLifetime(messages) {}
    }

    // MARK: 5.5

    /// Returns numbered tokens and counts them.
    private actor Tokens: TokenSource {
        private(set) var refused: [String] = []
        func token() -> String { "token-0" }
        func refresh(_ refused: String) -> String {
            self.refused.append(refused)
            return "token-\(self.refused.count)"
        }
    }

    @Test(
        "5.5: a token goes into the headers of frames and packets, at every send anew",
        arguments: [Way.mqtt5, .mqttOverWebSocket] + Way.allSTOMP
    )
    func headers(way: Way) async throws {
        let bench = try Bench(way)
        let messages: Messages<Message> = try await bench.others.messages(.listen())
        let tokens = TokenInterceptor(
            .header("token", on: [.send]) { "my \($0)" },
            source: Tokens()
        )
        let provider = bench.others.intercepted(tokens)
        var iterator = messages.makeAsyncIterator()
        for expected in ["my token-0", "my token-1"] {
            try await provider.request(.say("x") { $0.qos = .atLeastOnce })
            #expect(try await iterator.next()?.headers.first("token") == expected)
            #expect(try await tokens.token(replacing: "token-0") == "token-1")
        }
    }

    @Test(
        "5.5: a late refusal of an old token, or of one after the other, refreshes once",
        arguments: Way.allCases
    )
    func lateRefusal(way: Way) async throws {
        let bench = try Bench(way)
        let source = Tokens()
        let tokens = TokenInterceptor(.header("token", on: [.send]) { $0 }, source: source)
        // Like a server, refuses every request with the first token.
        let used = Kept([String]())
        let arrived = Kept(0)
        let server = Acting(onExecute: { request, _ in
            let token = request.headers.first("token") ?? ""
            used.withLock { $0.append(token) }
            if token == "token-0" {
                arrived.withLock { $0 += 1 }
                throw WaybillError(.unauthorized, "refused")
            }
            var request = request
            request.headers = [:]
            return request
        })
        /// Holds the requests of one provider until the test opens it.
        struct Gate: Interceptor {
            let isOpen: Kept<Bool>
            let waiting: Kept<Int>
            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                guard context.attempt == 1 else { return }
                waiting.withLock { $0 += 1 }
                while !isOpen.withLock({ $0 }) {
                    try Task.checkCancellation()
                    await Task.yield()
                }
            }
        }
        let gate = Gate(isOpen: Kept(false), waiting: Kept(0))
        let quick = bench.others.intercepted(tokens).intercepted(server)
        let slow = bench.others.intercepted(tokens).intercepted(gate).intercepted(server)
        let messages = try await bench.open()
        let late = (0..<20).map { number in
            Call { try await slow.request(.say("late \(number)") { $0.qos = .atLeastOnce }) }
        }
        // All requests have the first token and are in flight.
        await until { gate.waiting.withLock { $0 } == 20 }
        try await quick.request(.say("quick") { $0.qos = .atLeastOnce })
        #expect(await source.refused == ["token-0"])
        gate.isOpen.withLock { $0 = true }
        for call in late { #expect(await call.error() == nil) }
        #expect(await source.refused == ["token-0"])
        #expect(used.withLock { $0.count { $0 == "token-0" } } == 21)
        #expect(used.withLock { $0.count { $0 == "token-1" } } == 21)
        var iterator = messages.makeAsyncIterator()
        var heard: Set<String> = []
        for _ in 0..<21 { heard.insert(try await iterator.next() ?? "") }
        #expect(heard.count == 21)
    }

    @Test(
        "5.5: a token goes into the request for a WebSocket and for a stream, anew before each",
        arguments: Way.http
    )
    func upgradeHeaders(way: Way) async throws {
        let source = Tokens()
        let tokens = TokenInterceptor(.header("token", on: []) { $0 }, source: source)
        let credentials = CredentialSource.token(of: tokens) { token in
            Credentials(headers: ["Authorization": "Bearer \(token)"])
        }
        let broker = LoopbackBroker()
        try broker.start()
        let dialer = TappedDialer()
        let clock = ManualClock()
        let environment = LinkEnvironment(
            dialer: dialer,
            clock: clock.linkTimers,
            random: { 500_000_000 }
        )
        let transport = try transport(way, broker, credentials, environment)
        let messages: Messages<String> = try await Provider<Line>(transport: transport)
            .messages(.listen())
        var watch = Watch(iterator: transport.states.makeAsyncIterator())
        // The token changes, as it does after a sign-in elsewhere.
        #expect(try await tokens.token(replacing: "token-0") == "token-1")
        broker.dropConnections()
        await watch.until("waiting")
        clock.advance(by: Bench.wait)
        await watch.until("connected")
        let requests = dialer.written.map { $0.components(separatedBy: "\r\n\r\n")[0] }
        #expect(requests.count == 2)
        for (number, request) in requests.enumerated() {
            let lines = request.components(separatedBy: "\r\n")
            #expect(lines.count { $0.hasPrefix("Authorization:") } == 1)
            #expect(lines.contains("Authorization: Bearer token-\(number)"))
        }
        withExtendedLifetime(messages) {}
        await transport.shutdown()
        await broker.stop()
    }

    private func transport(
        _ way: Way,
        _ broker: LoopbackBroker,
        _ credentials: CredentialSource,
        _ environment: LinkEnvironment
    ) throws -> any Transport {
        let url = try #require(URL(string: broker.url(for: way.service)))
        if way.isMQTT {
            var configuration = MQTTConfiguration()
            configuration.credentials = credentials
            return try MQTTTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        }
        if way.isSTOMP {
            var configuration = STOMPConfiguration()
            configuration.credentials = credentials
            return try STOMPTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        }
        var configuration = SSEConfiguration()
        configuration.credentials = credentials
        return try SSETransport(url: url, configuration: configuration, environment: environment)
    }

    // MARK: 5.6

    @Test(
        "5.6: limits of the transport's own, for connecting, acknowledging and closing",
        arguments: Way.allCases
    )
    func transportLimits(way: Way) async throws {
        let change: @Sendable (inout Bench.Plan) -> Void = { plan in
            plan.mqtt = { configuration in
                configuration.timeouts.connect = .seconds(4)
                configuration.timeouts.confirmation = .seconds(7)
                configuration.timeouts.close = .seconds(2)
                configuration.timeouts.drain = .zero
            }
            plan.stomp = { configuration in
                configuration.timeouts.connect = .seconds(4)
                configuration.timeouts.confirmation = .seconds(7)
                configuration.timeouts.close = .seconds(2)
            }
            plan.events = { configuration in
                configuration.timeouts.connect = .seconds(4)
                configuration.timeouts.confirmation = .seconds(7)
            }
        }
        let silent = try Bench(way, change)
        silent.dialer.mode = .silent
        let connecting = Call { _ = try await silent.open() }
        await until { silent.dialer.written > 0 }
        await silent.pass(.seconds(4), endsAt: connecting)
        #expect(await connecting.error()?.code == .timedOut)
        await silent.end()

        let bench = try Bench(way, change)
        let messages = try await bench.open()
        bench.broker.faults.withholdsReceipts = true
        if way.isMQTT { bench.dialer.mute() }
        let sending = Call { try await bench.provider.request(.say("x")) }
        await until {
            way.isMQTT ? bench.dialer.swallowed > 0 : bench.count(way.sendWord) == 1
        }
        await bench.pass(.seconds(7), endsAt: sending)
        #expect(await sending.error()?.code == .timedOut)
        bench.dialer.mute()
        let timers = bench.timerCount(after: .seconds(2))
        let closing = Call { await bench.transport.shutdown() }
        if way == .stomp || way.isOverWebSocket {
            // Two timers wait for the peer's answer: one of the closing transport, and one of the STOMP core.
            let count = timers + (way.isSTOMP ? 2 : 1)
            await until { bench.timerCount(after: .seconds(2)) >= count }
            await bench.pass(.seconds(2), endsAt: closing)
        }
        #expect(await closing.error() == nil)
        withExtendedLifetime(messages) {}
        await bench.broker.stop()
    }

    @Test(
        "5.6: the limit of an entry that connects wins over the transport's",
        arguments: Way.shared
    )
    func connectPerEntry(way: Way) async throws {
        let bench = try Bench(way)
        bench.dialer.mode = .silent
        let command = EntryCommand.connect(.timeout(.seconds(3)))
        let call = Call {
            try await bench.others.request(Line(topic: nil, command: command))
        }
        await until { bench.dialer.written > 0 }
        await bench.pass(.seconds(3), endsAt: call)
        #expect(await call.error()?.code == .timedOut)
    }
}
