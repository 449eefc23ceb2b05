import MQTTWire
import Testing
import WaybillMQTT
import WireCore
import WireTestSupport

/// What an app asks for while the session state passes from one connection to the next.
@Suite("MQTT transport: a session state that moves") struct SessionMoveTests {
    /// A message of QoS 1 from a connection before the last: its receipt, and the serials that come again.
    private func repeated() throws -> (MQTTDeliveryReceipt, MQTTRepeatedSerials) {
        let now = WireInstant.zero
        var configuration = MQTTClientConfiguration()
        configuration.version = .v3_1_1
        configuration.keepsSession = true
        let packet = MQTTConnect(version: .v3_1_1, clientIdentifier: "c", cleanStart: false)
        var receipts: [MQTTDeliveryReceipt] = []
        var session = MQTTSessionState()
        for bytes: Hex in ["20 02 00 00  32 06 0001 74 0001 61", "20 02 01 00"] {
            var core = MQTTClientConnection(configuration: configuration)
            try core.connect(packet, hasSessionState: true, resuming: session, at: now)
            var buffer = ReceiveBuffer(capacity: 64)
            buffer.append(bytes.bytes)
            core.receive(&buffer, at: now)
            for case .messages(let arrivals) in core.takeEvents() {
                receipts += (0..<arrivals.count).compactMap { arrivals.receipt(at: $0) }
            }
            core.receiveEndOfStream(at: now)
            session = core.takeSessionState()
        }
        return (try #require(receipts.first), session.repeatedSerials)
    }

    @Test("A message that the server sends again is no message of its own meanwhile")
    func repetition() throws {
        let (receipt, serials) = try repeated()
        var move = MQTTSessionMove(serials)
        #expect(move.repeatedSerials.contains(receipt))
        let isFirst = move.acknowledge(receipt, .success)
        #expect(!isFirst)
        #expect(move.actions.isEmpty)
        var first = MQTTSessionMove()
        let isFirstThere = first.acknowledge(receipt, .success)
        #expect(isFirstThere)
        #expect(first.actions.count == 1)
    }
}
