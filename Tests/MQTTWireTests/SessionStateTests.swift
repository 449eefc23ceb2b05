import MQTTWire
import Testing
import WireCore
import WireTestSupport

extension ClientHarness {
    /// Acknowledges messages. The result is true for each that the server will not send again.
    fileprivate mutating func acknowledge(_ indices: Int...) -> [Bool] {
        indices.map { client.acknowledge(receipts[$0], at: now) }
    }
}

@Suite("MQTT client: pending calls and half received messages between connections (4.1)")
struct SessionStateTests {
    private func start(_ version: MQTTVersion = .v5, window: Int = 20) throws -> ClientHarness {
        try ClientHarness(version) {
            $0.keepsSession = true
            $0.inflightWindow = window
        }
    }

    private func seconds(_ count: Int64) -> WireInstant {
        WireInstant.zero.advanced(by: .seconds(count))
    }

    // MARK: Callers

    @Test(
        "QoS 1 of an earlier connection comes again with its session, and does not without",
        arguments: MQTTVersion.allCases
    )
    func repeated(version: MQTTVersion) throws {
        var harness = try ClientHarness(version) { $0.keepsSession = true }
        harness.receive(.message("1", .atLeastOnce, id: 1), .message("2", .atLeastOnce, id: 2))
        #expect(harness.acknowledge(0, 0) == [true, true])
        try harness.reconnect(sessionPresent: false)
        #expect(harness.acknowledge(1) == [true], "it does not come again")
        harness.receive(.message("3", .atLeastOnce, id: 1), .message("4", .exactlyOnce, id: 2))
        try harness.reconnect(sessionPresent: true)
        harness.receive(.message("3", .atLeastOnce, id: 1, dup: true))
        try harness.reconnect(sessionPresent: true)
        #expect(harness.acknowledge(2, 4) == [false, false], "they come again")
        #expect(harness.acknowledge(1, 3) == [true, true], "of another session, and of QoS 2")
        try harness.reconnect(sessionPresent: false)
        #expect(harness.acknowledge(2, 1) == [false, true], "as before")
        _ = harness.sent
        harness.receive(.message("5", .atLeastOnce, id: 1))
        #expect(harness.acknowledge(5) == [true])
        #expect(harness.sent == [.puback(.ack(1))])
    }

    @Test("Callers give up while there is no connection; only what was never sent is withdrawn")
    func expired() throws {
        var harness = try start(window: 1)
        try harness.publish(.atLeastOnce, 1, timeout: .seconds(5))
        try harness.publish(.atLeastOnce, 2, timeout: .seconds(6))
        try harness.publish(.atLeastOnce, 3, timeout: .seconds(60))
        var session = harness.cut()
        #expect(session.earliestDeadline == seconds(5))
        #expect(session.takeExpired(at: seconds(4)).isEmpty)
        #expect(session.takeExpired(at: seconds(5)).map { harness.number($0) } == [1])
        #expect(session.messageCount == 3, "what was sent goes on")
        #expect(session.takeExpired(at: seconds(6)).map { harness.number($0) } == [2])
        #expect(session.messageCount == 2, "what was not is withdrawn")
        #expect(session.earliestDeadline == seconds(60))
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        harness.resume()
        #expect(harness.sent == [.message("1", .atLeastOnce, id: 1, dup: true)])
        _ = harness.told()
        harness.receive(.puback(.ack(1)))
        #expect(harness.sent == [.message("3", .atLeastOnce, id: 2)])
        harness.receive(.puback(.ack(2)))
        #expect(harness.told() == ["published 3 Success (0x00)"])
    }

    @Test("A deadline of a SUBSCRIBE does not outlast it")
    func deadlineOfRequest() throws {
        var harness = try start()
        try harness.publish(.atLeastOnce, 1, timeout: .seconds(50))
        let filters = [MQTTSubscription(filter: "a")]
        try harness.client.send(
            .subscribe(filters),
            call: Call(2),
            timeout: .seconds(1),
            at: harness.now
        )
        #expect(harness.cut().earliestDeadline == seconds(50))
    }

    @Test("Callers give up while connecting, and before the session is resumed")
    func whileConnecting() throws {
        var harness = try start(window: 2)
        for number in 1...4 {
            let timeout = Duration.seconds([3, 40, 5, 6][number - 1])
            try harness.publish(number == 2 ? .exactlyOnce : .atLeastOnce, number, timeout: timeout)
        }
        try harness.connect(resuming: harness.cut(), connack: nil)
        _ = harness.told()
        #expect(harness.client.deadline == seconds(3))
        harness.advance(.seconds(3))
        #expect(harness.told() == ["timed out 1"])
        #expect(!harness.client.isFinished)
        #expect(harness.client.deadline == seconds(5))
        harness.receive(.connack(MQTTConnackPacket(sessionPresent: false)))
        _ = harness.told()
        #expect(harness.client.deadline == seconds(5))
        harness.advance(.seconds(2))
        #expect(harness.told() == ["timed out 3"])
        harness.advance(.seconds(35))
        #expect(harness.told() == ["timed out 2", "timed out 4"], "told once, lost or not")
        harness.resume()
        #expect(harness.told() == [])
        #expect(harness.sent == [], "the callers were told, so nothing is sent anew")
    }

    @Test("No CONNACK in time: the session goes on to the next connection")
    func connectTimedOut() throws {
        var harness = try start()
        try harness.publish(.atLeastOnce, 1)
        try harness.connect(resuming: harness.cut(), connack: nil)
        _ = harness.told()
        harness.advance(.seconds(10))
        #expect(harness.told() == ["closed connectTimedOut"])
        let session = harness.client.takeSessionState()
        try harness.connect(resuming: session, connack: nil)
        harness.receive(.connack(MQTTConnackPacket(reasonCode: .serverBusy)))
        #expect(harness.told() == ["closed refused Server busy (0x89)"])
        #expect(harness.client.takeSessionState().calls.count == 1)
    }

    @Test("A call is withdrawn wherever it waits", arguments: [true, false])
    func cancel(isPresent: Bool) throws {
        for stage in 0..<4 {
            var harness = try start(window: 3)
            let calls = (1...4).map(Call.init)
            let qualities: [MQTTQoS] = [
                .atLeastOnce, .exactlyOnce, .exactlyOnce, .atLeastOnce,
            ]
            for (call, quality) in zip(calls, qualities) {
                let publish = MQTTPublish(topic: "t", qos: quality)
                let payload = Array("\(call.number)".utf8)
                let message = MQTTOutgoingMessage(publish: publish, payload: payload)
                try harness.client.publish(message, call: call, at: harness.now)
            }
            harness.receive(.pubrec(.ack(2)))
            _ = harness.sent
            if stage == 0 { for call in calls { harness.client.cancel(call, at: harness.now) } }
            var session = harness.cut()
            if stage == 1 { for call in calls { session.cancel(call) } }
            #expect(session.calls.count == (stage < 2 ? 0 : 4))
            let connack = MQTTConnackPacket(sessionPresent: isPresent)
            try harness.connect(resuming: session, connack: stage == 2 ? nil : connack)
            _ = harness.told()
            if stage >= 2 { for call in calls { harness.client.cancel(call, at: harness.now) } }
            if stage == 2 { harness.receive(.connack(connack)) }
            _ = harness.told()
            harness.resume()
            let sent: [MQTTPacket] =
                isPresent
                ? [
                    .pubrel(.ack(2)), .message("1", .atLeastOnce, id: 1, dup: true),
                    .message("3", .exactlyOnce, id: 3, dup: true),
                ] : []
            #expect(harness.sent == sent, "stage \(stage)")
            // After the session is lost, a withdrawn message is already gone.
            let isTold = !isPresent && stage < 3
            let lost = Array(repeating: "lost a message without a call", count: isTold ? 2 : 0)
            #expect(harness.told() == lost)
        }
    }

    @Test("All can be forgotten; only the numbers of receipts go on")
    func removeAll() throws {
        var harness = try start(window: 1)
        for number in 1...3 { try harness.publish(.atLeastOnce, number) }
        harness.receive(.message("a", .exactlyOnce, id: 1))
        var session = harness.cut()
        session.removeAll()
        #expect(session.isEmpty)
        #expect(session.messageCount == 0)
        #expect(session.calls.isEmpty)
        #expect(session.earliestDeadline == nil)
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        harness.receive(.message("b", .exactlyOnce, id: 1))
        harness.take(0)
        #expect(harness.sent == [], "an old receipt")
        harness.take(1)
        #expect(harness.sent == [.pubrec(.ack(1))])
    }

    // MARK: Inbound messages

    /// The moment at which the application acknowledges the message.
    enum Taken: CaseIterable {
        case afterCut, inState, whileConnecting, beforeRepetition, afterRepetition
    }

    @Test(
        "A QoS 2 message is delivered once; PUBREC answers the repetition (4.3.3-10)",
        arguments: MQTTVersion.allCases,
        Taken.allCases
    )
    func exactlyOnce(version: MQTTVersion, taken: Taken) throws {
        var harness = try start(version)
        harness.receive(.message("a", .exactlyOnce, id: 7))
        #expect(harness.told() == ["message a"])
        harness.endOfStream()
        if taken == .afterCut { harness.take(0) }
        var session = harness.client.takeSessionState()
        #expect(!session.isEmpty)
        if taken == .inState { session.acknowledge(harness.receipts[0]) }
        try harness.connect(resuming: session, connack: nil)
        if taken == .whileConnecting { harness.take(0) }
        harness.receive(.connack(MQTTConnackPacket(sessionPresent: true)))
        if taken == .beforeRepetition { harness.take(0) }
        #expect(harness.sent == [], "not before the server has repeated it")
        _ = harness.told()
        harness.receive(.message("a", .exactlyOnce, id: 7, dup: true))
        if taken == .afterRepetition {
            #expect(harness.sent == [])
            harness.take(0)
        }
        #expect(harness.sent == [.pubrec(.ack(7))])
        harness.take(0)
        #expect(harness.sent == [], "once")
        harness.receive(.pubrel(.ack(7)))
        #expect(harness.sent == [.pubcomp(.ack(7))])
        #expect(harness.told() == [], "not delivered again")
        harness.receive(.message("b", .exactlyOnce, id: 7))
        harness.take(0)
        #expect(harness.sent == [])
        harness.take(1)
        #expect(harness.sent == [.pubrec(.ack(7))])
    }

    @Test(
        "After PUBREC a cut is followed by PUBREL, or by PUBLISH again",
        arguments: [true, false]
    )
    func afterPubrec(isRepeated: Bool) throws {
        var harness = try start()
        harness.receive(.message("a", .exactlyOnce, id: 7))
        harness.take(0)
        for _ in 1...3 {
            try harness.reconnect(sessionPresent: true)
            guard isRepeated else { continue }
            harness.receive(.message("a", .exactlyOnce, id: 7, dup: true))
            #expect(harness.sent == [.pubrec(.ack(7))])
        }
        harness.receive(.pubrel(.ack(7)))
        #expect(harness.sent == [.pubcomp(.ack(7))])
        #expect(harness.told() == ["message a"])
        #expect(harness.cut().isEmpty)
    }

    @Test("A refusal is kept, too, and its identifier is new again (4.3.3-9)")
    func refused() throws {
        var harness = try start()
        harness.receive(.message("a", .exactlyOnce, id: 7))
        var session = harness.cut()
        session.acknowledge(harness.receipts[0], .quotaExceeded)
        session.acknowledge(harness.receipts[0])
        try harness.connect(resuming: session, connack: MQTTConnackPacket(sessionPresent: true))
        harness.receive(.message("a", .exactlyOnce, id: 7, dup: true))
        #expect(harness.sent == [.pubrec(.ack(7, .quotaExceeded))])
        _ = harness.told()
        harness.receive(.message("b", .exactlyOnce, id: 7))
        #expect(harness.told() == ["message b"])
    }

    @Test("PUBRECs follow the order of the repetitions, over several cuts (4.6.0-3)")
    func order() throws {
        var harness = try start()
        for id in UInt16(1)...4 { harness.receive(.message("\(id)", .exactlyOnce, id: id)) }
        harness.take(2)
        #expect(harness.sent == [], "3 waits for its turn")
        try harness.reconnect(sessionPresent: true)
        for id in UInt16(1)...2 {
            harness.receive(.message("\(id)", .exactlyOnce, id: id, dup: true))
        }
        harness.take(1)
        try harness.reconnect(sessionPresent: true)
        for id in UInt16(1)...4 {
            harness.receive(.message("\(id)", .exactlyOnce, id: id, dup: true))
        }
        harness.take(3)
        #expect(harness.sent == [])
        harness.take(0)
        #expect(harness.sent == (UInt16(1)...4).map { .pubrec(.ack($0)) })
        #expect(harness.told() == (1...4).map { "message \($0)" })
    }

    @Test(
        "A QoS 1 receipt ends with its connection; no number comes twice",
        arguments: [true, false]
    )
    func oldReceipts(isPresent: Bool) throws {
        var harness = try start()
        for _ in 1...3 {
            harness.receive(.message("a", .atLeastOnce, id: 1), .message("b", .atLeastOnce, id: 2))
            try harness.reconnect(sessionPresent: isPresent)
        }
        harness.receive(.message("a", .atLeastOnce, id: 1, dup: true))
        for index in 0..<6 { harness.take(index) }
        #expect(harness.sent == [])
        harness.take(6)
        #expect(harness.sent == [.puback(.ack(1))])
        #expect(Set(harness.receipts).count == 7)
    }

    @Test("Session lost: half received messages are forgotten, and old receipts do nothing")
    func lostInbound() throws {
        var harness = try start()
        for id in UInt16(1)...3 { harness.receive(.message("\(id)", .exactlyOnce, id: id)) }
        harness.take(0)
        try harness.reconnect(sessionPresent: false)
        _ = harness.told()
        for id in UInt16(1)...3 { harness.receive(.message("\(id)", .exactlyOnce, id: id)) }
        #expect(harness.told() == ["message 1", "message 2", "message 3"], "new messages")
        for index in 0..<3 { harness.take(index) }
        #expect(harness.sent == [])
        for index in 3..<6 { harness.take(index) }
        #expect(harness.sent == (UInt16(1)...3).map { .pubrec(.ack($0)) })
        #expect(Set(harness.receipts).count == 6)
    }
}
