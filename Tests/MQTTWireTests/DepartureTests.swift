import MQTTWire
import Testing
import WireCore

@Suite("MQTT client: time limits that begin when the socket has the packet")
struct DepartureTests {
    private func harness(_ session: MQTTSessionState = MQTTSessionState()) throws -> ClientHarness {
        var harness = try ClientHarness(connack: nil) { $0.keepsSession = true }
        var connack = MQTTConnackPacket(sessionPresent: !session.isEmpty)
        connack.properties.serverKeepAlive = 0
        try harness.connect(resuming: session, connack: connack)
        return harness
    }

    private func publish(
        _ qos: MQTTQoS,
        until end: WireInstant = .never,
        _ harness: inout ClientHarness
    ) throws {
        var message = MQTTOutgoingMessage(publish: MQTTPublish(topic: "t", qos: qos), payload: [])
        message.lastsUntil = end
        try harness.client.publish(message, call: Call(1), at: harness.now)
    }

    @Test("It begins with the last bytes, and counts anew on the next connection")
    func begins() throws {
        var harness = try harness()
        try publish(.atLeastOnce, &harness)
        harness.advance(.seconds(3_600))
        #expect(harness.log == [])
        harness.client.noteGiven(isRest: false, at: harness.now)
        harness.advance(.seconds(20))
        // A part of them is left.
        harness.client.noteGiven(isRest: true, at: harness.now)
        harness.advance(.seconds(29))
        #expect(harness.log == [])
        // Other packets.
        harness.client.noteGiven(isRest: false, at: harness.now)
        let session = harness.cut()
        harness = try self.harness(session)
        harness.resume()
        harness.advance(.seconds(3_600))
        #expect(harness.log == [])
        harness.client.noteGiven(isRest: false, at: harness.now)
        harness.advance(.milliseconds(29_999))
        #expect(harness.log == [])
        harness.advance(.milliseconds(1))
        #expect(harness.log.count == 1)
    }

    @Test("The end of the message counts before that, and not after PUBREC")
    func expires() throws {
        var harness = try harness()
        try publish(.atLeastOnce, until: harness.now.advanced(by: .seconds(5)), &harness)
        harness.advance(.seconds(5))
        #expect(harness.log.count == 1)

        harness = try self.harness()
        try publish(.exactlyOnce, until: harness.now.advanced(by: .seconds(50)), &harness)
        harness.client.noteGiven(isRest: false, at: harness.now)
        harness.receive(.pubrec(MQTTAcknowledgement(packetIdentifier: 1)))
        harness.client.noteGiven(isRest: false, at: harness.now)
        let session = harness.cut()
        harness = try self.harness(session)
        harness.advance(.seconds(60))
        harness.resume()
        harness.advance(.seconds(60))
        #expect(harness.log == [])
        harness.client.noteGiven(isRest: false, at: harness.now)
        harness.advance(.seconds(30))
        #expect(harness.log.count == 1)
    }
}
