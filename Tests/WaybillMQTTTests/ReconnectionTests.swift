import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Streams and calls across a lost connection, byte by byte. The first reconnection does not wait.
@Suite("MQTT transport: reconnection (design 5.2)", .inSimulation, .timeLimit(.minutes(30)))
struct ReconnectionTests {
    @Test(
        "A clean session: subscribed again, in-flight re-sent as new, then new traffic; the stream lives on"
    )
    func cleanSession() async throws {
        let first = ScriptedByteStream.subscribed(.skip(8), .reset)
        let second = ScriptedByteStream.accepted(
            .skip(8),
            // The send waits for the SUBACK.
            .reply(Packet.suback),
            .expect(("32 06 0001 74 0002 78" as Hex).bytes),
            .reply(("40 02 0002 30 04 0001 74 79" as Hex).bytes)
        )
        let (transport, provider) = try scripted([first, second])
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        try await provider.request(.send("x", qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        #expect(second.failures == [])
        await transport.shutdown()
    }

    @Test("A session that is present: nothing subscribed again, PUBLISH with DUP, PUBREL without")
    func sessionPresent() async throws {
        let first = ScriptedByteStream.subscribed(
            .new,
            .expect(("32 06 0001 74 0002 78" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream.accepted(
            .present,
            .expect(("3A 06 0001 74 0002 78" as Hex).bytes),
            .reply(("40 02 0002 30 04 0001 74 79" as Hex).bytes)
        )
        let (transport, provider) = try scripted([first, second]) { $0.session.cleanStart = false }
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        try await provider.request(.send("x", qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        #expect(second.failures == [])
        #expect(second.isComplete)
        await transport.shutdown()
    }

    @Test("A session that a CONNECT without an answer may have begun: subscribed again")
    func sessionInDoubt() async throws {
        let first = ScriptedByteStream.subscribed(
            .new,
            .expect(("30 04 0001 74 78" as Hex).bytes),
            .reset
        )
        // The server has lost the session. The CONNACK that reports it is lost, too.
        let second = ScriptedByteStream(.expect(Packet.lastingConnect), .reset)
        let third = ScriptedByteStream.accepted(
            .present,
            .expect(("82 06 0002 0001 74 01" as Hex).bytes),
            .reply(("90 03 0002 01 30 04 0001 74 79" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try scripted([first, second, third], clock: clock) {
            $0.session.cleanStart = false
        }
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        try await provider.request(.send("x"))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(500)) }) {
            third.isComplete || third.failures != []
        }
        #expect(third.failures == [])
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        await transport.shutdown()
    }

    @Test(
        "A server that loses its session: a QoS 2 message in flight fails rather than coming twice"
    )
    func sessionLost() async throws {
        let first = ScriptedByteStream.accepted(.new, .skip(8), .reset)
        let second = ScriptedByteStream.accepted(.new)
        let (transport, provider) = try scripted([first, second]) { $0.session.cleanStart = false }
        let error = await expectError(.connectionLost) {
            try await provider.request(.send("x", qos: .exactlyOnce))
        }
        #expect(error?.topic == "t")
        await transport.shutdown()
    }

    @Test("A call whose time is up while there is no connection fails then, once")
    func timesOutMeanwhile() async throws {
        let clock = ManualClock()
        let first = ScriptedByteStream.accepted(.skip(8), .reset)
        let (transport, provider) = try scripted([first], clock: clock)
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        try await waitUntil {
            "\(transport.states.current)".hasPrefix("waiting (connectionRefused")
        }
        clock.advance(by: .seconds(30))
        await expectError(.timedOut) { try await sending.value }
        await transport.shutdown()
    }

    @Test("A refused re-subscription ends its own stream with the refusal; the others live on")
    func refusedAgain() async throws {
        let first = ScriptedByteStream.subscribed(
            .skip(8),
            .reply(("90 03 0002 01" as Hex).bytes),
            .skip(6),
            .reset
        )
        let second = ScriptedByteStream.accepted(
            .expect(("82 06 0003 0001 74 01 82 06 0004 0001 75 01" as Hex).bytes),
            .reply(("90 03 0003 80 90 03 0004 01 30 04 0001 75 79" as Hex).bytes)
        )
        let (transport, provider) = try scripted([first, second])
        let refused = try await provider.messages(.subscribe(qos: .atLeastOnce))
        let fine = try await provider.messages(.subscribe("u", qos: .atLeastOnce))
        try await provider.request(.send("x"))
        await expectError(.rejected) { for try await _ in refused {} }
        var iterator = fine.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        #expect(second.failures == [])
        await transport.shutdown()
    }

    @Test("Another client took the session over: no fight for it")
    func takenOver() async throws {
        let first = ScriptedByteStream(
            .skip(26),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .skip(9),
            .reply(("90 04 0001 00 00" as Hex).bytes),
            .skip(6),
            .reply(Self.takenOver)
        )
        // A second connection would reach a step of this script.
        let second = ScriptedByteStream(.skip(1), .skip(1 << 20))
        let clock = ManualClock()
        let (transport, provider) = try scripted([first, second], clock: clock) { $0.version = .v5 }
        try await provider.request(.connect)
        let messages = try await provider.messages(.subscribe(qos: .atMostOnce))
        try await provider.request(.send("x"))
        let error = await expectError(.rejected) { for try await _ in messages {} }
        #expect(error?.peerReason?.contains("0x8E") == true)
        #expect(error?.isRetryable == false)
        #expect("\(transport.states.current)".hasPrefix("disconnected (rejected"))
        clock.advance(by: .seconds(86_400))
        await untilQuiet()
        #expect(!second.hasReached(2))
        #expect("\(transport.states.current)".hasPrefix("disconnected (rejected"))
        await transport.shutdown()
    }

    /// DISCONNECT with reason code 0x8E, "session taken over".
    private static let takenOver = ("E0 02 8E 00" as Hex).bytes

    @Test("A late CONNECT of this client's own takes the session over: it connects again, once")
    func takenOverByLateAttempt() async throws {
        let accepted = ("20 03 00 00 00" as Hex).bytes
        let silent = ScriptedByteStream(.skip(26), .skip(1 << 20))
        let first = ScriptedByteStream(.skip(26), .reply(accepted + Self.takenOver))
        let second = ScriptedByteStream(
            .skip(26),
            .reply(accepted),
            .skip(6),
            .reply(Self.takenOver)
        )
        let clock = ManualClock()
        let scripts = [silent, first, second]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock)
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { silent.hasReached(2) }
        clock.advance(by: .seconds(10))
        await expectError(.timedOut) { try await connecting.value }
        _ = try? await provider.request(.connect)
        try await waitUntil { second.hasReached(3) }
        try await waitUntil { "\(transport.states.current)" == "connected" }
        // The client's own late attempt has arrived. The next takeover is another client's.
        try await provider.request(.send("x"))
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected (rejected") }
        await transport.shutdown()
    }

    @Test(
        "A late CONNECT may begin another session, in which nothing is subscribed to",
        arguments: [true, false]
    )
    func otherSession(isTakenOver: Bool) async throws {
        let silent = ScriptedByteStream(.skip(21), .skip(1 << 20))
        let first = ScriptedByteStream(
            steps: [
                .skip(21),
                .reply(("20 03 00 00 00" as Hex).bytes),
                .expect(("82 09 0001 02 0B 01 0001 74 00" as Hex).bytes),
                .reply(("90 04 0001 00 00" as Hex).bytes),
                .expect(("30 05 0001 74 00 78" as Hex).bytes),
                isTakenOver ? .reply(Self.takenOver) : .reset,
            ]
        )
        let second = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 01 00 00" as Hex).bytes),
            .expect(("82 09 0002 02 0B 01 0001 74 00" as Hex).bytes),
            .reply(("90 04 0002 00 00 30 05 0001 74 00 79" as Hex).bytes)
        )
        let clock = ManualClock()
        let scripts = [silent, first, second]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock) {
            bare(&$0)
            $0.session.expiry = .seconds(60)
        }
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { silent.hasReached(2) }
        clock.advance(by: .seconds(10))
        await expectError(.timedOut) { try await connecting.value }
        // A request would wait for the interval of the policy.
        try await provider.request(.connect)
        let messages = try await provider.messages(.subscribe(qos: .atMostOnce))
        try await provider.request(.send("x"))
        try await waitUntil { second.isComplete || first.failures + second.failures != [] }
        try #require(first.failures == [] && second.failures == [])
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "y")
        await transport.shutdown()
    }

    @Test(
        "A CONNECT whose stream ends without an answer may arrive late, too: a proxy may hold it",
        arguments: [true, false]
    )
    func takenOverAfterClosing(isReset: Bool) async throws {
        // One takeover alone is put down to the late attempts. Otherwise two clients could disconnect each other for
        // long.
        let closings = (0..<3).map { _ in
            ScriptedByteStream(.skip(26), isReset ? .reset : .finish)
        }
        let accepted = ("20 03 00 00 00" as Hex).bytes
        let first = ScriptedByteStream(.skip(26), .reply(accepted + Self.takenOver))
        let second = ScriptedByteStream(
            .skip(26),
            .reply(accepted),
            .skip(6),
            .reply(Self.takenOver)
        )
        let (transport, provider) = try scripted(closings + [first, second], version: .v5)
        for _ in closings {
            await #expect(throws: WaybillError.self) { try await provider.request(.connect) }
        }
        _ = try? await provider.request(.connect)
        try await waitUntil { second.hasReached(3) }
        try await waitUntil { "\(transport.states.current)" == "connected" }
        // That happens only once. The next takeover is another client's.
        try await provider.request(.send("x"))
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected (rejected") }
        await transport.shutdown()
    }

    @Test("Long after an attempt was given up, a session that is taken over is another client's")
    func takenOverMuchLater() async throws {
        let silent = ScriptedByteStream(.skip(26), .skip(1 << 20))
        let first = ScriptedByteStream(
            .skip(26),
            .reply(("20 03 00 00 00" as Hex).bytes + Self.takenOver)
        )
        let clock = ManualClock()
        let (transport, provider) = try scripted([silent, first], clock: clock) { $0.version = .v5 }
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { silent.hasReached(2) }
        clock.advance(by: .seconds(10))
        await expectError(.timedOut) { try await connecting.value }
        clock.advance(by: .seconds(41))
        _ = try? await provider.request(.connect)
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected (rejected") }
        await transport.shutdown()
    }
}
