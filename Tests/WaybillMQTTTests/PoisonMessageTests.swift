import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// A message that the server answers by ending the connection, byte by byte.
///
/// The bad message is `x`, the good one behind it is `y`.
@Suite("MQTT transport: a poison message", .inSimulation, .timeLimit(.minutes(30)))
struct PoisonMessageTests {
    private let clock = ManualClock()

    private static let connect5 = ("10 0E 0004 4D515454 05 02 003C 00 0001 63" as Hex).bytes
    private static let connack5 = ("20 03 00 00 00" as Hex).bytes

    /// A script of MQTT 5 that accepts the client's CONNECT with a clean session, and then follows the steps.
    private static func accepted5(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: [.expect(connect5), .reply(connack5)] + steps)
    }

    /// DISCONNECT of the server with a reason code.
    private static func disconnect(_ code: UInt8) -> [UInt8] { [0xE0, 1, code] }

    /// PUBLISH of QoS 1 to `t`.
    private static func publish(
        _ text: Character,
        _ identifier: UInt16,
        isDuplicate: Bool = false,
        _ version: MQTTConfiguration.Version = .v3_1_1
    ) -> [UInt8] {
        let properties: [UInt8] = version == .v5 ? [0] : []
        let rest: [UInt8] =
            [0, 1, 0x74, UInt8(identifier >> 8), UInt8(truncatingIfNeeded: identifier)]
            + properties + Array(String(text).utf8)
        return [isDuplicate ? 0x3A : 0x32, UInt8(rest.count)] + rest
    }

    private static func puback(_ identifier: UInt16) -> [UInt8] {
        [0x40, 2, UInt8(identifier >> 8), UInt8(truncatingIfNeeded: identifier)]
    }

    /// Moves the clock until all scripts have ended, or one has failed.
    private func play(_ scripts: [ScriptedByteStream]) async throws {
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
        }
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
    }

    private func expectProof(_ ends: Int, _ send: EnqueuedRequest) async {
        let error = await expectError(.rejected) { try await send.receipt }
        #expect(error?.isRetryable == false)
        let connections = ends == 1 ? "1 connection" : "\(ends) connections"
        #expect(error?.message == "the server ended \(connections) after this message")
    }

    // MARK: A plain close

    @Test("MQTT 3.1.1, session kept: found alone after three ends; the one behind it arrives")
    func keptSession() async throws {
        let both = Self.publish("x", 1, isDuplicate: true) + Self.publish("y", 2, isDuplicate: true)
        let scripts: [ScriptedByteStream] = [
            .accepted(.new, .expect(Self.publish("x", 1) + Self.publish("y", 2)), .finish),
            .accepted(.present, .expect(both), .finish),
            .accepted(.present, .expect(both), .reset),
            .accepted(.present, .expect(Self.publish("x", 1, isDuplicate: true)), .finish),
            .accepted(
                .present,
                .expect(Self.publish("y", 2, isDuplicate: true)),
                .reply(Self.puback(2)),
                .expect(Self.publish("z", 3)),
                .reply(Self.puback(3))
            ),
        ]
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
        }
        let failed = Task {
            var events = transport.events.makeAsyncIterator()
            return await take(to: .sendFailed, &events).last
        }
        try await provider.connect()
        let bad = provider.enqueue(.send("x", qos: .atLeastOnce))
        let good = provider.enqueue(.send("y", qos: .atLeastOnce))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts[4].hasReached(4) || scripts.contains { $0.failures != [] }
        }
        try #require(scripts.map(\.failures) == scripts.map { _ in [] })
        _ = try await good.receipt
        await expectProof(4, bad)
        let later = provider.enqueue(.send("z", qos: .atLeastOnce))
        try await play(scripts)
        _ = try await later.receipt
        #expect(await failed.value?.error?.code == .rejected)
        await transport.shutdown()
    }

    @Test("A clean session: found as well, and the one behind it arrives", arguments: versions)
    func cleanSession(_ version: MQTTConfiguration.Version) async throws {
        func script(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
            let opening: [ScriptedByteStream.Step] =
                version == .v5
                ? [.expect(Self.connect5), .reply(Self.connack5)]
                : [.expect(Packet.connect), .reply(Packet.connack)]
            return ScriptedByteStream(steps: opening + steps)
        }
        let bad = Self.publish("x", 1, version)
        let both = bad + Self.publish("y", 2, version)
        let scripts = [
            script(.expect(both), .finish), script(.expect(both), .finish),
            script(.expect(both), .finish), script(.expect(bad), .finish),
            script(.expect(Self.publish("y", 1, version)), .reply(Self.puback(1))),
        ]
        let (transport, provider) = try scripted(scripts, version: version, clock: clock, bare)
        // Without a connection the second send would wait for the first one.
        try await provider.connect()
        let sends = ["x", "y"].map { provider.enqueue(.send($0, qos: .atLeastOnce)) }
        try await play(scripts)
        await expectProof(4, sends[0])
        _ = try await sends[1].receipt
        await transport.shutdown()
    }

    // MARK: DISCONNECT of MQTT 5

    @Test(
        "A reason that names the message proves the first end at which it was alone",
        arguments: [0x95, 0x99, 0x90] as [UInt8]
    )
    func named(_ code: UInt8) async throws {
        let end: [ScriptedByteStream.Step] = [.reply(Self.disconnect(code)), .finish]
        let bad = Self.publish("x", 1, .v5)
        let both = bad + Self.publish("y", 2, .v5)
        let opening: [ScriptedByteStream.Step] = [.expect(Self.connect5), .reply(Self.connack5)]
        let scripts = [
            ScriptedByteStream(steps: opening + [.expect(both)] + end),
            ScriptedByteStream(steps: opening + [.expect(bad)] + end),
            Self.accepted5(.expect(Self.publish("y", 1, .v5)), .reply(Self.puback(1))),
        ]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock, bare)
        // Without a connection the second send would wait for the first one.
        try await provider.connect()
        let sends = ["x", "y"].map { provider.enqueue(.send($0, qos: .atLeastOnce)) }
        try await play(scripts)
        await expectProof(2, sends[0])
        _ = try await sends[1].receipt
        await transport.shutdown()
    }

    @Test("The same for a message that was alone at the first end: the connection is made again")
    func namedAtOnce() async throws {
        let scripts = [
            Self.accepted5(
                .expect(Self.publish("x", 1, .v5)),
                .reply(Self.disconnect(0x95)),
                .finish
            ),
            Self.accepted5(.expect(Self.publish("y", 1, .v5)), .reply(Self.puback(1))),
        ]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock, bare)
        let bad = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts[1].hasReached(3)
        }
        let good = provider.enqueue(.send("y", qos: .atLeastOnce))
        try await play(scripts)
        await expectProof(1, bad)
        _ = try await good.receipt
        await transport.shutdown()
    }

    // MARK: Ends that do not count

    @Test(
        "A server that is busy, shuts down or refers elsewhere says nothing about the message",
        arguments: [0x89, 0x8B, 0x97] as [UInt8]
    )
    func serverShutsDown(_ code: UInt8) async throws {
        let bad = Self.publish("x", 1, .v5)
        let ends = (0..<6).map { _ in
            Self.accepted5(.expect(bad), .reply(Self.disconnect(code)), .finish)
        }
        let scripts = ends + [Self.accepted5(.expect(bad), .reply(Self.puback(1)))]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock) {
            bare(&$0)
            $0.timeouts.confirmation = .seconds(3_600)
        }
        let send = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await play(scripts)
        _ = try await send.receipt
        await transport.shutdown()
    }

    @Test("A server that falls silent says nothing about the message")
    func keepAliveTimesOut() async throws {
        let ends = (0..<6).map { _ in
            ScriptedByteStream.accepted(.expect(Self.publish("x", 1)), .expect([0xC0, 0]))
        }
        let last = ScriptedByteStream.accepted(
            .expect(Self.publish("x", 1)),
            .reply(Self.puback(1))
        )
        let scripts = ends + [last]
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.timeouts.confirmation = .seconds(3_600)
        }
        let send = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
        }
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
        _ = try await send.receipt
        await transport.shutdown()
    }

    // MARK: A store

    @Test("The ends are counted over the end of the process, and the message leaves the store")
    func stored() async throws {
        let store = InMemorySessionStore()
        let bad = Self.publish("x", 0x8001)
        let again = Self.publish("x", 0x8001, isDuplicate: true)
        func client(
            _ scripts: [ScriptedByteStream]
        ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
            try scripted(scripts, clock: clock) {
                $0.session.cleanStart = false
                $0.session.store = store
            }
        }
        let first: [ScriptedByteStream] = [
            .accepted(.new, .expect(bad), .finish), .accepted(.present, .expect(again), .finish),
            .accepted(.present, .expect(again)),
        ]
        let (transport, provider) = try client(first)
        let send = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await play(first)
        await transport.shutdown()
        await expectError(.shutDown) { try await send.receipt }
        #expect(store.messages().map(\.id) == [1])

        let good = Self.publish("y", 0x8002)
        let second: [ScriptedByteStream] = [
            .accepted(.present, .expect(again), .finish),
            .accepted(.present, .expect(again), .finish),
            .accepted(.present, .expect(good), .reply(Self.puback(0x8002))),
        ]
        let (next, nextProvider) = try client(second)
        var events = next.events.makeAsyncIterator()
        let later = nextProvider.enqueue(.send("y", qos: .atLeastOnce))
        try await play(second)
        _ = try await later.receipt
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.code == .rejected)
        #expect(failure?.topic == "t")
        try await waitUntil { store.messages().isEmpty }
        await next.shutdown()
    }

    @Test("The same with a clean session, where the next process sends the message as a new one")
    func storedWithoutSession() async throws {
        let store = InMemorySessionStore()
        let bad = Self.publish("x", 1)
        func client(
            _ scripts: [ScriptedByteStream]
        ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
            try scripted(scripts, clock: clock) { $0.session.store = store }
        }
        let first: [ScriptedByteStream] = [
            .accepted(.expect(bad), .finish), .accepted(.expect(bad), .finish),
            .accepted(.expect(bad)),
        ]
        let (transport, provider) = try client(first)
        let send = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await play(first)
        await transport.shutdown()
        await expectError(.shutDown) { try await send.receipt }
        #expect(store.messages().map(\.suspiciousEnds) == [2])

        let second: [ScriptedByteStream] = [
            .accepted(.expect(bad), .finish), .accepted(.expect(bad), .finish), .accepted(),
        ]
        let (next, nextProvider) = try client(second)
        var events = next.events.makeAsyncIterator()
        try await nextProvider.connect()
        try await play(second)
        #expect(await take(to: .sendFailed, &events).last?.error?.code == .rejected)
        #expect(store.messages().isEmpty)
        await next.shutdown()
    }

    @Test("A suspect that the server does not answer holds the others for ten seconds")
    func unanswered() async throws {
        let store = InMemorySessionStore()
        store.setSuspiciousEnds(
            3,
            of: store.insert(StoredMessage(topic: "t", body: [0x78], qos: 1))
        )
        let script = ScriptedByteStream.accepted(
            .present,
            .expect(Self.publish("x", 0x8001, isDuplicate: true)),
            .expect(Self.publish("y", 0x8002)),
            .reply(Self.puback(0x8002))
        )
        let (transport, provider) = try scripted([script], clock: clock) {
            $0.session.cleanStart = false
            $0.session.store = store
        }
        let good = provider.enqueue(.send("y", qos: .atLeastOnce))
        try await waitUntil { script.hasReached(4) }
        clock.advance(by: .milliseconds(9_999))
        await untilQuiet()
        #expect(!script.hasReached(5) && store.messages().first?.suspiciousEnds == 3)
        clock.advance(by: .milliseconds(1))
        _ = try await good.receipt
        #expect(script.failures == [])
        #expect(store.messages().map(\.suspiciousEnds) == [0])
        await transport.shutdown()
    }

    @Test("A failed message of QoS 2 leaves the store, and its identifier is not used again")
    func exactlyOnce() async throws {
        let store = InMemorySessionStore()
        let bad = ("34 06 0001 74 8001 78" as Hex).bytes
        let again = ("3C 06 0001 74 8001 78" as Hex).bytes
        let scripts: [ScriptedByteStream] = [
            .accepted(.new, .expect(bad), .finish), .accepted(.present, .expect(again), .finish),
            .accepted(.present, .expect(again), .finish),
            .accepted(.present, .expect(again), .finish),
            .accepted(.present, .expect(Self.publish("y", 0x8002)), .reply(Self.puback(0x8002))),
        ]
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
            $0.session.store = store
        }
        let send = provider.enqueue(.send("x", qos: .exactlyOnce))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts[4].hasReached(3)
        }
        await expectProof(4, send)
        #expect(store.messages().isEmpty)
        let good = provider.enqueue(.send("y", qos: .atLeastOnce))
        try await play(scripts)
        _ = try await good.receipt
        await transport.shutdown()
    }

    @Test("The PUBCOMP of an earlier connection says nothing of the message behind it")
    func behindRelease() async throws {
        let release = ("62 02 0001" as Hex).bytes
        let bad = Self.publish("x", 2)
        let again = Self.publish("x", 2, isDuplicate: true)
        // The PUBREL of the first message is repeated, and at last answered before the server ends the connection. On
        // the first connection that message is the older one, so that end says nothing of the other.
        let ends = (0..<2).map { _ in
            ScriptedByteStream.accepted(.present, .expect(release + again), .finish)
        }
        let scripts: [ScriptedByteStream] =
            [
                .accepted(
                    .new,
                    .expect(("34 06 0001 74 0001 67" as Hex).bytes),
                    .reply(("50 02 0001" as Hex).bytes),
                    .expect(release),
                    .expect(bad),
                    .finish
                )
            ] + ends + [
                .accepted(
                    .present,
                    .expect(release),
                    .expect(again),
                    .reply(("70 02 0001" as Hex).bytes),
                    .finish
                ),
                .accepted(.present, .expect(again), .finish), .accepted(.present, .skip(1)),
            ]
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
        }
        try await provider.connect()
        let good = provider.enqueue(.send("g", qos: .exactlyOnce))
        try await waitUntil { scripts[0].hasReached(5) }
        let send = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts[5].hasReached(2) || scripts.contains { $0.failures != [] }
        }
        #expect(scripts.dropLast().map(\.failures) == scripts.dropLast().map { _ in [] })
        await expectProof(4, send)
        _ = try await good.receipt
        await transport.shutdown()
    }

    @Test("With a lost session, a message whose caller was told of a timeout is not sent anew")
    func toldOfTimeout() async throws {
        let first = ScriptedByteStream.accepted(
            .new,
            .expect(Self.publish("x", 1)),
            .expect(("30 05 0001 74 67 6F" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream.accepted(
            .new,
            .expect(Self.publish("y", 1)),
            .reply(Self.puback(1))
        )
        let (transport, provider) = try scripted([first, second], clock: clock) {
            $0.session.cleanStart = false
        }
        let bad = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await waitUntil { first.hasReached(4) }
        clock.advance(by: .seconds(30))
        await expectError(.timedOut) { try await bad.receipt }
        // The server loses its session with the connection.
        try await provider.request(.send("go"))
        let good = provider.enqueue(.send("y", qos: .atLeastOnce))
        try await play([second])
        _ = try await good.receipt
        await transport.shutdown()
    }
}
