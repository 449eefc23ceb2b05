import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.6 and 5.7: time limits.
@Suite(
    "Every transport: timeouts and dead peers (design 5.6, 5.7)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionTimeoutTests {
    @Test(
        "5.6: connecting may take 10 s, or what the transport is told",
        arguments: Way.allCases,
        [nil, Duration.seconds(4)]
    )
    func connecting(way: Way, limit: Duration?) async throws {
        let bench = try Bench(way) { $0.connectTimeout = limit }
        bench.dialer.mode = .silent
        let call = Call { _ = try await bench.open() }
        await until { bench.dialer.written > 0 }
        await bench.pass(limit ?? .seconds(10), endsAt: call)
        #expect(await call.error()?.code == .timedOut)
    }

    private struct HastyConnect: EntryType {
        var topic: String?
        var command: EntryCommand { .connect(.timeout(.seconds(2))) }
    }

    @Test("5.6: or what the entry that connects says", arguments: Way.shared)
    func connectingOnce(way: Way) async throws {
        let bench = try Bench(way)
        bench.dialer.mode = .silent
        let provider = Provider<HastyConnect>(transport: bench.transport)
        let call = Call { try await provider.request(HastyConnect()) }
        await until { bench.dialer.written > 0 }
        await bench.pass(.seconds(2), endsAt: call)
        #expect(await call.error()?.code == .timedOut)
    }

    @Test(
        "5.6: connecting again may take 10 s, too; then there is another attempt",
        arguments: Way.allCases
    )
    func connectingAgain(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.dialer.next(.silent)
        bench.clock.advance(by: Bench.wait)
        await watch.until("connecting")
        await until { bench.dialer.count == 2 && bench.dialer.written > 0 }
        bench.clock.advance(by: .seconds(10) - .nanoseconds(1))
        await untilQuiet()
        #expect("\(bench.transport.states.current)" == "connecting (attempt 1)")
        bench.clock.advance(by: .nanoseconds(1))
        await watch.until("waiting (\(way == .events ? "" : "timedOut")")
        await bench.comeBack(&watch)
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.6: acknowledgements may take 30 s, receipts 15 s, a stream to open 10 s; or what the transport is told",
        arguments: Way.allCases,
        [nil, Duration.seconds(7)]
    )
    func acknowledging(way: Way, told: Duration?) async throws {
        try await acknowledging(way, told: told, own: nil)
    }

    @Test("5.6: or what the entry says, whatever the transport is told", arguments: Way.allCases)
    func acknowledgingOnce(way: Way) async throws {
        try await acknowledging(way, told: .seconds(7), own: .seconds(3))
    }

    private func acknowledging(_ way: Way, told: Duration?, own: Duration?) async throws {
        for isSend in [true, false] {
            // The time limit for opening a stream belongs to its connection, not to an entry.
            if way == .events, !isSend, own != nil { continue }
            let bench = try Bench(way) { plan in
                plan.offlineQueue = .off
                plan.answerTimeout = told
                if way == .events { plan.connectTimeout = told }
            }
            let messages = try await bench.open()
            bench.dialer.mute()
            bench.dialer.mode = .silent
            let limit = own ?? told ?? (isSend ? way.sendLimit : way.subscribeLimit)
            let timers = bench.timerCount(after: limit)
            let call = Call {
                if isSend {
                    try await bench.provider.request(.say("hello", timeout: own))
                } else {
                    _ = try await bench.provider.messages(.listen("lounge", timeout: own))
                }
            }
            let dials = way == .events ? 2 : 1
            await until {
                bench.dialer.count == dials
                    && (dials == 2 ? bench.dialer.written : bench.dialer.swallowed) > 0
            }
            // Over HTTP the request has its own connection and its own timer.
            await until { way != .events || bench.timerCount(after: limit) > timers }
            await bench.pass(limit, endsAt: call)
            #expect(await call.error()?.code == .timedOut)
            withExtendedLifetime(messages) {}
            await bench.end()
        }
    }

    @Test(
        "5.6: closing may take 5 s, whatever the peer does; where nothing has to be heard from it, it is over at once",
        arguments: Way.allCases,
        [true, false]
    )
    func closing(way: Way, isForGood: Bool) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        bench.dialer.mute()
        let count = bench.timerCount(after: .seconds(5))
        let call = Call {
            if isForGood {
                await bench.transport.shutdown()
            } else {
                try await bench.provider.request(.disconnect)
            }
        }
        if way.waitsToClose {
            // DISCONNECT and the Close frame of MQTT have 8 bytes each. Each waiting part has set a timer.
            let bytes = way.isMQTT ? 16 : 1
            let timers = way.isMQTT ? 3 : 2
            await until {
                bench.dialer.swallowed >= bytes
                    && bench.timerCount(after: .seconds(5)) >= count + timers
            }
            await untilQuiet()
            await bench.pass(.seconds(5), endsAt: call)
        }
        #expect(await call.error() == nil)
        #expect(bench.clock.now.offset == (way.waitsToClose ? .seconds(5) : .zero))
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.7 and part 3, 10: a half-open peer is found out, and the link made again",
        arguments: Way.allCases
    )
    func halfOpen(way: Way) async throws {
        let bench = try Bench(way) { $0.keepsAlive = true }
        let messages = try await bench.open()
        var watch = bench.watch()
        // The broker sends its own keep-alives in real time, and a slow test takes long enough for them.
        bench.dialer.isolate()
        for (number, step) in way.silence.enumerated() {
            #expect("\(bench.transport.states.current)" == "connected", "\(number)")
            bench.clock.advance(by: step - .nanoseconds(1))
            await untilQuiet()
            #expect("\(bench.transport.states.current)" == "connected", "\(number)")
            bench.clock.advance(by: .nanoseconds(1))
        }
        await watch.until("waiting (connectionLost")
        await bench.comeBack(&watch)
        try await bench.deliver("alive", by: messages)
    }
}
