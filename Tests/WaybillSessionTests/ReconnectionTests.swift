import Testing
import TransportTestSupport
import Waybill
import WaybillSession
import WaybillTesting
import WireCore
import WireTestSupport

/// The reactions to a lost connection, on a clock that stands still.
@Suite("Reconnection (design 5.2)", .inSimulation, .timeLimit(.minutes(30)))
struct ReconnectionTests {
    private static let request = Request(topic: "t", command: .send)
    private static let lost = WaybillError(.connectionLost, "lost")

    private func accepting() -> FakeConnection {
        FakeConnection(resumesAloud: true) { $0.accept() }
    }

    /// A life cycle that connects again after a loss, with the default policy.
    private func reconnecting(
        _ sessions: [FakeConnection],
        clock: ManualClock = ManualClock(),
        random: UInt64 = .max,
        conclude: @escaping @Sendable (WaybillError?, Bool) -> Void = { _, _ in }
    ) -> LifecycleFixture {
        LifecycleFixture(
            sessions,
            reconnection: ReconnectionPolicy(),
            clock: clock,
            random: random,
            conclude: conclude
        )
    }

    /// Waits until the life cycle is in this state.
    private func wait(
        _ lifecycle: ConnectionLifecycle<FakeConnection>,
        for word: String
    ) async throws {
        try await waitUntil { "\(lifecycle.states.states.current)".hasPrefix(word) }
    }

    @Test("Lost, waited, connected again: each change once, resumed before requests")
    func reconnects() async throws {
        let (first, second) = (accepting(), accepting())
        let clock = ManualClock()
        var fixture = reconnecting([first, second], clock: clock, random: 400_000_000)
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        #expect(lifecycle.connected == nil)
        let waiting = Task { try await lifecycle.requests.connection(for: Self.request) { "b" } }
        clock.advance(by: .milliseconds(399))
        await untilQuiet()
        #expect("\(lifecycle.states.states.current)" == "waiting (connectionLost: lost)")
        clock.advance(by: .milliseconds(1))
        #expect(try await waiting.value === second)
        #expect(second.log == ["begin a", "resume"])
        #expect(
            await fixture.reported() == [
                "connecting (attempt 1)", "connected", "waiting (connectionLost: lost)",
                "connecting (attempt 1)", "connected",
            ]
        )
        await lifecycle.shutdown()
    }

    @Test("Attempts that fail are counted, told with their cause, and followed by longer waits")
    func failures() async throws {
        let first = accepting()
        let refused = WaybillError(.connectionRefused, "not yet")
        let (second, third) = (FakeConnection { $0.end(refused) }, accepting())
        let clock = ManualClock()
        var fixture = reconnecting([first, second, third], clock: clock, random: 1_500_000_000)
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        clock.advance(by: .milliseconds(500))
        try await wait(lifecycle, for: "waiting (connectionRefused")
        clock.advance(by: .milliseconds(1_499))
        await untilQuiet()
        #expect(third.log == [])
        clock.advance(by: .milliseconds(1))
        try await wait(lifecycle, for: "connected")
        #expect(
            await fixture.reported().dropFirst(2) == [
                "waiting (connectionLost: lost)", "connecting (attempt 1)",
                "waiting (connectionRefused: not yet)", "connecting (attempt 2)", "connected",
            ]
        )
        await lifecycle.shutdown()
    }

    @Test("A fatal refusal ends it, once, and waiting calls get the reason")
    func fatal() async throws {
        let first = accepting()
        let second = FakeConnection { $0.end(WaybillError(.unauthorized, "no")) }
        let clock = ManualClock()
        let ends = Locked<[WaybillError?]>([])
        var fixture = reconnecting(
            [first, second],
            clock: clock,
            random: 0,
            conclude: { end, _ in ends.withLock { $0.append(end) } }
        )
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        try await wait(lifecycle, for: "disconnected")
        #expect(
            await fixture.reported().dropFirst(2) == [
                "waiting (connectionLost: lost)", "connecting (attempt 1)",
                "disconnected (unauthorized: no)",
            ]
        )
        #expect(ends.withLock { $0 }.map { $0?.code } == [.unauthorized])
        await lifecycle.shutdown()
    }

    @Test(
        "A limit of attempts ends it with the last cause, after exactly that many",
        arguments: 0..<4
    )
    func attemptLimit(limit: Int) async throws {
        let first = accepting()
        var policy = ReconnectionPolicy()
        policy.maximumAttempts = limit
        let clock = ManualClock()
        let tries = Locked(0)
        let ends = Locked<[String?]>([])
        var fixture = LifecycleFixture(
            [first],
            reconnection: policy,
            clock: clock,
            random: 0,
            onOpen: { _, _ in
                let number = tries.withLock { count in
                    count += 1
                    return count - 1
                }
                guard number > 0 else { return }
                throw WaybillError(.connectionRefused, "refusal \(number)")
            },
            conclude: { end, _ in ends.withLock { $0.append(end?.message) } }
        )
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            "\(lifecycle.states.states.current)".hasPrefix("disconnected")
        }
        // No further attempt follows at any time.
        clock.advance(by: .seconds(86_400))
        await untilQuiet()
        #expect(tries.withLock { $0 } == limit + 1)
        var expected = ["connecting (attempt 1)", "connected"]
        var cause = "connectionLost: lost"
        for number in 0..<limit {
            expected += ["waiting (\(cause))", "connecting (attempt \(number + 1))"]
            cause = "connectionRefused: refusal \(number + 1)"
        }
        expected.append("disconnected (\(cause))")
        #expect(await fixture.reported() == expected)
        #expect(ends.withLock { $0 } == [limit == 0 ? "lost" : "refusal \(limit)"])
        await lifecycle.shutdown()
    }

    @Test("No call waits for ever: a request during an outage fails after the connect timeout")
    func requestDuringOutage() async throws {
        let first = accepting()
        let clock = ManualClock()
        let lifecycle = reconnecting([first], clock: clock, random: 900_000_000).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        let isDone = Locked(false)
        let waiting = Task {
            defer { isDone.withLock { $0 = true } }
            return try await lifecycle.requests.connection(for: Self.request) { "b" }
        }
        try await waitUntil(moving: { clock.advance(by: .milliseconds(100)) }) {
            isDone.withLock { $0 }
        }
        #expect(clock.now.offset >= .seconds(10))
        do {
            _ = try await waiting.value
            Issue.record("no error")
        } catch let error as WaybillError {
            #expect(error.code == .notConnected)
            #expect(error.isRetryable)
            #expect((error.underlying as? WaybillError)?.code == .connectionRefused)
        }
        await lifecycle.shutdown()
    }

    @Test("Disconnecting, and shutting down, end the wait at once", arguments: [false, true])
    func disconnectWhileWaiting(isShutdown: Bool) async throws {
        let first = accepting()
        let ends = Locked(0)
        var fixture = reconnecting(
            [first],
            random: 900_000_000,
            conclude: { _, _ in ends.withLock { $0 += 1 } }
        )
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        let waiting = Task { try await lifecycle.requests.connection(for: Self.request) { "b" } }
        await untilQuiet()
        if isShutdown { await lifecycle.shutdown() } else { try await lifecycle.disconnect() }
        await #expect(throws: WaybillError.self) { try await waiting.value }
        #expect(
            await fixture.reported().suffix(2) == [
                "waiting (connectionLost: lost)", "disconnected",
            ]
        )
        #expect(ends.withLock { $0 } == 1)
        await lifecycle.shutdown()
    }

    @Test("An explicit connect cuts the wait short, with its own greeting")
    func connectWhileWaiting() async throws {
        let (first, second) = (accepting(), accepting())
        let lifecycle = reconnecting([first, second], random: 900_000_000).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        let connecting = Task { try await lifecycle.connect("b", timeout: nil) }
        #expect(try await connecting.value.reason == "welcome")
        #expect(second.log == ["begin b", "resume"])
        await lifecycle.shutdown()
    }

    @Test("A hint that the network is back cuts the wait short")
    func hurry() async throws {
        let (first, second) = (accepting(), accepting())
        let lifecycle = reconnecting([first, second], random: 900_000_000).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        try await waitUntil(moving: { lifecycle.retryNow() }) { lifecycle.connected != nil }
        #expect(lifecycle.connected === second)
        await lifecycle.shutdown()
    }

    @Test("A pause closes the connection and keeps what it carried; resuming connects at once")
    func pause() async throws {
        let (first, second) = (accepting(), accepting())
        let ends = Locked(0)
        let clock = ManualClock()
        var fixture = reconnecting(
            [first, second],
            clock: clock,
            conclude: { _, _ in ends.withLock { $0 += 1 } }
        )
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        await lifecycle.pause()
        #expect(first.log.contains("disconnect"))
        clock.advance(by: .seconds(3_600))
        lifecycle.retryNow()
        await untilQuiet()
        #expect(second.log == [])
        #expect(ends.withLock { $0 } == 0)
        lifecycle.resume()
        try await wait(lifecycle, for: "connected")
        #expect(second.log == ["begin a", "resume"])
        #expect(
            await fixture.reported().suffix(3) == [
                "paused", "connecting (attempt 1)",
                "connected",
            ]
        )
        await lifecycle.shutdown()
    }

    @Test("A pause while connecting that is over before that connection is closed connects again")
    func pauseWhileConnecting() async throws {
        let (begun, closing) = (Promise<Void>(), Promise<Void>())
        let first = FakeConnection(closing: closing) { _ in begun.resolve(.success(())) }
        let second = accepting()
        let ends = Locked(0)
        var fixture = reconnecting(
            [first, second],
            conclude: { _, _ in ends.withLock { $0 += 1 } }
        )
        let lifecycle = fixture.lifecycle
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        await lifecycle.pause()
        first.accept()
        try await waitUntil { first.log.contains("disconnect") }
        lifecycle.resume()
        closing.resolve(.success(()))
        _ = try await connecting.value
        try await waitUntil { lifecycle.connected === second || ends.withLock { $0 } > 0 }
        #expect(ends.withLock { $0 } == 0)
        #expect(second.log == ["begin a", "resume"])
        #expect(
            await fixture.reported() == [
                "connecting (attempt 1)", "connected",
                "waiting (notConnected: the connection is paused)", "connecting (attempt 1)",
                "connected",
            ]
        )
        await lifecycle.shutdown()
    }

    @Test(
        "After an explicit disconnect a request fails, until the app connects",
        arguments: ["never connected", "connected", "connecting", "waiting", "lost for good"]
    )
    func explicitDisconnect(before: String) async throws {
        let begun = Promise<Void>()
        let first = FakeConnection { session in
            if before != "connecting" { session.accept() }
            begun.resolve(.success(()))
        }
        let second = accepting()
        let lifecycle = LifecycleFixture(
            [first, second],
            reconnection: before == "waiting" ? ReconnectionPolicy() : .never,
            random: 900_000_000
        ).lifecycle
        var connecting: Task<Receipt, any Error>?
        if before != "never connected" {
            connecting = Task { try await lifecycle.connect("a", timeout: nil) }
            try await begun.value()
            if before != "connecting" { _ = try await connecting?.value }
            if before == "waiting" || before == "lost for good" { first.end(Self.lost) }
        }
        try await lifecycle.disconnect()
        _ = await connecting?.result
        let log = first.log
        do {
            _ = try await lifecycle.requests.connection(for: Self.request) { "stray" }
            Issue.record("the request made a connection")
        } catch let error as WaybillError {
            #expect(error.code == .notConnected)
            #expect(error.topic == "t" && error.command == "send")
        }
        #expect(first.log == log)
        #expect(second.log == [])
        _ = try await lifecycle.connect("b", timeout: nil)
        #expect(lifecycle.connected != nil)
        await lifecycle.shutdown()
    }

    @Test("Refused credentials are prepared anew once; refused again, it is over")
    func credentials() async throws {
        let refused = WaybillError(.unauthorized, "no")
        for isLucky in [true, false] {
            let first = FakeConnection { $0.end(refused) }
            let second = FakeConnection { isLucky ? $0.accept() : $0.end(refused) }
            let occasions = Locked<[String]>([])
            let lifecycle = LifecycleFixture(
                [first, second],
                reconnection: ReconnectionPolicy(),
                prepare: { greeting, occasion in
                    occasions.withLock { list in
                        list.append("\(occasion.isReconnection) \(occasion.refusal != nil)")
                    }
                    return greeting + (occasion.refusal == nil ? " old" : " new")
                },
                canReplaceCredentials: true
            ).lifecycle
            if isLucky {
                _ = try await lifecycle.connect("a", timeout: nil)
            } else {
                await #expect(throws: WaybillError.self) {
                    try await lifecycle.connect("a", timeout: nil)
                }
            }
            #expect(first.log.first == "begin a old")
            #expect(second.log.first == "begin a new")
            #expect(occasions.withLock { $0 } == ["false false", "false true"])
            await lifecycle.shutdown()
        }
    }

    @Test("Lost, found, lost at any moment: one session at a time, and each end is told once")
    func anyMoment() async throws {
        for round in 0..<200 {
            let (first, second) = (accepting(), accepting())
            let ends = Locked(0)
            var fixture = reconnecting(
                [first, second],
                random: 0,
                conclude: { _, _ in ends.withLock { $0 += 1 } }
            )
            let lifecycle = fixture.lifecycle
            _ = try await lifecycle.connect("a", timeout: nil)
            let losing = Task { first.end(Self.lost) }
            for _ in 0..<round % 7 { await Task.yield() }
            try await lifecycle.disconnect()
            await losing.value
            try await lifecycle.disconnect()
            #expect(lifecycle.connected == nil)
            #expect(ends.withLock { $0 } == 1)
            #expect(await fixture.reported().last?.hasPrefix("disconnected") == true)
            await lifecycle.shutdown()
        }
    }
}
