import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Connections that follow a script, on a clock that stands still.
@Suite("MQTT transport: lifecycle", .inSimulation, .timeLimit(.minutes(30))) struct LifecycleTests {
    private func client(
        _ scripts: [ScriptedByteStream],
        clock: ManualClock = ManualClock(),
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted(scripts, clock: clock) {
            $0.reconnection = .never
            change(&$0)
        }
    }

    @Test("The bytes of a session, from CONNECT to DISCONNECT")
    func bytes() async throws {
        let script = ScriptedByteStream.subscribed(
            .expect(("32 06 0001 74 0002 78" as Hex).bytes),
            .reply(("32 06 0001 74 0009 79 40 02 0002" as Hex).bytes),
            .expect(("40 02 0009" as Hex).bytes),
            .expect(("E0 00" as Hex).bytes)
        )
        let (_, provider) = try client([script])
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        try await provider.request(.send("x", qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        try await provider.request(.disconnect)
        #expect(script.failures == [])
        #expect(script.isComplete)
    }

    @Test("A message without a subscriber is acknowledged all the same (4.5.0-2)")
    func unclaimed() async throws {
        let script = ScriptedByteStream(
            .expect(Packet.connect),
            .reply(Packet.connack + ("32 06 0001 7A 0009 79 34 06 0001 7A 000A 79" as Hex).bytes),
            .expect(("40 02 0009 50 02 000A" as Hex).bytes)
        )
        let (transport, provider) = try client([script])
        try await provider.request(.connect)
        #expect(script.failures == [])
        #expect(script.isComplete)
        await transport.shutdown()
    }

    @Test("Dropped with calls pending: every one fails once, one state change")
    func droppedWithCallsPending() async throws {
        let script = ScriptedByteStream.accepted(.skip(20 * 8), .reset)
        let (transport, provider) = try client([script])
        try await provider.request(.connect)
        var states = transport.states.makeAsyncIterator()
        let failures = await withTaskGroup { group in
            for _ in 0..<20 {
                group.addTask {
                    do {
                        try await provider.request(.send("x", qos: .exactlyOnce))
                        return "none"
                    } catch {
                        return (error as? WaybillError)?.code.name ?? "\(error)"
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(failures == Array(repeating: "connectionLost", count: 20))
        #expect("\(await states.next()!)" == "connected")
        #expect("\(await states.next()!)".hasPrefix("disconnected (connectionLost"))
        await expectError(.connectionRefused) { try await provider.request(.send("x")) }
    }

    private struct RetryOnce: Interceptor {
        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision { .retry(count: 1, delay: .zero) }
    }

    @Test("A request right after a lost connection makes a new connection")
    func retryAfterLoss() async throws {
        for _ in 0..<20 {
            let lost = ScriptedByteStream.accepted(.skip(8), .reset)
            let answered = ScriptedByteStream.accepted(.skip(8), .reply([0x40, 0x02, 0x00, 0x01]))
            let (_, provider) = try client([lost, answered])
            try await provider.intercepted(RetryOnce()).request(.send("x", qos: .atLeastOnce))
            #expect(answered.isComplete)
        }
    }

    @Test("A half-open peer is found within keep alive and the ping's deadline")
    func halfOpen() async throws {
        let clock = ManualClock()
        let script = ScriptedByteStream.accepted(
            .skip(8),
            .reply(("90 03 0001 00" as Hex).bytes),
            .expect(("C0 00" as Hex).bytes),
            .reply(("D0 00" as Hex).bytes),
            .expect(("C0 00" as Hex).bytes)
        )
        let (transport, provider) = try client([script], clock: clock)
        let messages = try await provider.messages(.subscribe(qos: .atMostOnce))
        clock.advance(by: .seconds(60))
        clock.advance(by: .seconds(60))
        guard case .connected = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
        clock.advance(by: .seconds(20))
        var iterator = messages.makeAsyncIterator()
        await expectError(.connectionLost) { try await iterator.next() }
        #expect(script.failures == [])
    }

    @Test("Timeouts of connect and acknowledgement, by the clock")
    func timeouts() async throws {
        let clock = ManualClock()
        let silent = ScriptedByteStream(.expect(Packet.connect))
        let mute = ScriptedByteStream.accepted(.skip(8))
        let (transport, provider) = try client([silent, mute], clock: clock)
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { silent.isComplete }
        clock.advance(by: .seconds(10))
        await expectError(.timedOut) { try await connecting.value }

        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil { mute.isComplete }
        clock.advance(by: .seconds(30))
        let error = await expectError(.timedOut) { try await sending.value }
        #expect(error?.topic == "t" && error?.command == "send")
        await transport.shutdown()
    }

    @Test("A second connect is refused with its reason; disconnecting cancels a connect under way")
    func connectTwice() async throws {
        let silent = ScriptedByteStream(.expect(Packet.connect))
        let (transport, provider) = try client([silent])
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { silent.isComplete }
        await expectError(.rejected) { try await provider.request(.connect) }
        try await provider.request(.disconnect)
        await expectError(.notConnected) { try await connecting.value }
        guard case .disconnected = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
        await transport.shutdown()
        await expectError(.shutDown) { try await provider.request(.send("x")) }
        await expectError(.shutDown) { try await provider.request(.connect) }
    }

    @Test("Cancelling the only request that waits for a connection cancels the attempt")
    func cancelledConnect() async throws {
        let silent = ScriptedByteStream(.expect(Packet.connect), .expect(("E0 00" as Hex).bytes))
        let (transport, provider) = try client([silent])
        let sending = Task { try await provider.request(.send("x")) }
        try await waitUntil { "\(transport.states.current)".hasPrefix("connecting") }
        await untilQuiet()
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected") }
        #expect(silent.failures == [])
        #expect(silent.isComplete)
    }

    @Test("Without connecting on demand, a request fails until the app connects")
    func noDemand() async throws {
        let (_, provider) = try client([]) { $0.connectsOnDemand = false }
        await expectError(.notConnected) { try await provider.request(.send("x")) }
        await expectError(.notConnected) { try await provider.messages(.subscribe()) }
        await expectError(.connectionRefused) { try await provider.request(.connect) }
    }

    @Test(
        "A server that breaks the protocol: typed error, streams end, the next request connects anew"
    )
    func violation() async throws {
        let broken = ScriptedByteStream.accepted(
            .skip(8),
            .reply(("90 03 0001 00 36 05 0001 61 0001" as Hex).bytes)
        )
        let fine = ScriptedByteStream.accepted(.skip(6))
        let (transport, provider) = try client([broken, fine])
        let messages = try await provider.messages(.subscribe(qos: .atMostOnce))
        var iterator = messages.makeAsyncIterator()
        await expectError(.protocolViolation) { try await iterator.next() }
        try await provider.request(.send("x"))
        #expect(fine.isComplete)
        await transport.shutdown()
    }

    @Test("A server that accepts and hangs up at once: the next request connects anew")
    func hangsUpAtOnce() async throws {
        let brief = ScriptedByteStream.accepted(.finish)
        let fine = ScriptedByteStream.accepted(.skip(6))
        let (transport, provider) = try client([brief, fine])
        try await provider.request(.connect)
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected") }
        try await provider.request(.send("x"))
        #expect(fine.isComplete)
        await transport.shutdown()
    }

    @Test("Cancelling a request that waits frees it, and its identifier later")
    func cancelledRequest() async throws {
        // The window is two. The first request is sent. The second waits for a place, and so does a third, which is
        // not cancelled.
        let script = ScriptedByteStream.accepted(
            .expect(("34 06 0001 74 0001 61" as Hex).bytes),
            .expect(("34 06 0001 74 0002 62" as Hex).bytes),
            // The server answers the first request although it was cancelled. Its identifier is used again only after
            // that.
            .expect(("30 04 0001 74 21" as Hex).bytes),
            .reply(("50 02 0001" as Hex).bytes),
            .expect(("62 02 0001" as Hex).bytes),
            .reply(("70 02 0001" as Hex).bytes),
            .expect(("34 06 0001 74 0003 64" as Hex).bytes),
            .reply(("50 02 0002 50 02 0003" as Hex).bytes),
            .expect(("62 02 0002 62 02 0003" as Hex).bytes),
            .reply(("70 02 0002 70 02 0003" as Hex).bytes)
        )
        let (transport, provider) = try client([script]) { $0.limits.inFlight = 2 }
        try await provider.request(.connect)
        func send(_ text: String) -> Task<Receipt, any Error> {
            Task { try await provider.request(.send(text, qos: .exactlyOnce)) }
        }
        let first = send("a")
        try await waitUntil { script.hasReached(4) }
        let second = send("b")
        try await waitUntil { script.hasReached(5) }
        let waiting = send("c")
        let last = send("d")
        await untilQuiet()
        // The first is in flight, the other waits for a place in the window.
        for task in [first, waiting] {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        try await provider.request(.send("!"))
        _ = try await (second.value, last.value)
        #expect(script.failures == [])
        #expect(script.isComplete)
        await transport.shutdown()
    }

    @Test("Several providers with different entries share one transport and its connection")
    func sharedTransport() async throws {
        let fixture = try Fixture()
        let (transport, one) = try fixture.provider()
        let two = Provider<OtherEntry>(transport: transport)
        let messages: Messages<String> = try await two.messages(.hear)
        try await one.request(.send("x", to: "other"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "x")
        #expect(fixture.broker.connectionCount == 1)
        await fixture.end(transport)
    }

    private enum OtherEntry: EntryType {
        case hear

        var topic: String? { "other" }
        var command: EntryCommand { .subscribe }
    }
}
