import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// The end of a subscription whose messages the app acknowledges itself.
@Suite("Messages in hand at the end of a subscription", .inSimulation, .timeLimit(.minutes(30)))
struct DrainTests {
    private static func subscribing(_ mode: AckMode? = nil) -> CommandEntry {
        var command = EntryCommand.subscribe(qos: .atLeastOnce, .manualAcknowledgement)
        command[.ackMode] = mode
        return .command(command, topic: "t")
    }

    private static func message(_ id: String) -> String {
        "MESSAGE\ndestination:t\nmessage-id:\(id)\nsubscription:1\nack:\(id)\n\n\(id)\0"
    }

    private static func stomp(
        _ mode: String = "client-individual",
        _ rest: ScriptedByteStream.Step...
    ) -> ScriptedByteStream {
        ScriptedByteStream(
            steps: [
                .expect("CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"),
                .reply("CONNECTED\nversion:1.2\n\n\0"),
                .expect("SUBSCRIBE\nid:1\ndestination:t\nack:\(mode)\n\n\0"),
                .reply(message("a") + message("b")),
            ] + rest
        )
    }

    private func provider(_ script: ScriptedByteStream) throws -> (
        STOMPTransport, Provider<CommandEntry>
    ) {
        var configuration = STOMPConfiguration()
        configuration.versions = [.v1_2]
        configuration.receipts = .never
        let transport = try STOMPTransport(
            scripts: [script],
            clock: ManualClock(),
            configuration: configuration
        )
        return (transport, Provider(transport: transport))
    }

    @Test("A loop that drains has no further message, and waits for none that it has not taken")
    func inLoop() async throws {
        let script = Self.stomp(
            "client-individual",
            .expect("ACK\nid:a\n\n\0"),
            .expect("UNSUBSCRIBE\nid:1\n\n\0")
        )
        let (transport, provider) = try provider(script)
        let messages = try await provider.messages(Self.subscribing())
        var taken: [String?] = []
        for try await message in messages {
            taken.append(message.text)
            try await provider.request(.command(.ack(#require(message.id))))
            await messages.drain()
        }
        #expect(taken == ["a"])
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime(transport) {}
    }

    @Test(
        "STOMP: UNSUBSCRIBE waits for the ACK of what was taken; the rest comes again",
        arguments: [AckMode.client, .clientIndividual]
    )
    func stomp(_ mode: AckMode) async throws {
        let script = Self.stomp(
            mode == .client ? "client" : "client-individual",
            .expect("ACK\nid:a\n\n\0"),
            .expect("UNSUBSCRIBE\nid:1\n\n\0")
        )
        let (transport, provider) = try provider(script)
        let messages = try await provider.messages(Self.subscribing(mode))
        var iterator = messages.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        let draining = Task { await messages.drain() }
        await untilQuiet()
        #expect(!script.hasReached(6))
        #expect(try await iterator.next() == nil)
        try await provider.request(.command(.ack(#require(first.id))))
        await draining.value
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime(transport) {}
    }

    @Test("STOMP: after an end that does not wait, the error of the ACK says what happened")
    func cancelled() async throws {
        let script = Self.stomp("client-individual", .expect("UNSUBSCRIBE\nid:1\n\n\0"))
        let (transport, provider) = try provider(script)
        let messages = try await provider.messages(Self.subscribing())
        var iterator = messages.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        messages.cancel()
        let error = await expectError(.invalidEntry) {
            try await provider.request(.command(.ack(#require(first.id))))
        }
        #expect(error?.message.contains("has ended") == true)
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime(transport) {}
    }

    @Test("A drain ends when it is cancelled, and when nothing is in hand")
    func cancelledDrain() async throws {
        let script = Self.stomp("client-individual", .expect("UNSUBSCRIBE\nid:1\n\n\0"))
        let (transport, provider) = try provider(script)
        let messages = try await provider.messages(Self.subscribing())
        var iterator = messages.makeAsyncIterator()
        _ = try await iterator.next()
        let draining = Task { await messages.drain() }
        await untilQuiet()
        draining.cancel()
        await draining.value
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime(transport) {}
    }

    @Test("MQTT: UNSUBSCRIBE leaves at once, and the end waits for the PUBACK of what was taken")
    func mqtt() async throws {
        let script = ScriptedByteStream(
            .skip(15),
            .reply(("20 02 00 00" as Hex).bytes),
            .expect(("82 06 0001 0001 74 01" as Hex).bytes),
            .reply(("90 03 0001 01" as Hex).bytes),
            .reply(("32 06 0001 74 0007 78" as Hex).bytes),
            .expect(("A2 05 0002 0001 74" as Hex).bytes),
            .reply(("B0 02 0002" as Hex).bytes),
            .expect(("40 02 0007" as Hex).bytes)
        )
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.clientIdentifier = "c"
        let transport = try MQTTTransport(
            scripts: [script],
            clock: ManualClock(),
            configuration: configuration
        )
        let provider = Provider<CommandEntry>(transport: transport)
        let messages = try await provider.messages(Self.subscribing())
        var iterator = messages.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        let draining = Task { await messages.drain() }
        await untilQuiet()
        #expect(script.hasReached(7) && !script.isComplete)
        try await provider.request(.command(.ack(#require(first.id))))
        await draining.value
        await untilQuiet()
        #expect(script.failures == [] && script.isComplete)
    }
}
