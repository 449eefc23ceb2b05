import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.1 and 5.2: the reported states of a connection, and the times of reconnection.
@Suite(
    "Every transport: states and reconnection (design 5.1, 5.2)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionStateTests {
    @Test(
        "5.1: each change is reported exactly once, in order, to every observer",
        arguments: Way.allCases
    )
    func everyChangeOnce(way: Way) async throws {
        let bench = try Bench(way)
        var early = bench.watch()
        let messages = try await bench.open()
        var late = bench.watch()
        // The current state comes first.
        #expect(await late.next() == "connected")
        bench.broker.dropConnections()
        var reported: [String] = []
        for _ in 0..<4 { reported.append(await early.next()) }
        bench.clock.advance(by: Bench.wait)
        for _ in 0..<2 { reported.append(await early.next()) }
        try await bench.provider.request(.disconnect)
        reported.append(await early.next())
        #expect(reported[0] == "idle")
        #expect(reported[1] == "connecting (attempt 1)")
        #expect(reported[2] == "connected")
        #expect(reported[3].hasPrefix("waiting (connectionLost"))
        #expect(reported[4...] == ["connecting (attempt 1)", "connected", "disconnected"])
        for expected in reported[3...] { #expect(await late.next() == expected) }
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.2: waits of 1 s, doubled to 60 s, drawn at random below that, to the nanosecond",
        arguments: Way.allCases
    )
    func doubledToSixty(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mode = .refuse
        let ceilings = [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) }
        for (number, ceiling) in ceilings.enumerated() {
            bench.setCeiling(ceiling)
            if number == 0 {
                bench.broker.dropConnections()
            } else {
                bench.clock.advance(by: .nanoseconds(1))
            }
            #expect(try await watch.untilWaiting() == ceiling)
            bench.clock.advance(by: ceiling - .nanoseconds(1))
            await untilQuiet()
            #expect(bench.dialer.count == number + 1)
            #expect("\(bench.transport.states.current)".hasPrefix("waiting"))
        }
        // A random number of one nanosecond above the ceiling gives a wait of zero: the range is from zero to the
        // ceiling.
        bench.setWait(.seconds(60) + .nanoseconds(1))
        bench.clock.advance(by: .nanoseconds(1))
        // A server that is gone is not asked again without a pause.
        let wait = try await watch.untilWaiting()
        #expect(wait <= .milliseconds(100) && wait > .zero)
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.2: after 60 s of health the waits begin anew, after less they go on",
        arguments: Way.allCases
    )
    func healthySpell(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        for (healthy, ceiling) in [(0, 1), (59, 2), (59, 4), (60, 1), (3_600, 1), (1, 2)] {
            bench.clock.advance(by: .seconds(healthy))
            bench.setCeiling(.seconds(ceiling))
            bench.broker.dropConnections()
            #expect(try await watch.untilWaiting() == .seconds(ceiling))
            bench.clock.advance(by: .seconds(ceiling) - .nanoseconds(1))
            await untilQuiet()
            #expect("\(bench.transport.states.current)".hasPrefix("waiting"), "\(ceiling)")
            bench.clock.advance(by: .nanoseconds(1))
            await watch.until("connected")
        }
        withExtendedLifetime(messages) {}
    }

    @Test("5.2: attempts have no end by default, and are counted", arguments: Way.allCases)
    func unlimited(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mode = .refuse
        await bench.lose(&watch)
        for attempt in 1...50 {
            bench.clock.advance(by: Bench.wait)
            #expect(await watch.next() == "connecting (attempt \(attempt))")
            await watch.until("waiting (connectionRefused")
        }
        bench.dialer.mode = .open
        bench.clock.advance(by: Bench.wait)
        await watch.until("connected")
        try await bench.deliver("back", by: messages)
    }

    @Test("5.2: limits of attempts and of time, where they are set", arguments: Way.allCases)
    func limits(way: Way) async throws {
        for isByTime in [false, true] {
            let bench = try Bench(way) { plan in
                if isByTime {
                    plan.reconnection.maximumTime = .milliseconds(1_700)
                } else {
                    plan.reconnection.maximumAttempts = 5
                }
            }
            let messages = try await bench.open()
            var watch = bench.watch()
            bench.dialer.mode = .refuse
            await bench.lose(&watch)
            var attempts = 0
            while !"\(bench.transport.states.current)".hasPrefix("disconnected") {
                bench.clock.advance(by: Bench.wait)
                guard await watch.until("connecting") != nil else { break }
                attempts += 1
                _ = await watch.next()
            }
            #expect(attempts == (isByTime ? 3 : 5))
            let error = await failure { for try await _ in messages {} }
            #expect(error?.code == .connectionRefused || error?.code == .connectionLost)
            await bench.end()
        }
    }

    @Test("5.2: switched off, a loss is the end", arguments: Way.allCases)
    func never(way: Way) async throws {
        let bench = try Bench(way) { $0.reconnection = .never }
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.broker.dropConnections()
        _ = await watch.next()
        #expect(await watch.next().hasPrefix("disconnected (connectionLost"))
        let error = await failure { for try await _ in messages {} }
        #expect(error?.code == .connectionLost)
        bench.clock.advance(by: .seconds(3_600))
        await untilQuiet()
        #expect(bench.dialer.count == 1)
    }

    @Test(
        "5.2: statuses that stop it, and statuses that do not",
        arguments: Way.http,
        [400, 401, 403, 404, 410, 418, 408, 425, 429, 500, 503]
    )
    func statuses(way: Way, status: Int) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        let answer = "HTTP/1.1 \(status) No\r\nContent-Length: 0\r\n\r\n"
        bench.dialer.next(.say(Array(answer.utf8)))
        bench.clock.advance(by: Bench.wait)
        let isFatal = ![408, 425, 429].contains(status) && status < 500
        let code = [401, 403].contains(status) ? "unauthorized" : "rejected"
        #expect(await watch.next() == "connecting (attempt 1)")
        #expect(
            await watch.next().hasPrefix(
                isFatal ? "disconnected (\(code)" : "waiting (connectionRefused"
            )
        )
        if isFatal {
            let error = await failure { for try await _ in messages {} }
            #expect((error?.underlying as? HTTPRefusal)?.status == status)
        } else {
            // After 429 the client waits longer (RFC 6585, 4).
            if status == 429 {
                bench.clock.advance(by: .seconds(5))
                await untilQuiet()
                #expect(bench.dialer.count == 2)
            }
            bench.clock.advance(by: Bench.wait)
            await watch.until("connected")
        }
        withExtendedLifetime(messages) {}
    }

    @Test("5.2: 204 stops an event stream, without an error")
    func noContent() async throws {
        let bench = try Bench(.events)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.broker.faults.answers = [.init(204)]
        bench.clock.advance(by: Bench.wait)
        await watch.until("disconnected")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
    }

    @Test("5.2: a server that says that this side broke the protocol (MQTT 5; the others cannot)")
    func ownProtocolError() async throws {
        let bench = try Bench(.mqtt5)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        // CONNACK, then DISCONNECT with "protocol error".
        bench.dialer.next(.say([0x20, 3, 0, 0, 0, 0xE0, 2, 0x82, 0]))
        bench.clock.advance(by: Bench.wait)
        await watch.until("disconnected (rejected")
        let error = await failure { for try await _ in messages {} }
        #expect(error?.isRetryable == false)
    }

    @Test(
        "5.2: a server that says when to come again is not asked earlier (Retry-After)",
        arguments: Way.http
    )
    func retryAfter(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        let answer = "HTTP/1.1 503 No\r\nRetry-After: 300\r\nContent-Length: 0\r\n\r\n"
        bench.dialer.next(.say(Array(answer.utf8)))
        bench.clock.advance(by: Bench.wait)
        #expect(try await watch.untilWaiting() == .seconds(300))
        bench.clock.advance(by: .seconds(300) - .nanoseconds(1))
        await untilQuiet()
        #expect(bench.dialer.count == 2)
        bench.clock.advance(by: .nanoseconds(1))
        await watch.until("connected")
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.1: a pause is a state of its own, and the states end with the transport",
        arguments: Way.allCases
    )
    func pausedAndOver(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        #expect(await watch.next() == "connected")
        await bench.transport.pause()
        await watch.until("paused")
        #expect(bench.transport.states.current == .paused)
        bench.transport.resume()
        await watch.until("connected")
        // A pause during a wait, too.
        await bench.lose(&watch)
        await bench.transport.pause()
        await watch.until("paused")
        await bench.end()
        await watch.until("disconnected")
        #expect(await watch.next() == "over")
        var late = bench.watch()
        #expect(await late.next() == "disconnected")
        #expect(await late.next() == "over")
        withExtendedLifetime(messages) {}
    }

    @Test("5.2: users' streams live on, time after time", arguments: Way.allCases)
    func streamsLiveOn(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        var watch = bench.watch()
        for round in 0..<10 {
            try await bench.provider.request(.say("\(round)"))
            #expect(try await iterator.next() == "\(round)")
            bench.setWait(Bench.wait)
            await bench.lose(&watch)
            await bench.comeBack(&watch)
        }
    }
}
