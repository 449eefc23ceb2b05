import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// The server may keep a session for another time than the client has asked for (MQTT 5, 3.2.2.3.2).
@Suite("MQTT transport: a granted session expiry", .inSimulation, .timeLimit(.minutes(30)))
struct GrantedExpiryTests {
    @Test(
        "What the server grants decides whether messages are kept for the next connection",
        arguments: [
            (asked: nil, granted: nil, isKept: false), (60, nil, true), (60, 10, true),
            (60, 0, false), (nil, 60, true),
        ] as [(asked: Int?, granted: UInt8?, isKept: Bool)]
    )
    func granted(_ row: (asked: Int?, granted: UInt8?, isKept: Bool)) async throws {
        let connect = ScriptedByteStream.Step.skip(row.asked == nil ? 16 : 21)
        let connack: [UInt8] =
            if let granted = row.granted {
                [0x20, 8, 0, 0, 5, 0x11, 0, 0, 0, granted]
            } else {
                [0x20, 3, 0, 0, 0]
            }
        let first = ScriptedByteStream(
            connect,
            .reply(connack),
            .expect(("32 07 0001 74 0001 00 78" as Hex).bytes),
            .expect(("E0 00" as Hex).bytes)
        )
        let repeated = ("3A 07 0001 74 0001 00 78" as Hex).bytes
        let next = ScriptedByteStream(
            connect,
            .reply(("20 03 01 00 00" as Hex).bytes),
            .expect((row.isKept ? repeated : []) + ("30 05 0001 74 00 79" as Hex).bytes)
        )
        let (transport, provider) = try scripted([first, next], version: .v5) {
            bare(&$0)
            $0.session.cleanStart = false
            $0.session.expiry = row.asked.map { .seconds($0) }
            $0.timeouts.drain = .zero
        }
        try await provider.connect()
        let sending = Task { try await provider.request(.send("x", qos: .atLeastOnce)) }
        await untilQuiet()
        try await provider.disconnect()
        await expectError(.connectionLost) { try await sending.value }
        try await provider.connect()
        try await provider.request(.send("y"))
        await untilQuiet()
        #expect(first.failures == [] && next.failures == [])
        #expect(first.isComplete && next.isComplete)
        await transport.shutdown()
    }
}
