import MQTTWire
import Testing
import WireCore

/// The runs in which a client reports messages.
@Suite("MQTT: runs of messages") struct ArrivalsTests {
    private struct Run: Equatable {
        var topic: String
        var bodies: [String]
        var identifiers: [UInt32] = []
        var isRetained = false
        var hasProperties = false
    }

    /// Feeds packets in one read, and returns the runs of each event.
    private func runs(_ version: MQTTVersion, _ packets: [MQTTPublish]) throws -> [Run] {
        var client = MQTTClientConnection(
            configuration: {
                var configuration = MQTTClientConfiguration()
                configuration.version = version
                return configuration
            }()
        )
        let connect = MQTTConnect(version: version, clientIdentifier: "c")
        try client.connect(connect, hasSessionState: false, at: .zero)
        var writer = ByteWriter()
        try MQTTPacket.connack(MQTTConnackPacket()).encode(into: &writer, version: version)
        for packet in packets {
            try MQTTPacket.publish(packet).encode(into: &writer, version: version)
        }
        var buffer = ReceiveBuffer()
        buffer.append(writer.takeBytes())
        client.receive(&buffer, at: .zero)
        var all: [Run] = []
        for case .messages(let arrivals) in client.takeEvents() {
            #expect(arrivals.all.map { $0.publish } == packets, "every packet whole, in order")
            arrivals.forEachRun { run in
                all.append(
                    Run(
                        topic: run.topic,
                        bodies: run.indices.map { index in
                            var copier = SliceCopier()
                            let copy = arrivals.payload(at: index, copiedBy: &copier)
                            return String(decoding: copy.bytes, as: UTF8.self)
                        },
                        identifiers: run.subscriptionIdentifiers,
                        isRetained: run.isRetained,
                        hasProperties: run.hasProperties
                    )
                )
            }
        }
        return all
    }

    private func message(
        _ topic: String,
        _ body: String,
        named identifier: UInt32? = nil,
        isRetained: Bool = false,
        qos: MQTTQoS = .atMostOnce,
        id: UInt16 = 0
    ) -> MQTTPublish {
        var properties = MQTTProperties()
        if let identifier { properties.subscriptionIdentifiers = [identifier] }
        return MQTTPublish(
            topic: topic,
            qos: qos,
            isRetained: isRetained,
            packetIdentifier: id,
            properties: properties,
            payload: ByteSlice(copying: Array(body.utf8))
        )
    }

    @Test("Neighbours with one topic are one run", arguments: [MQTTVersion.v3_1_1, .v5])
    func topics(version: MQTTVersion) throws {
        let runs = try runs(
            version,
            [
                message("a", "1"), message("a", "2"), message("b", "3"), message("a", ""),
                message("a", "5", isRetained: true), message("a", "6", qos: .atLeastOnce, id: 9),
            ]
        )
        #expect(
            runs == [
                Run(topic: "a", bodies: ["1", "2"]), Run(topic: "b", bodies: ["3"]),
                Run(topic: "a", bodies: [""]), Run(topic: "a", bodies: ["5"], isRetained: true),
                Run(topic: "a", bodies: ["6"]),
            ]
        )
    }

    @Test("A subscription identifier divides runs; other properties make a run of one")
    func properties() throws {
        var rich = message("a", "4", named: 7)
        rich.properties.contentType = "text/plain"
        var two = message("a", "5")
        two.properties.subscriptionIdentifiers = [7, 8]
        let runs = try runs(
            .v5,
            [
                message("a", "1", named: 7), message("a", "2", named: 7),
                message("a", "3", named: 8), rich, two, message("a", "6"),
            ]
        )
        #expect(
            runs == [
                Run(topic: "a", bodies: ["1", "2"], identifiers: [7]),
                Run(topic: "a", bodies: ["3"], identifiers: [8]),
                Run(topic: "a", bodies: ["4"], identifiers: [7], hasProperties: true),
                Run(topic: "a", bodies: ["5"], identifiers: [7, 8], hasProperties: true),
                Run(topic: "a", bodies: ["6"]),
            ]
        )
    }

    @Test("A repetition that is not delivered leaves the next message its own topic")
    func repetition() throws {
        var harness = try ClientHarness(.v5)
        harness.receive(
            .publish(message("a", "1", qos: .exactlyOnce, id: 1)),
            .publish(message("b", "1", qos: .exactlyOnce, id: 1)),
            .publish(message("b", "2"))
        )
        #expect(harness.topics == ["a", "b"])
    }
}
