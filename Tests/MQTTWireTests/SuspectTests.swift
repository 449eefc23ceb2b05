import MQTTWire
import Testing
import WireCore
import WireTestSupport

@Suite("MQTT client: a message that the server answers by ending the connection")
struct SuspectTests {
    private func start(
        _ version: MQTTVersion = .v5,
        _ session: MQTTSessionState = MQTTSessionState()
    ) throws -> ClientHarness {
        var harness = try ClientHarness(version, connack: nil) { $0.keepsSession = true }
        try harness.connect(resuming: session, connack: MQTTConnackPacket())
        return harness
    }

    /// Sends a message that a store has under a number, which is also the number of its call.
    private func publish(
        _ harness: inout ClientHarness,
        _ qos: MQTTQoS,
        _ number: UInt64,
        _ suspicion: ReplaySuspicion.Record = .clear,
        isSentOnce: Bool = false
    ) throws {
        let message = MQTTOutgoingMessage(
            publish: MQTTPublish(topic: "t", qos: qos),
            payload: Array("\(number)".utf8),
            storedNumber: number,
            isSentOnce: isSentOnce,
            suspicion: suspicion
        )
        try harness.client.publish(message, call: Call(Int(number)), at: harness.now)
    }

    /// The messages that were sent, each as its payload with its packet identifier.
    private func sent(_ harness: inout ClientHarness) -> [String] {
        let packets = harness.sent
        harness.client.noteGiven(isRest: false, at: harness.now)
        return packets.map { packet in
            guard case .publish(let publish) = packet else { return "\(packet.kind)" }
            let text = String(decoding: publish.payload.bytes, as: UTF8.self)
            return "\(text)#\(publish.packetIdentifier)\(publish.isDuplicate ? " again" : "")"
        }
    }

    /// Ends the connection by the server.
    private func end(
        _ harness: inout ClientHarness,
        _ end: ReplaySuspicion.End = .closed
    ) -> (finding: String, session: MQTTSessionState) {
        harness.endOfStream()
        let finding =
            switch harness.client.noteEnd(end, at: harness.now) {
            case .none: "none"
            case .unclear: "unclear"
            case .counted(let ends, let number): "\(number ?? 0) counted \(ends)"
            case .rejected(let rejected):
                "\(rejected.message.storedNumber ?? 0) rejected, \(rejected.dropped.cause)"
            }
        _ = harness.told()
        return (
            finding.replacing(/MQTTWire\.\w+\.\w+\./, with: ""), harness.client.takeSessionState()
        )
    }

    /// Ends the connection, and resumes the session on the next one.
    private func reconnect(
        _ harness: inout ClientHarness,
        sessionPresent: Bool = true
    ) throws -> String {
        let (finding, session) = end(&harness)
        try harness.connect(
            resuming: session,
            connack: MQTTConnackPacket(sessionPresent: sessionPresent)
        )
        harness.resume()
        return finding
    }

    @Test("Three ends, then alone, then failed; the order of the others stays")
    func found() throws {
        var harness = try start()
        for number in 1...3 { try publish(&harness, .atLeastOnce, UInt64(number)) }
        #expect(sent(&harness) == ["1#1", "2#2", "3#3"])
        for ends in 1...2 {
            #expect(try reconnect(&harness) == "1 counted \(ends)")
            #expect(sent(&harness) == ["1#1 again", "2#2 again", "3#3 again"])
        }
        #expect(try reconnect(&harness) == "1 counted 3")
        #expect(sent(&harness) == ["1#1 again"])
        // New messages wait, too.
        try publish(&harness, .atLeastOnce, 4)
        #expect(sent(&harness) == [])
        #expect(try reconnect(&harness) == "1 rejected, endedConnections(4)")
        #expect(sent(&harness) == ["2#2 again", "3#3 again", "4#4"])
        // Its identifier stays in use.
        for identifier in 2...4 { harness.receive(.puback(.ack(UInt16(identifier)))) }
        #expect(harness.told() == (2...4).map { "published \($0) Success (0x00)" })
        #expect(!harness.client.hasMessagesUnderWay)
        #expect(try reconnect(&harness) == "none")
        #expect(sent(&harness) == [])
        #expect(harness.client.openCallCount == 1)
        // A late PUBACK frees it.
        harness.receive(.puback(.ack(1)))
        #expect(harness.told() == [])
        #expect(harness.client.openCallCount == 0)
    }

    @Test("A session that the server has lost frees the identifier of a message that has failed")
    func lostSession() throws {
        var harness = try start()
        try publish(&harness, .exactlyOnce, 1, .isolated(ends: 3))
        try publish(&harness, .atLeastOnce, 2)
        #expect(sent(&harness) == ["1#1"])
        #expect(try reconnect(&harness, sessionPresent: false) == "1 rejected, endedConnections(4)")
        #expect(sent(&harness) == ["2#1"])
    }

    @Test(
        "A late PUBREC of a message that has failed is answered, and PUBCOMP frees the identifier"
    )
    func lateExactlyOnce() throws {
        var harness = try start()
        try publish(&harness, .exactlyOnce, 1, .isolated(ends: 3))
        _ = sent(&harness)
        #expect(try reconnect(&harness) == "1 rejected, endedConnections(4)")
        harness.receive(.puback(.ack(1)))
        harness.receive(.pubcomp(.ack(1)))
        #expect(harness.client.openCallCount == 1)
        harness.receive(.pubrec(.ack(1)))
        #expect(harness.sent == [.pubrel(.ack(1))])
        harness.receive(.pubcomp(.ack(1)))
        #expect(harness.client.openCallCount == 0)
        #expect(harness.told() == [])
    }

    @Test(
        "An acknowledgement of the isolated message lets the others go",
        arguments: [1, 2] as [UInt8]
    )
    func acquitted(_ qos: UInt8) throws {
        var harness = try start()
        let qos = try #require(MQTTQoS(rawValue: qos))
        try publish(&harness, qos, 1, .isolated(ends: 3))
        try publish(&harness, .atLeastOnce, 2)
        try publish(&harness, .atLeastOnce, 3)
        #expect(sent(&harness) == ["1#1"])
        #expect(harness.client.deadline == harness.now.advanced(by: .seconds(10)))
        harness.receive(qos == .atLeastOnce ? .puback(.ack(1)) : .pubrec(.ack(1)))
        let others = sent(&harness).filter { $0.contains("#") }
        #expect(others == ["2#2", "3#3"])
        // The next suspect begins at one.
        #expect(try reconnect(&harness) == (qos == .atLeastOnce ? "2 counted 1" : "none"))
    }

    @Test("Ten seconds without an answer let the others go, and clear the isolated message")
    func outlived() throws {
        var harness = try start()
        try publish(&harness, .atLeastOnce, 1, .isolated(ends: 3))
        try publish(&harness, .atLeastOnce, 2)
        #expect(sent(&harness) == ["1#1"])
        harness.advance(.seconds(10))
        #expect(harness.told() == ["cleared 1"])
        #expect(sent(&harness) == ["2#2"])
        #expect(try reconnect(&harness) == "none")
        #expect(sent(&harness) == ["1#1 again", "2#2 again"])
        #expect(try reconnect(&harness) == "1 counted 1")
    }

    @Test("A message at PUBREL is never a suspect, nor is one that is sent once, or of QoS 0")
    func neverSuspects() throws {
        var harness = try start()
        try publish(&harness, .exactlyOnce, 1, .suspected(ends: 2))
        _ = sent(&harness)
        harness.receive(.pubrec(.ack(1)))
        _ = sent(&harness)
        for _ in 0..<6 {
            #expect(try reconnect(&harness) == "none")
            #expect(sent(&harness) == ["pubrel"])
        }
        harness.receive(.pubcomp(.ack(1)))
        try publish(&harness, .atLeastOnce, 2, isSentOnce: true)
        try harness.publish(.atMostOnce)
        _ = sent(&harness)
        #expect(end(&harness, .named).finding == "none")
    }

    @Test("A reason that names a message: unclear while an acknowledgement came after all of them")
    func unclear() throws {
        var harness = try start()
        for number in 1...3 { try publish(&harness, .atLeastOnce, UInt64(number)) }
        _ = sent(&harness)
        harness.receive(.puback(.ack(1)))
        #expect(end(&harness, .named).finding == "unclear")
    }

    @Test("A stored message does not wait for the identifier of one that has failed")
    func storedIdentifier() throws {
        var session = MQTTSessionState(received: [])
        let message = MQTTOutgoingMessage(
            publish: MQTTPublish(topic: "t", qos: .atLeastOnce),
            payload: Array("1".utf8),
            storedNumber: 1,
            suspicion: .isolated(ends: 3)
        )
        session.restore(message, isReleased: false, call: Call(1))
        var harness = try ClientHarness(.v5, connack: nil) { $0.keepsSession = true }
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        harness.resume()
        #expect(sent(&harness) == ["1#32769 again"])
        #expect(try reconnect(&harness) == "1 rejected, endedConnections(4)")
        try publish(&harness, .atLeastOnce, 32_769)
        try publish(&harness, .atLeastOnce, 32_770)
        #expect(sent(&harness) == ["32769#1", "32770#32770"])
    }

    @Test("With a lost session, a message whose call has ended is not sent anew")
    func told() throws {
        var harness = try start()
        try harness.publish(.atLeastOnce, 1, timeout: .seconds(5))
        try harness.publish(.atLeastOnce, 2, timeout: .seconds(50))
        _ = sent(&harness)
        harness.advance(.seconds(5))
        #expect(harness.told() == ["timed out 1"])
        #expect(try reconnect(&harness, sessionPresent: false) == "0 counted 1")
        #expect(sent(&harness) == ["2#1"])
    }
}
