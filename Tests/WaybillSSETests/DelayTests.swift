import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// The waits between a stream's attempts, to the millisecond.
@Suite("Event stream transport: delays", .inSimulation, .timeLimit(.minutes(30)))
struct DelayTests {
    /// Random numbers that the test chooses.
    private final class Dice: Sendable {
        private let next: Locked<[UInt64]>

        init(_ next: [Duration]) {
            self.next = Locked(next.map { UInt64(clamping: $0.wireNanoseconds) })
        }

        func roll() -> UInt64 {
            next.withLock { $0.isEmpty ? 0 : $0.removeFirst() }
        }
    }

    /// Waits for the next wait to begin. Checks that it ends after exactly this time.
    private func expectAttempt(
        after delay: Duration,
        at server: HTTPServer,
        _ states: inout ConnectionStates.AsyncIterator,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        while let state = await states.next() {
            if case .waiting = state { break }
        }
        let dialed = server.endpoints.count
        server.clock.advance(by: delay - .milliseconds(1))
        await untilQuiet()
        #expect(server.endpoints.count == dialed, sourceLocation: sourceLocation)
        server.clock.advance(by: .milliseconds(1))
        try await waitUntil { server.endpoints.count != dialed }
    }

    @Test(
        "The ceiling of the wait doubles with each failure, up to the limit, and begins anew after an event"
    )
    func doubling() async throws {
        let event = HTTPServer.Answer.close(Say.stream("data: a\n\n"))
        let server = HTTPServer(
            [event] + Array(repeating: .refuse, count: 7) + [event, .refuse, .open([])]
        )
        let delays = [1, 2, 4, 8, 16, 32, 60, 60, 1, 2].map { Duration.seconds($0) }
        // A random number equal to the ceiling gives a wait of the ceiling. A ceiling of a second more or less would
        // change it.
        let dice = Dice(delays)
        let transport = try server.transport(dice: dice.roll)
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for delay in delays { try await expectAttempt(after: delay, at: server, &states) }
        #expect(server.endpoints.count == 11)
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("Dice beyond the ceiling fall within it, so that the ceiling is no less and no more")
    func ceiling() async throws {
        let server = HTTPServer(
            [.close(Say.stream("data: a\n\n"))] + Array(repeating: .refuse, count: 4) + [.open([])]
        )
        // The remainder counts: a nanosecond above the ceiling gives no wait, and half a second more gives half a
        // second.
        let half = Duration.nanoseconds(500_000_001)
        let dice = Dice([1, 2, 4, 8, 16].map { .seconds($0) + half })
        let transport = try server.transport(dice: dice.roll)
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for _ in 0..<5 {
            try await expectAttempt(after: .milliseconds(500), at: server, &states)
        }
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test(
        "A server may ask for a longer wait, in its stream and in its refusals, and for ten minutes at the most"
    )
    func serverDelays() async throws {
        let dated =
            "Date: Sun, 06 Nov 1994 08:00:00 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:08:20 GMT\r\n"
        let server = HTTPServer([
            .close(Say.stream("retry: 100000\ndata: a\n\n")), .refuse,
            .close(Say.status(503, "Retry-After: 300\r\n")), .close(Say.status(503, dated)),
            .close(Say.status(503, "Retry-After: 86400\r\n")),
            .close(Say.stream("retry: 9007199254740992\ndata: a\n\n")), .open([]),
        ])
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for seconds in [100, 100, 300, 500, 600, 600] {
            try await expectAttempt(after: .seconds(seconds), at: server, &states)
        }
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("How long a server may make a stream wait is the app's to say")
    func longestServerDelay() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 100000\ndata: a\n\n")),
            .close(Say.status(429, "Retry-After: 3600\r\n")), .open([]),
        ])
        let transport = try server.transport { $0.reconnection.maximumServerDelay = .seconds(7) }
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for _ in 0..<2 { try await expectAttempt(after: .seconds(7), at: server, &states) }
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("The longest time that can be written is a wait, which a hint ends as any other")
    func longest() async throws {
        let server = HTTPServer([.close(Say.stream("data: a\n\n")), .refuse, .open([])])
        let hints = ConnectionHints()
        let transport = try server.transport(dice: { .max >> 1 }) {
            $0.reconnection.initialDelay = .seconds(Int64.max)
            $0.reconnection.maximumDelay = .seconds(Int64.max)
            $0.hints = [hints]
        }
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for count in 1...2 {
            while let state = await states.next() {
                guard case .waiting(let duration, _) = state else { continue }
                // The clock's nanoseconds end after 292 years.
                #expect(duration > .seconds(200 * 365 * 86_400))
                break
            }
            // Thirty-four years, twice.
            for _ in 0..<2 { server.clock.advance(by: .seconds(1 << 30)) }
            await untilQuiet()
            #expect(server.endpoints.count == count)
            hints.send(.retryNow)
            try await waitUntil { server.endpoints.count == count + 1 }
        }
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("The least time that can be written is no wait beyond that after a failure")
    func least() async throws {
        let server = HTTPServer([.close(Say.stream("data: a\n\n")), .refuse, .open([])])
        let transport = try server.transport(dice: { .max }) {
            $0.reconnection.initialDelay = .seconds(Int64.min)
            $0.reconnection.maximumDelay = .seconds(Int64.min)
        }
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        // The first reconnection after a stream needs no time: the clock stands still.
        try await waitUntil { server.endpoints.count == 2 }
        while let state = await states.next() {
            if case .waiting = state { break }
        }
        try await expectAttempt(after: .milliseconds(100), at: server, &states)
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }
}
