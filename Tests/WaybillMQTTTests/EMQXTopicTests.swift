import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// EMQX takes the first levels of some filters for options, and sends the topics without them.
@Suite("MQTT transport: the options in EMQX's filters", .inSimulation, .timeLimit(.minutes(30)))
struct EMQXTopicTests {
    private static let filters = ["$queue/t", "$exclusive/t", "$delayed/5/t", "$queue/+"]

    private static func hex(_ text: String) -> [UInt8] {
        [0, UInt8(text.utf8.count)] + Array(text.utf8)
    }

    @Test(
        "In 3.1.1 their messages reach the stream, and so do those of other servers",
        arguments: filters
    )
    func plain(filter: String) async throws {
        let name = Self.hex(filter)
        // A server to which the prefix is a level like any other.
        let literal = Self.hex(filter.replacing("+", with: "t"))
        let script = ScriptedByteStream.accepted(
            .expect([0x82, UInt8(name.count + 3), 0, 1] + name + [1]),
            .reply(Packet.suback),
            .reply(("30 04 0001 74 78" as Hex).bytes),
            .reply([0x30, UInt8(literal.count + 1)] + literal + [0x79])
        )
        let (transport, provider) = try scripted([script])
        let messages = try await provider.messages(.subscribe(filter, qos: .atLeastOnce))
        #expect(try await texts(2, messages) == ["x", "y"])
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("In MQTT 5 they share an identifier only with filters that have no topic in common")
    func identifiers() async throws {
        let script = ScriptedByteStream(
            .skip(16),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("82 14 0001 02 0B 01 0008 24717565 75652F74 01 0001 75 01" as Hex).bytes),
            .reply(("90 05 0001 00 01 01" as Hex).bytes),
            .reply(("30 07 0001 74 02 0B 01 78" as Hex).bytes)
        )
        let (transport, _) = try scripted([script], version: .v5) { bare(&$0) }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            .subscribe(topics: ["$queue/t", "u"], qos: .atLeastOnce)
        )
        #expect(try await texts(1, messages) == ["x"])
        #expect(script.failures == [])
        await transport.shutdown()
    }
}
