import MQTTWire
import Testing
import WireCore

/// Reasons of PUBACK and PUBREC, and calls that wait for the end of an inbound QoS 2 exchange.
@Suite("Answers to received messages (MQTT 5, 3.4, 3.5, 4.3.3)") struct ReceiverAnswerTests {
    @Test("Reason code and reason string travel with PUBACK and PUBREC, in the order of arrival")
    func reasons() throws {
        var harness = try ClientHarness()
        harness.receive(.message("1", .atLeastOnce, id: 1), .message("2", .atLeastOnce, id: 2))
        harness.receive(.message("3", .exactlyOnce, id: 3))
        _ = harness.answer(1, .quotaExceeded, text: "full")
        #expect(harness.sent.isEmpty, "PUBACK of the first message is owed first")
        _ = harness.answer(0)
        _ = harness.answer(2, .payloadFormatInvalid, text: "no JSON")
        let sent = harness.sent
        #expect(sent.count == 3)
        guard case .puback(let first) = sent[0], case .puback(let second) = sent[1],
            case .pubrec(let third) = sent[2]
        else {
            Issue.record("\(sent)")
            return
        }
        #expect(first == MQTTAcknowledgement(packetIdentifier: 1))
        #expect(second.reasonCode == .quotaExceeded && second.properties.reasonString == "full")
        #expect(third.reasonCode == .payloadFormatInvalid)
        #expect(third.properties.reasonString == "no JSON")
    }

    @Test("A reason string is left out where it would exceed the server's limit")
    func tooLong() throws {
        var connack = MQTTConnackPacket()
        connack.properties.maximumPacketSize = 12
        var harness = try ClientHarness(connack: connack)
        harness.receive(.message("1", .atLeastOnce, id: 1), .message("2", .atLeastOnce, id: 2))
        _ = harness.answer(0, .quotaExceeded, text: "four")
        _ = harness.answer(1, .quotaExceeded, text: "fives")
        let texts = harness.sent.map { packet in
            if case .puback(let puback) = packet { puback.properties.reasonString } else { "none" }
        }
        // PUBACK with four bytes of text has 13 bytes, one too many.
        #expect(texts == [nil, nil])
        var fitting = try ClientHarness(connack: connack)
        fitting.receive(.message("1", .atLeastOnce, id: 1))
        _ = fitting.answer(0, .quotaExceeded, text: "six")
        guard case .puback(let puback)? = fitting.sent.first else {
            Issue.record("no PUBACK")
            return
        }
        #expect(puback.properties.reasonString == "six")
    }

    @Test("A call completes when PUBREL has come and PUBCOMP was written")
    func completes() throws {
        var harness = try ClientHarness()
        harness.receive(.message("1", .exactlyOnce, id: 1))
        #expect(harness.answer(0, awaitedBy: 7) == .waiting)
        #expect(harness.sent == [.pubrec(MQTTAcknowledgement(packetIdentifier: 1))])
        #expect(harness.told() == ["message 1"])
        harness.receive(.pubrel(MQTTAcknowledgement(packetIdentifier: 1)))
        #expect(harness.told() == ["completed 7"])
        #expect(harness.sent == [.pubcomp(MQTTAcknowledgement(packetIdentifier: 1))])
    }

    @Test("At QoS 1, and after a refusal whose turn has come, there is nothing to wait for")
    func atOnce() throws {
        var harness = try ClientHarness()
        harness.receive(.message("1", .atLeastOnce, id: 1), .message("2", .exactlyOnce, id: 2))
        #expect(harness.answer(0, awaitedBy: 1) == .completed)
        #expect(harness.answer(1, .quotaExceeded, awaitedBy: 2) == .completed)
        #expect(harness.told() == ["message 1", "message 2"])
    }

    @Test("A refusal that waits for its turn completes when PUBREC is sent")
    func refusalInTurn() throws {
        var harness = try ClientHarness()
        harness.receive(.message("1", .exactlyOnce, id: 1), .message("2", .exactlyOnce, id: 2))
        #expect(harness.answer(1, .quotaExceeded, awaitedBy: 2) == .waiting)
        _ = harness.told()
        harness.take(0)
        #expect(harness.told() == ["completed 2"])
    }

    @Test("A call expires at its time limit, and the exchange goes on without it")
    func expires() throws {
        var harness = try ClientHarness { $0.acknowledgementTimeout = .seconds(30) }
        harness.receive(.message("1", .exactlyOnce, id: 1))
        #expect(harness.answer(0, awaitedBy: 7) == .waiting)
        _ = harness.told()
        harness.advance(.seconds(29))
        #expect(harness.told() == [])
        harness.advance(.seconds(1))
        #expect(harness.told() == ["timed out 7"])
        _ = harness.sent
        harness.receive(.pubrel(MQTTAcknowledgement(packetIdentifier: 1)))
        #expect(harness.sent == [.pubcomp(MQTTAcknowledgement(packetIdentifier: 1))])
        #expect(harness.told() == [])
    }

    @Test("A call that is withdrawn is not told of the end")
    func withdrawn() throws {
        var harness = try ClientHarness()
        harness.receive(.message("1", .exactlyOnce, id: 1))
        let call = Call(7)
        let answer = MQTTReceiverAnswer(.success)
        let completion = harness.client.acknowledge(
            harness.receipts[0],
            answer,
            awaitedBy: call,
            at: harness.now
        )
        #expect(completion == .waiting)
        harness.client.cancel(call, at: harness.now)
        _ = harness.told()
        harness.receive(.pubrel(MQTTAcknowledgement(packetIdentifier: 1)))
        #expect(harness.told() == [])
        #expect(harness.client.deadline == nil || harness.client.openCallCount == 0)
    }

    /// What a call that waits is told over the next connection.
    @Test("The wait goes on over the next connection if the server has kept the session")
    func nextConnection() throws {
        for isPresent in [true, false] {
            let lasting = MQTTConnect(clientIdentifier: "c", cleanStart: false)
            var harness = try ClientHarness(connect: lasting) { $0.keepsSession = true }
            harness.receive(.message("1", .exactlyOnce, id: 1))
            #expect(harness.answer(0, awaitedBy: 7) == .waiting)
            let state = harness.cut()
            #expect(state.calls.count == 1)
            #expect(state.earliestDeadline != nil)
            var next = try ClientHarness(connect: lasting, connack: nil) { $0.keepsSession = true }
            try next.client.connect(lasting, hasSessionState: true, resuming: state, at: next.now)
            next.receive(.connack(MQTTConnackPacket(sessionPresent: isPresent)))
            guard isPresent else {
                #expect(next.told() == ["session lost 7", "connected"])
                continue
            }
            #expect(next.told() == ["connected"])
            next.receive(.pubrel(MQTTAcknowledgement(packetIdentifier: 1)))
            #expect(next.told() == ["completed 7"])
        }
    }

    @Test("The wait ends with the session, also where the server is verified first")
    func authenticatedSessionLoss() throws {
        var lasting = MQTTConnect(clientIdentifier: "c", cleanStart: false)
        var harness = try ClientHarness(connect: lasting) { $0.keepsSession = true }
        harness.receive(.message("1", .exactlyOnce, id: 1))
        #expect(harness.answer(0, awaitedBy: 7) == .waiting)
        let state = harness.cut()
        var next = try ClientHarness(connect: lasting, connack: nil) { $0.keepsSession = true }
        lasting.properties.authenticationMethod = "m"
        try next.client.connect(lasting, hasSessionState: true, resuming: state, at: next.now)
        var connack = MQTTConnackPacket(sessionPresent: false)
        connack.properties.authenticationMethod = "m"
        next.receive(.connack(connack))
        #expect(next.told() == ["must verify []"])
        next.client.acceptServer(at: next.now)
        next.note()
        #expect(next.told() == ["session lost 7", "connected"])
        next.advance(.seconds(45))
        #expect(!next.log.contains("timed out 7"), "a call ends once")
    }

    @Test("Without a connection an answer waits for the repetition of the message")
    func parked() throws {
        let lasting = MQTTConnect(clientIdentifier: "c", cleanStart: false)
        var harness = try ClientHarness(connect: lasting) { $0.keepsSession = true }
        harness.receive(.message("1", .exactlyOnce, id: 1))
        let receipt = harness.receipts[0]
        var state = harness.cut()
        let completion = state.acknowledge(
            receipt,
            MQTTReceiverAnswer(.success),
            awaitedBy: Call(7),
            deadline: harness.now.advanced(by: .seconds(30))
        )
        #expect(completion == .waiting)
        var next = try ClientHarness(connect: lasting, connack: nil) { $0.keepsSession = true }
        try next.client.connect(lasting, hasSessionState: true, resuming: state, at: next.now)
        next.receive(.connack(MQTTConnackPacket(sessionPresent: true)))
        _ = next.sent
        next.receive(.message("1", .exactlyOnce, id: 1, dup: true))
        #expect(next.sent == [.pubrec(MQTTAcknowledgement(packetIdentifier: 1))])
        next.receive(.pubrel(MQTTAcknowledgement(packetIdentifier: 1)))
        #expect(next.told() == ["connected", "completed 7"])
    }

    @Test("A message of a lost session cannot be waited for")
    func lost() throws {
        let lasting = MQTTConnect(clientIdentifier: "c", cleanStart: false)
        var harness = try ClientHarness(connect: lasting) { $0.keepsSession = true }
        harness.receive(.message("1", .exactlyOnce, id: 1))
        let receipt = harness.receipts[0]
        var state = harness.cut()
        state.removeAll()
        let completion = state.acknowledge(
            receipt,
            MQTTReceiverAnswer(.success),
            awaitedBy: Call(7),
            deadline: harness.now
        )
        #expect(completion == .sessionLost)
    }
}

/// Filters with a common topic, which do not share a subscription identifier.
@Suite("Filters that overlap (MQTT 5, 4.7)") struct FilterOverlapTests {
    static let rows: [(String, String, Bool)] = [
        ("a", "a", true), ("a", "b", false), ("a/b", "a", false), ("a/+", "a/b", true),
        ("a/+", "b/+", false), ("a/#", "a", true), ("a/#", "a/b/c", true), ("a/#", "b/#", false),
        ("#", "a/b", true), ("+/b", "a/+", true), ("+/b", "a/c", false), ("+", "a/b", false),
        ("+/+", "a/b", true), ("a/+/c", "a/b/#", true), ("a/+/c", "a/b/d", false),
        ("a/b/#", "a/+", true), ("a/b/c/#", "a/+", false), ("/a", "a", false), ("/+", "/a", true),
        ("$queue/a", "a", true), ("$exclusive/+", "$queue/a", true), ("$delayed/5/a", "a", true),
        ("$delayed/x/a", "a", false), ("$queue", "a", false), ("$other/a", "a", false),
        ("$share/g/a/+", "a/b", true), ("$share/g/a", "$share/h/b", false), ("é", "é", true),
    ]

    @Test("Two filters", arguments: rows)
    func overlaps(_ one: String, _ another: String, _ isExpected: Bool) throws {
        let (left, right) = (try MQTTTopicFilter(one), try MQTTTopicFilter(another))
        #expect(left.overlaps(right) == isExpected)
        #expect(right.overlaps(left) == isExpected)
    }
}
