import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// A server core that has announced a Receive Maximum, and a client made of bytes.
@Suite("MQTT server: its own Receive Maximum (3.3.4-9, 4.9)") struct ServerReceiveTests {
    private struct Harness {
        var server = MQTTServerConnection(maximumPacketSize: 1 << 20, at: .zero)
        private var buffer = ReceiveBuffer(capacity: 64)
        var closures: [String] = []

        init(resuming session: MQTTSessionState? = nil) {
            receive(.connect(MQTTConnect(clientIdentifier: "c", cleanStart: false)))
            var connack = MQTTConnackPacket(sessionPresent: session != nil)
            connack.properties.receiveMaximum = 2
            server.accept(connack, resuming: session ?? MQTTSessionState())
        }

        mutating func receive(_ packets: MQTTPacket...) {
            var writer = ByteWriter()
            for packet in packets {
                do { try packet.encode(into: &writer, version: .v5) } catch { Issue.record(error) }
            }
            buffer.append(writer.bytes)
            server.receive(&buffer, at: .zero)
            for event in server.takeEvents() {
                if case .closed(let closure) = event { closures.append("\(closure)") }
            }
        }

        mutating func cut() -> MQTTSessionState {
            server.receiveEndOfStream(at: .zero)
            return server.takeSessionState()
        }
    }

    @Test("A third message of QoS 2 before a PUBREL ends the connection")
    func exceeded() {
        var harness = Harness()
        harness.receive(.message("1", .exactlyOnce, id: 1), .message("2", .exactlyOnce, id: 2))
        // A QoS 1 message is acknowledged at once and does not count against the Receive Maximum.
        for id in UInt16(10)...20 { harness.receive(.message("x", .atLeastOnce, id: id)) }
        harness.receive(.pubrel(.ack(1)), .message("3", .exactlyOnce, id: 3))
        #expect(!harness.server.isFinished)
        harness.receive(.message("4", .exactlyOnce, id: 4))
        #expect(harness.closures.count == 1)
        #expect(harness.closures.last?.contains("receiveMaximumExceeded") == true)
    }

    @Test("Counting begins anew with a connection, and repetitions do not count")
    func repetitions() {
        var first = Harness()
        first.receive(.message("1", .exactlyOnce, id: 1), .message("2", .exactlyOnce, id: 2))
        var harness = Harness(resuming: first.cut())
        harness.receive(
            .message("1", .exactlyOnce, id: 1, dup: true),
            .message("2", .exactlyOnce, id: 2, dup: true),
            .message("3", .exactlyOnce, id: 3),
            .message("4", .exactlyOnce, id: 4)
        )
        #expect(!harness.server.isFinished)
        harness.receive(.pubrel(.ack(1)), .pubrel(.ack(2)))
        harness.receive(.message("5", .exactlyOnce, id: 5))
        #expect(harness.closures.last?.contains("receiveMaximumExceeded") == true)
    }
}
