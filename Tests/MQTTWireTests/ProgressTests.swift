import MQTTWire
import Testing
import WireTestSupport

@Suite("MQTT: what counts as progress") struct ProgressTests {
    @Test("Every packet after CONNACK, except one that ends the connection")
    func packets() throws {
        let publish = MQTTPublish(topic: "t", qos: .atMostOnce)
        let packets: [(MQTTPacket, Bool)] = [
            (.publish(publish), true), (.pingresp, true),
            (.disconnect(MQTTDisconnect(reasonCode: .serverBusy)), false),
        ]
        for (packet, isProgress) in packets {
            var harness = try ClientHarness()
            #expect(!harness.client.hasProgress)
            harness.receive(packet)
            #expect(harness.client.hasProgress == isProgress, "\(packet)")
        }
    }

    @Test("The answers to a message and to a subscription")
    func answers() throws {
        var sender = try ClientHarness()
        try sender.publish(.atLeastOnce)
        #expect(!sender.client.hasProgress)
        sender.receive(.puback(.ack(1)))
        #expect(sender.client.hasProgress)
    }
}
