import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Requests without a connection, at a server that cannot be reached.
@Suite("Connections: intervals of requests", .inSimulation, .benchesEnd, .timeLimit(.minutes(30)))
struct ConnectionIntervalTests {
    /// Fails one request, so that the next one has to wait for the interval.
    private func failed(_ way: Way) async throws -> Bench {
        let bench = try Bench(way)
        bench.dialer.mode = .refuse
        let error = await failure { try await bench.provider.request(.say("first")) }
        #expect(error?.code == .connectionRefused)
        #expect(bench.dialer.count == 1)
        return bench
    }

    @Test(
        "Many requests make one attempt in each interval, and share its result",
        arguments: Way.shared
    )
    func oneAttempt(way: Way) async throws {
        let bench = try await failed(way)
        for attempt in 2...4 {
            let provider = bench.provider
            let calls = (0..<20).map { _ in Call { try await provider.request(.say("again")) } }
            await untilQuiet()
            #expect(bench.dialer.count == attempt - 1)
            #expect(!calls.contains { $0.isDone })
            bench.clock.advance(by: Bench.wait)
            for call in calls { #expect(await call.error()?.code == .connectionRefused) }
            #expect(bench.dialer.count == attempt)
        }
        bench.dialer.mode = .open
        let provider = bench.provider
        let call = Call { try await provider.request(.say("found")) }
        await untilQuiet()
        bench.clock.advance(by: Bench.wait)
        _ = try await call.value()
    }

    @Test(
        "A request whose time is over first fails with the error of the last attempt",
        arguments: Way.shared
    )
    func limit(way: Way) async throws {
        let bench = try await failed(way)
        let provider = bench.provider
        let call = Call {
            try await provider.request(.say("short", timeout: .milliseconds(100)))
        }
        await untilQuiet()
        bench.clock.advance(by: .milliseconds(100))
        #expect(await call.error()?.code == .connectionRefused)
        #expect(bench.dialer.count == 1)
    }

    @Test("A pause meanwhile does not lengthen the wait beyond its limit", arguments: Way.shared)
    func paused(way: Way) async throws {
        let bench = try await failed(way)
        let provider = bench.provider
        let call = Call { try await provider.request(.say("again")) }
        await untilQuiet()
        await provider.pause()
        bench.clock.advance(by: .seconds(9))
        await untilQuiet()
        #expect(!call.isDone)
        bench.clock.advance(by: .seconds(1))
        await untilQuiet()
        #expect(call.isDone)
        #expect(bench.dialer.count == 1)
        provider.resume()
        #expect(await call.error()?.code == .notConnected)
    }

    @Test("An explicit connect and a hint do not wait", arguments: Way.shared, [true, false])
    func atOnce(way: Way, isConnect: Bool) async throws {
        let hints = ConnectionHints()
        let bench = try Bench(way) { $0.hints = [hints] }
        bench.dialer.mode = .refuse
        _ = await failure { try await bench.provider.request(.say("first")) }
        bench.dialer.mode = .open
        if isConnect {
            try await bench.provider.request(.connect)
        } else {
            hints.send(.retryNow)
            await untilQuiet()
            try await bench.provider.request(.say("found"))
        }
        #expect(bench.dialer.count == 2)
    }

    @Test("Without a reconnection policy there are no intervals", arguments: Way.shared)
    func never(way: Way) async throws {
        let bench = try Bench(way) { $0.reconnection = .never }
        bench.dialer.mode = .refuse
        for attempt in 1...3 {
            _ = await failure { try await bench.provider.request(.say("again")) }
            #expect(bench.dialer.count == attempt)
        }
    }
}
