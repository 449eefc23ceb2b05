import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting

@Suite("STOMP transport: acknowledgement and transactions", .inSimulation, .timeLimit(.minutes(30)))
struct AcknowledgementTests {
    /// Sends numbered messages to the queue.
    private func fill(_ provider: Provider<STOMPEntry>, _ count: Int) async throws {
        for number in 1...count { try await provider.request(.send("\(number)")) }
    }

    @Test("What is taken is acknowledged; what is not comes to the next subscriber again")
    func whenTaken() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        try await fill(provider, 4)
        do {
            let messages = try await provider.messages(
                .subscribe("/queue/t", .ackMode(.clientIndividual))
            )
            // After the app has taken two messages, the stream requests the fourth. The third waits in the stream.
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next()?.text == "1")
            #expect(try await iterator.next()?.text == "2")
        }
        let again = try await provider.messages(.subscribe("/queue/t", .ackMode(.clientIndividual)))
        let heard = try await take(2, again)
        #expect(heard.map(\.text) == ["3", "4"])
        #expect(heard.allSatisfy { $0.isDuplicate && $0.qos == .atLeastOnce })
        #expect(fixture.lines.count("← ACK id=1/") == 2)
        await fixture.end(transport)
    }

    @Test(
        "Manual: nothing is acknowledged before the app asks for it, and no message twice",
        arguments: services
    )
    func manual(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        try await fill(provider, 3)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.clientIndividual), .manualAcknowledgement)
        )
        let ids = try await take(3, messages).compactMap(\.id)
        #expect(ids.count == 3)
        #expect(fixture.lines.count("← ACK") == 0)
        try await provider.request(.ack(ids[1]))
        await expectError(.invalidEntry) { try await provider.request(.ack(ids[1])) }
        try await provider.request(.ack(ids[0]))
        try await provider.request(.nack(ids[2]))
        let again = try await take(1, messages)
        #expect(again.map(\.text) == ["3"])
        #expect(again.first?.isDuplicate == true)
        await fixture.end(transport)
    }

    @Test("A lost connection brings back what was not acknowledged", arguments: services)
    func redelivery(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        try await fill(provider, 3)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.clientIndividual), .manualAcknowledgement)
        )
        let ids = try await take(3, messages).compactMap(\.id)
        try await provider.request(.ack(ids[1]))
        fixture.broker.dropConnections()
        await expectError(.connectionLost) { for try await _ in messages {} }
        // The acknowledgement ids belong to the lost connection.
        let again = try await provider.messages(.subscribe("/queue/t", .ackMode(.clientIndividual)))
        await expectError(.invalidEntry) { try await provider.request(.ack(ids[0])) }
        let heard = try await take(2, again)
        #expect(heard.map(\.text) == ["1", "3"])
        #expect(heard.allSatisfy { $0.isDuplicate })
        await fixture.end(transport)
    }

    @Test("Mode client: an acknowledgement covers all before it", arguments: services)
    func cumulative(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        try await fill(provider, 5)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.client), .manualAcknowledgement)
        )
        let ids = try await take(5, messages).compactMap(\.id)
        try await provider.request(.ack(ids[2]))
        // The cumulative acknowledgement covered the earlier messages, on the client as on the server.
        await expectError(.invalidEntry) { try await provider.request(.ack(ids[0])) }
        try await provider.request(.nack(ids[4]))
        let again = try await take(2, messages)
        #expect(again.map(\.text) == ["4", "5"])
        await fixture.end(transport)
    }

    @Test("Acknowledging every third message keeps a cumulative subscription going")
    func cumulativeCounts() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let buffering = BufferPolicy(.fail, messageLimit: 4)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.client), .manualAcknowledgement, .buffering(buffering))
        )
        for round in 0..<10 {
            try await fill(provider, 3)
            let ids = try await take(3, messages).compactMap(\.id)
            try #require(ids.count == 3, "round \(round)")
            try await provider.request(.ack(ids[2]))
        }
        await fixture.end(transport)
    }

    // MARK: Transactions

    @Test("A transaction takes effect at its commit, and never after an abort", arguments: services)
    func transactions(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe("t"))
        try await provider.request(.begin("x"))
        try await provider.request(.begin("y"))
        try await provider.request(.send("x1", to: "t", headers: ["transaction": "x"]))
        try await provider.request(.send("y1", to: "t", headers: ["transaction": "y"]))
        try await provider.request(.send("plain", to: "t"))
        try await provider.request(.send("x2", to: "t", headers: ["transaction": "x"]))
        try await provider.request(.abort("y"))
        try await provider.request(.commit("x"))
        #expect(try await texts(3, messages) == ["plain", "x1", "x2"])
        await expectError(.invalidEntry) { try await provider.request(.commit("x")) }
        await expectError(.invalidEntry) {
            try await provider.request(.send("?", to: "t", headers: ["transaction": "x"]))
        }
        try await provider.request(.begin("x"))
        await expectError(.invalidEntry) { try await provider.request(.begin("x")) }
        // A transaction that is open at the disconnect is aborted.
        try await provider.request(.send("never", to: "t", headers: ["transaction": "x"]))
        try await provider.request(.disconnect)
        try await provider.request(.connect)
        let later = try await provider.messages(.subscribe("t"))
        try await provider.request(.send("end", to: "t"))
        #expect(try await texts(1, later) == ["end"])
        await fixture.end(transport)
    }

    @Test("An acknowledgement in a transaction holds with it: abort undoes it, commit seals it")
    func acknowledgementInTransaction() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        try await fill(provider, 2)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.clientIndividual), .manualAcknowledgement)
        )
        let ids = try await take(2, messages).compactMap(\.id)
        try await provider.request(.begin("x"))
        try await provider.request(.ack(ids[0], in: "x"))
        await expectError(.invalidEntry) { try await provider.request(.ack(ids[0], in: "x")) }
        await expectError(.invalidEntry) { try await provider.request(.ack(ids[1], in: "no")) }
        try await provider.request(.abort("x"))
        // The aborted acknowledgement leaves the message unacknowledged.
        try await provider.request(.begin("x"))
        try await provider.request(.ack(ids[0], in: "x"))
        try await provider.request(.nack(ids[1], in: "x"))
        try await provider.request(.commit("x"))
        await expectError(.invalidEntry) { try await provider.request(.ack(ids[0])) }
        let again = try await take(1, messages)
        #expect(again.map(\.text) == ["2"])
        await fixture.end(transport)
    }

    @Test("What transactions have settled no longer counts as waiting")
    func transactionsCount() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(
            .subscribe(
                "/queue/t",
                .ackMode(.clientIndividual),
                .manualAcknowledgement,
                .buffering(BufferPolicy(.fail, messageLimit: 2))
            )
        )
        for round in 0..<10 {
            try await fill(provider, 1)
            let id = try #require(try await take(1, messages).first?.id)
            try await provider.request(.begin("\(round)"))
            try await provider.request(.ack(id, in: "\(round)"))
            try await provider.request(.commit("\(round)"))
        }
        await fixture.end(transport)
    }

    @Test("What could not be sent still waits: NACK in 1.0, a reserved header")
    func notSent() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider { $0.versions = [.v1_0] }
        try await fill(provider, 1)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.client), .manualAcknowledgement)
        )
        let id = try #require(try await take(1, messages).first?.id)
        await expectError(.unsupported) { try await provider.request(.nack(id)) }
        await expectError(.invalidEntry) {
            try await provider.request(.command(.ack(id), headers: ["id": "x"]))
        }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await provider.request(.ack(id))
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        try await provider.request(.ack(id))
        await fixture.end(transport)
    }

    // MARK: Slow consumers

    @Test("A slow consumer fails: in auto mode, and where the limit is one")
    func slowAuto() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let buffering = BufferPolicy(.fail, messageLimit: 2)
        let messages = try await provider.messages(.subscribe("t", .buffering(buffering)))
        for number in 1...3 { try await provider.request(.send("\(number)", to: "t")) }
        var heard: [String] = []
        await expectError(.slowConsumer) {
            for try await message in messages { heard.append(message.text ?? "") }
        }
        try await provider.request(.send("probe", to: "u"))
        #expect(heard == ["1", "2"])
        // The UNSUBSCRIBE is sent at once, not when the stream is released.
        #expect(fixture.lines.count("← UNSUBSCRIBE") == 1)
        withExtendedLifetime(messages) {}

        let single = BufferPolicy(.fail, messageLimit: 1)
        let one = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.clientIndividual), .buffering(single))
        )
        try await provider.request(.send("x"))
        #expect(try await texts(1, one) == ["x"])
        await fixture.end(transport)
    }

    @Test("In client-individual mode a slow consumer fails without losing anything")
    func slowIndividual() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        try await fill(provider, 5)
        let messages = try await provider.messages(
            .subscribe(
                "/queue/t",
                .ackMode(.clientIndividual),
                .buffering(BufferPolicy(.fail, messageLimit: 3))
            )
        )
        // The app can still read the buffered messages. The subscription has ended, and the queue has all messages
        // again.
        await expectError(.slowConsumer) { for try await _ in messages {} }
        let again = try await provider.messages(.subscribe())
        #expect(try await texts(5, again) == ["1", "2", "3", "4", "5"])
        await fixture.end(transport)
    }

    @Test(
        "Held back instead: nothing fails, nothing is lost, whatever the ack mode",
        arguments: services,
        [AckMode.auto, .client, .clientIndividual]
    )
    func heldBack(service: LoopbackBroker.Service, ackMode: AckMode) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        let (sender, sending) = try fixture.provider()
        let messages = try await provider.messages(
            .subscribe(
                "/queue/t",
                .ackMode(ackMode),
                .buffering(BufferPolicy(.holdBack, messageLimit: 3))
            )
        )
        for number in 1...50 { try await sending.request(.send("\(number)")) }
        #expect(try await texts(50, messages) == (1...50).map { "\($0)" })
        try await provider.request(.unsubscribe())
        await fixture.end(sender, transport)
    }
}
