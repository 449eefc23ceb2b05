import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT codec: user properties") struct UserPropertyTests {
    private func publish(_ pairs: [MQTTUserProperty]) -> MQTTPublish {
        var properties = MQTTProperties()
        properties.userProperties = pairs
        return MQTTPublish(topic: "t", properties: properties, payload: [0xFF])
    }

    @Test("They are read wherever they stand, and keep their order")
    func anywhere() throws {
        let hex: Hex =
            "30 1E 0001 74 19 26 0001 62 0001 31 01 01 26 0001 61 0000 03 0001 63 26 0001 62 0000 FF"
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(hex.bytes)
        var expected = publish([
            MQTTUserProperty(name: "b", value: "1"), MQTTUserProperty(name: "a", value: ""),
            MQTTUserProperty(name: "b", value: ""),
        ])
        expected.properties.payloadFormatIndicator = 1
        expected.properties.contentType = "c"
        #expect(try makeDecoder(.v5, .client)(&buffer) == .publish(expected))
    }

    /// Lengths of properties around the borders of one and two bytes, and of two and three.
    @Test(
        "They are as long as was said before them",
        arguments: [0, 121, 122, 123, 124, 16_377, 16_378, 16_379, 65_535]
    )
    func lengths(length: Int) throws {
        let value = String(repeating: "v", count: length)
        let packet = publish([MQTTUserProperty(name: "", value: value)])
        var writer = ByteWriter()
        try packet.encode(into: &writer, version: .v5)
        #expect(writer.count == packet.encodedSize(version: .v5, payloadByteCount: 1))
        var buffer = ReceiveBuffer()
        buffer.append(writer.bytes)
        #expect(try makeDecoder(.v5, .client)(&buffer) == .publish(packet))
        #expect(buffer.count == 0)
    }

    @Test("Letters of several bytes count as such")
    func letters() throws {
        let packet = publish([MQTTUserProperty(name: "größe", value: "日本語 👩‍🚀")])
        var writer = ByteWriter()
        try packet.encode(into: &writer, version: .v5)
        var buffer = ReceiveBuffer()
        buffer.append(writer.bytes)
        #expect(try makeDecoder(.v5, .client)(&buffer) == .publish(packet))
    }

    @Test("U+0000 is refused wherever it stands, and nothing is written")
    func null() {
        let text = String(repeating: "a", count: 40)
        for place in [0, 1, 7, 8, 20, 40] {
            var value = text
            value.insert("\0", at: value.index(value.startIndex, offsetBy: place))
            var writer = ByteWriter()
            writer.append(0xAA as UInt8)
            #expect(throws: MQTTEncodingError.nullCharacter("user property value")) {
                try publish([MQTTUserProperty(name: "n", value: value)])
                    .encode(into: &writer, version: .v5)
            }
            #expect(throws: MQTTEncodingError.nullCharacter("user property name")) {
                try publish([MQTTUserProperty(name: value, value: "")])
                    .encode(into: &writer, version: .v5)
            }
            #expect(writer.bytes == [0xAA])
        }
    }
}
