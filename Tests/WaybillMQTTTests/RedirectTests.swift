import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

@Suite(
    "MQTT transport: a server that sends its clients elsewhere (MQTT 5, 4.11)",
    .timeLimit(.minutes(5))
)
struct RedirectTests {
    private static let connack = ("20 03 00 00 00" as Hex).bytes

    /// The first reconnection waits only as long as the server asks. No delay is random here.
    @Test(
        "A DISCONNECT that says so: the same server is left alone for the busy delay",
        arguments: [UInt8(0x9C), 0x9D]
    )
    func disconnected(code: UInt8) async throws {
        let clock = ManualClock()
        let first = ScriptedByteStream(
            .skip(27),
            .reply(Self.connack),
            .reply([0xE0, 0x01, code])
        )
        let second = ScriptedByteStream(.skip(27), .reply(Self.connack))
        let (transport, provider) = try scripted([first, second], version: .v5, clock: clock)
        try await provider.request(.connect)
        try await waitUntil { "\(transport.states.current)".hasPrefix("waiting") }
        guard case .waiting(_, let cause) = transport.states.current else { return }
        #expect(cause.isServerBusy && cause.code == .connectionLost)
        clock.advance(by: .seconds(4))
        #expect(!second.hasReached(2))
        clock.advance(by: .seconds(1))
        try await waitUntil { "\(transport.states.current)" == "connected" }
        await transport.shutdown()
    }

    @Test("Where there is another host, that one is connected to without a wait")
    func otherHost() async throws {
        let first = ScriptedByteStream(
            .skip(27),
            .reply(Self.connack),
            .reply(("E0 01 9C" as Hex).bytes)
        )
        let second = ScriptedByteStream(.skip(27), .reply(Self.connack))
        let (transport, provider) = try scripted([first, second], version: .v5) {
            $0.failover.hosts = ["b"]
        }
        try await provider.request(.connect)
        try await waitUntil { second.hasReached(3) }
        await transport.shutdown()
    }

    @Test("A CONNACK that says so can be retried later; one of a server that has moved is final")
    func refused() async throws {
        for (code, outcome) in [
            (UInt8(0x9C), WaybillError.Code.connectionRefused), (0x9D, .rejected),
        ] {
            let script = ScriptedByteStream(.skip(27), .reply([0x20, 0x03, 0x00, code, 0x00]))
            let (transport, provider) = try scripted([script], version: .v5)
            let error = await expectError(outcome) { try await provider.request(.connect) }
            #expect(error?.isServerBusy == (code == 0x9C))
            await transport.shutdown()
        }
    }

    @Test("A server whose packets are too small for an acknowledgement is refused, by a limit")
    func packetSize() async throws {
        let script = ScriptedByteStream(
            .skip(27),
            .reply(("20 08 00 00 05 27 00 00 00 04" as Hex).bytes),
            .expect(("E0 01 95" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5)
        await expectError(.limitExceeded) { try await provider.request(.connect) }
        #expect(script.failures == [])
        await transport.shutdown()
    }
}
