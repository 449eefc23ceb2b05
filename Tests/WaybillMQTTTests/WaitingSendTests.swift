import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSession
import WaybillTesting
import WireTestSupport

@Suite(
    "MQTT transport: sends that wait for any connection",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct WaitingSendTests {
    private let clock = ManualClock()
    private let store = LazyStore()

    private static let publish = ("32 06 0001 74 0001 78" as Hex).bytes
    private static let puback = ("40 02 0001" as Hex).bytes

    private func refused() -> ScriptedByteStream {
        ScriptedByteStream(.expect(Packet.connect), .finish)
    }

    private func client(
        _ scripts: [ScriptedByteStream],
        version: MQTTConfiguration.Version = .v3_1_1,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted(scripts, version: version, clock: clock) {
            $0.session.store = store
            change(&$0)
        }
    }

    private func send(
        _ provider: Provider<MQTTEntry>,
        _ options: SendOption...
    ) -> Promise<Receipt> {
        let command = EntryCommand.send(qos: .atLeastOnce, options: options)
        let result = Promise<Receipt>()
        let entry = MQTTEntry.command(command, topic: "t", body: .bytes([0x78]))
        result.resolve { try await provider.request(entry) }
        return result
    }

    /// Lets time pass until a condition holds.
    private func pass(until condition: @escaping @Sendable () -> Bool) async throws {
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }, condition)
    }

    private func pass(_ seconds: Int) async {
        for _ in 0..<seconds {
            clock.advance(by: .seconds(1))
            await untilQuiet()
        }
    }

    @Test("With a store on disk the first connection is made again and again, and gets the message")
    func offlineStart() async throws {
        let next = ScriptedByteStream.accepted(.expect(Self.publish), .reply(Self.puback))
        let (transport, provider) = try client([refused(), refused(), next])
        let sending = send(provider)
        try await pass { next.isComplete || next.failures != [] }
        _ = try await sending.value()
        #expect(next.failures == [])
        #expect(store.unwrittenCount == 1)
        await transport.shutdown()
    }

    @Test("A send without a limit waits for hours; a shutdown leaves the message")
    func lives() async throws {
        let (transport, provider) = try client([])
        let sending = send(provider)
        for _ in 0..<100 {
            clock.advance(by: .seconds(120))
            await untilQuiet()
        }
        #expect(sending.result == nil)
        await transport.shutdown()
        let error = await expectError(.shutDown) { try await sending.value() }
        #expect(error?.mayHaveArrived == true)
        #expect(store.messages().count == 1)
    }

    @Test(
        "Its expiry or its own time limit ends it, and the message is gone",
        arguments: [true, false]
    )
    func limits(isExpiry: Bool) async throws {
        let (transport, provider) = try client([], version: .v5)
        let sending = send(provider, isExpiry ? .expiry(.seconds(50)) : .timeout(.seconds(50)))
        await untilQuiet()
        await pass(49)
        #expect(sending.result == nil)
        await pass(1)
        let error = await expectError(.timedOut) { try await sending.value() }
        #expect(error?.mayHaveArrived == false)
        #expect(store.messages() == [])
        await transport.shutdown()
    }

    @Test("The limit of the confirmation begins when the socket has the last byte")
    func confirmation() async throws {
        let next = ScriptedByteStream.accepted(.expect(Self.publish))
        let (transport, provider) = try client([next])
        // No attempt in this time.
        await provider.pause()
        let sending = send(provider)
        await pass(100)
        provider.resume()
        try await waitUntil { next.hasReached(3) || next.failures != [] }
        await untilQuiet()
        await pass(29)
        #expect(sending.result == nil)
        await pass(1)
        let error = await expectError(.timedOut) { try await sending.value() }
        #expect(error?.mayHaveArrived == true)
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("A stated time limit counts from the call, also over a connection that came late")
    func statedLimit() async throws {
        let next = ScriptedByteStream.accepted(.expect(Self.publish))
        let (transport, provider) = try client([next])
        await provider.pause()
        let sending = send(provider, .timeout(.seconds(50)))
        await untilQuiet()
        await pass(40)
        provider.resume()
        try await waitUntil { next.hasReached(3) || next.failures != [] }
        await untilQuiet()
        await pass(9)
        #expect(sending.result == nil)
        await pass(1)
        await expectError(.timedOut) { try await sending.value() }
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("Its expiry counts from the call, and the server gets what is left")
    func expiry() async throws {
        // 9.5 seconds are left.
        let message = ("32 0C 0001 74 0001 05 02 0000000A 78" as Hex).bytes
        let next = ScriptedByteStream(
            .expect(("10 0E 0004 4D515454 05 02 003C 00 0001 63" as Hex).bytes),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(message),
            .reply(("40 02 0001" as Hex).bytes)
        )
        let (transport, provider) = try client([next], version: .v5) { bare(&$0) }
        await provider.pause()
        let sending = send(provider, .expiry(.seconds(50)))
        await untilQuiet()
        clock.advance(by: .milliseconds(500))
        await pass(40)
        provider.resume()
        await untilQuiet()
        #expect(next.failures == [])
        #expect(next.hasReached(3))
        await transport.shutdown()
        _ = try await sending.value()
    }

    @Test("It outlasts a disconnect, and goes out over the next connection")
    func disconnected() async throws {
        let next = ScriptedByteStream.accepted(.expect(Self.publish), .reply(Self.puback))
        let (transport, provider) = try client([next])
        await provider.pause()
        let sending = send(provider)
        await untilQuiet()
        try await provider.disconnect()
        await pass(100)
        #expect(sending.result == nil)
        try await provider.connect()
        _ = try await sending.value()
        #expect(next.failures == [])
        await transport.shutdown()
    }

    @Test("A server that refuses the client for good ends it, and the message is gone")
    func refusedForGood() async throws {
        let refusal = ScriptedByteStream(
            .expect(Packet.connect),
            .reply(("20 02 00 05" as Hex).bytes)
        )
        let (transport, provider) = try client([refusal])
        let sending = send(provider)
        let error = await expectError(.unauthorized) { try await sending.value() }
        #expect(error?.mayHaveArrived == false)
        #expect(store.messages() == [])
        await transport.shutdown()
    }

    @Test(
        "A first attempt that is refused before the send is queued does not strand it",
        .outsideSimulation
    )
    func refusedEarly() async throws {
        var options = Simulation.Options()
        options.shrinkingRuns = 0
        options.preemption = 0.3
        for seed in Simulation.seeds(Simulation.isAvailable ? 60 : 0) {
            try await Simulation.run(seed: seed, options: options, name: "refused early") { _ in
                let refusal = ScriptedByteStream(
                    .expect(Packet.connect),
                    .reply(("20 02 00 05" as Hex).bytes)
                )
                let (transport, provider) = try scripted([refusal])
                let sending = send(provider, .waitsForConnection)
                await untilQuiet()
                #expect(sending.result != nil)
                await transport.shutdown()
                await expectError(.unauthorized) { try await sending.value() }
            }
        }
    }

    @Test("Switched off, a send fails with its connection")
    func off() async throws {
        let (transport, provider) = try client([])
        let sending = send(provider, .waitsForConnection(false))
        await expectError(.connectionRefused) { try await sending.value() }
        await transport.shutdown()
        let (other, sender) = try client([]) { $0.offline.waitsForConnection = false }
        await expectError(.connectionRefused) { try await send(sender).value() }
        await other.shutdown()
    }

    @Test("Without a store it waits where the entry says so, as long as for its acknowledgement")
    func withoutStore() async throws {
        let next = ScriptedByteStream.accepted(.expect(Self.publish), .reply(Self.puback))
        let (transport, provider) = try client([refused(), next]) { $0.session.store = nil }
        let sending = send(provider, .waitsForConnection)
        try await pass { next.isComplete || next.failures != [] }
        _ = try await sending.value()
        await transport.shutdown()
        let (other, sender) = try client([]) { $0.session.store = nil }
        let lost = send(sender, .waitsForConnection)
        await untilQuiet()
        await pass(30)
        let error = await expectError(.timedOut) { try await lost.value() }
        #expect(error?.mayHaveArrived == false)
        await other.shutdown()
    }

    @Test("A subscription begins at once with a store on disk, and not without one")
    func subscription() async throws {
        let (transport, provider) = try client([])
        _ = try await provider.messages(.subscribe())
        await transport.shutdown()
        let (other, subscriber) = try client([]) { $0.session.store = nil }
        await expectError(.connectionRefused) { try await subscriber.messages(.subscribe()) }
        await other.shutdown()
    }
}
