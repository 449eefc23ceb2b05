import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting

/// Limits on waiting messages.
@Suite("STOMP transport: bounds", .inSimulation, .timeLimit(.minutes(30))) struct BoundsTests {
    @Test("Limits as high as numbers go work like others", arguments: services)
    func endlessLimits(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider {
            $0.limits.bodySize = .max
            $0.limits.headerLineSize = .max
            $0.limits.headerCount = .max
        }
        let messages = try await provider.messages(.subscribe("t"))
        try await provider.request(.send("x", to: "t"))
        #expect(try await texts(1, messages) == ["x"])
        await fixture.end(transport)
    }

    @Test("A limit below one is one")
    func lowestLimit() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        var buffering = BufferPolicy(.fail)
        buffering.messageLimit = -1
        buffering.byteLimit = -1
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(.clientIndividual), .buffering(buffering))
        )
        for number in 1...2 {
            try await provider.request(.send("\(number)"))
            #expect(try await texts(1, messages) == ["\(number)"])
        }
        await fixture.end(transport)
    }

    @Test(
        "Bytes that await acknowledgement are bounded, too, in either client mode",
        arguments: [AckMode.client, .clientIndividual]
    )
    func bytes(mode: AckMode) async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        for number in 0..<4 { try await provider.request(.send("body\(number)")) }
        let narrow = BufferPolicy(.fail, byteLimit: 14)
        let messages = try await provider.messages(
            .subscribe("/queue/t", .ackMode(mode), .buffering(narrow))
        )
        // The first message confirms the subscription, and the others come while the app takes none.
        await untilQuiet()
        await expectError(.slowConsumer) { for try await _ in messages {} }
        // A limit applies only to waiting messages: a consumer that keeps up gets any number. A single message may
        // exceed the byte limit.
        let wide = BufferPolicy(.fail, byteLimit: 20)
        let again = try await provider.messages(
            .subscribe("/queue/t", .ackMode(mode), .buffering(wide))
        )
        #expect(try await texts(4, again).count == 4)
        for body in ["long long long long long", "short", "another"] {
            try await provider.request(.send(body))
            #expect(try await texts(1, again) == [body])
        }
        await fixture.end(transport)
    }

    @Test(
        "As many messages as the limit may await acknowledgement, and no more",
        arguments: [2, 3]
    )
    func messages(count: Int) async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        for number in 0..<count { try await provider.request(.send("\(number)")) }
        let messages = try await provider.messages(
            .subscribe(
                "/queue/t",
                .ackMode(.clientIndividual),
                .buffering(BufferPolicy(.fail, messageLimit: 2))
            )
        )
        // They come while the app takes none.
        await untilQuiet()
        if count == 2 {
            #expect(try await texts(2, messages) == ["0", "1"])
        } else {
            await expectError(.slowConsumer) { for try await _ in messages {} }
        }
        await fixture.end(transport)
    }

    @Test("An acknowledgement counts once it is sent: the next message may overtake its receipt")
    func receiptOvertaken() async throws {
        func message(_ name: String) -> String {
            "MESSAGE\ndestination:t\nmessage-id:\(name)\nsubscription:1\nack:\(name)\n\n\0"
        }
        let script = ScriptedByteStream(
            .expect("CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"),
            .reply("CONNECTED\nversion:1.2\n\n\0"),
            .expect("SUBSCRIBE\nid:1\ndestination:t\nack:client\nreceipt:1\n\n\0"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0" + message("a")),
            .expect("ACK\nid:a\nreceipt:2\n\n\0"),
            .reply(message("b") + "RECEIPT\nreceipt-id:2\n\n\0"),
            .expect("ACK\nid:b\nreceipt:3\n\n\0"),
            .reply("RECEIPT\nreceipt-id:3\n\n\0")
        )
        let (_, provider) = try scripted([script])
        let messages = try await provider.messages(
            .subscribe(
                "t",
                .ackMode(.client),
                .manualAcknowledgement,
                .buffering(BufferPolicy(.fail, messageLimit: 1))
            )
        )
        for _ in 0..<2 {
            let id = try #require(try await take(1, messages).first?.id)
            try await provider.request(.ack(id))
        }
        #expect(script.failures == [] && script.isComplete)
    }
}
