import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT client: a server that takes small packets only (3.2.2.3.6)") struct PacketSizeTests {
    @Test("Too small for an acknowledgement: the connection is refused", arguments: 1...4)
    func tooSmall(size: UInt32) throws {
        var harness = try ClientHarness(.v5, connack: nil)
        try harness.client.connect(
            MQTTConnect(clientIdentifier: "c"),
            hasSessionState: false,
            at: .zero
        )
        _ = harness.sent
        var connack = MQTTConnackPacket()
        connack.properties.maximumPacketSize = size
        harness.receive(.connack(connack))
        #expect(harness.told() == ["closed packetSizeTooSmall(\(size))"])
        let farewell = MQTTPacket.disconnect(MQTTDisconnect(reasonCode: .packetTooLarge))
        #expect(harness.sent == (size >= 3 ? [farewell] : []))
    }

    @Test("Five bytes are enough for every answer that is due")
    func smallest() throws {
        var connack = MQTTConnackPacket()
        connack.properties.maximumPacketSize = UInt32(MQTTServerLimits.smallestPacketSize)
        let connect = MQTTConnect(clientIdentifier: "c", keepAlive: 60)
        var harness = try ClientHarness(.v5, connect: connect, connack: connack)
        harness.receive(
            .message("1", .atLeastOnce, id: 1),
            .message("2", .exactlyOnce, id: 2),
            .pubrel(.ack(3))
        )
        harness.take(0, .implementationSpecificError)
        harness.take(1)
        harness.receive(.pubrec(.ack(9)))
        #expect(
            harness.sent == [
                .pubcomp(.ack(3, .packetIdentifierNotFound)),
                .puback(.ack(1, .implementationSpecificError)), .pubrec(.ack(2)),
                .pubrel(.ack(9, .packetIdentifierNotFound)),
            ]
        )
        harness.advance(.seconds(60))
        #expect(harness.sent == [.pingreq])
        var farewell = MQTTDisconnect(reasonCode: .disconnectWithWillMessage)
        farewell.properties.sessionExpiryInterval = 60
        harness.client.disconnect(farewell, at: harness.now)
        let terse = MQTTDisconnect(reasonCode: .disconnectWithWillMessage)
        #expect(harness.sent == [.disconnect(terse)])
    }

    @Test("A message names as many subscriptions as it likes, and each counts once")
    func subscriptionIdentifiers() throws {
        func named(_ identifiers: [UInt32]) throws -> [UInt32] {
            var publish = MQTTPublish(topic: "t")
            publish.properties.subscriptionIdentifiers = identifiers
            var writer = ByteWriter()
            try MQTTPacket.publish(publish).encode(into: &writer, version: .v5)
            var decoder = MQTTPacketDecoder(
                version: .v5,
                role: .client,
                maximumPacketSize: 1 << 24
            )
            var buffer = ReceiveBuffer(capacity: 64)
            buffer.append(writer.bytes)
            guard case .publish(let found)? = try decoder.next(&buffer) else { return [] }
            return found.properties.subscriptionIdentifiers
        }
        #expect(try named([7]) == [7])
        #expect(try named([7, 9, 7, 9, 8]) == [7, 9, 8])
        #expect(try named(Array(repeating: 7, count: 500_000)) == [7])
        let limit = UInt32(MQTTProperties.subscriptionIdentifierLimit)
        #expect(try named(Array(1...limit)) == Array(1...limit))
        // The topic of a message tells which filters match it, so the identifiers can be left out.
        #expect(try named(Array(1...500_000)) == [])
    }
}
