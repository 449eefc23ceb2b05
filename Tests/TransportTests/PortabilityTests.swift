import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// One provider over transports with fewer features.
@Suite("Portable entries over every transport", .inSimulation, .timeLimit(.minutes(30)))
struct PortabilityTests {
    private static let options: [(OptionName, EntryCommand)] = [
        (.qos, .send(qos: .exactlyOnce)), (.retained, .send(.retained)),
        (.expiry, .send(.expiry(.seconds(9)))), (.receipt, .send(.receipt(.automatic))),
        (.method, .send(.method("POST"))), (.responseTopic, .send(.responseTopic("answers"))),
        (.correlationData, .send(.correlationData([1]))),
        (.payloadFormat, .send(.payloadFormat(.text))),
        (.sentOnce, .send(.sentOnce)),
        (.waitsForConnection, .send(.waitsForConnection)),
        (.qos, .subscribe(qos: .exactlyOnce)), (.noLocal, .subscribe(.noLocal)),
        (.retainAsPublished, .subscribe(.retainAsPublished)),
        (.retainHandling, .subscribe(.retainHandling(.doNotSend))),
        (.ackMode, .subscribe(.ackMode(.client))), (.receipt, .subscribe(.receipt(.automatic))),
        (.method, .subscribe(.method("GET"))), (.eventTypes, .subscribe(.eventTypes(["a"]))),
        (.lastEventID, .subscribe(.lastEventID("1"))), (.shareName, .subscribe(.shareName("g"))),
        (.subscriptionIdentifier, .subscribe(.subscriptionIdentifier(7))),
        (.clientIdentifier, .connect(.clientIdentifier("ada"))),
        (.will, .connect(.will(Will(topic: "gone", body: "will")))),
        (.willDelay, .connect(.will(Will(topic: "gone", body: "will", delay: .seconds(1))))),
        (.contentType, .connect(.will(Will(topic: "gone", body: "will", contentType: "a")))),
        (.expiry, .connect(.will(Will(topic: "gone", body: "will", .expiry(.seconds(1)))))),
        (.cleanStart, .connect(.cleanStart(true))),
        (.sessionExpiry, .connect(.sessionExpiry(.zero))),
        (.drainTimeout, .disconnect(.drainTimeout(.seconds(1)))),
        (.reason, .disconnect(.reason("done"))),
        (.sessionExpiry, .disconnect(.sessionExpiry(.zero))),
    ]

    /// The options that each service refuses. MQTT means 3.1.1 here.
    private static let refused: [(LoopbackBroker.Service, Set<OptionName>)] = [
        (
            .mqtt,
            [
                .expiry, .receipt, .method, .responseTopic, .correlationData, .noLocal,
                .retainAsPublished, .retainHandling, .ackMode, .eventTypes, .lastEventID,
                .willDelay, .contentType, .reason, .sessionExpiry, .payloadFormat, .shareName,
                .subscriptionIdentifier,
            ]
        ),
        (
            .stomp,
            [
                .qos, .retained, .expiry, .method, .sentOnce, .noLocal, .retainAsPublished,
                .retainHandling,
                .eventTypes, .lastEventID, .clientIdentifier, .will, .willDelay, .cleanStart,
                .drainTimeout, .reason, .sessionExpiry, .payloadFormat, .shareName,
                .subscriptionIdentifier, .contentType,
            ]
        ),
        (
            .eventStream,
            [
                .qos, .retained, .expiry, .receipt, .responseTopic, .correlationData,
                .sentOnce, .waitsForConnection, .noLocal, .retainAsPublished, .retainHandling,
                .ackMode,
                .clientIdentifier, .will,
                .willDelay, .cleanStart, .drainTimeout, .reason, .sessionExpiry,
                .payloadFormat, .shareName, .subscriptionIdentifier, .contentType,
            ]
        ),
    ]

    private static func transport(
        _ service: LoopbackBroker.Service,
        _ bench: LoopbackBench
    ) throws -> any Transport {
        guard service == .mqtt else { return try bench.transport(service) }
        return try bench.mqtt { $0.version = .v3_1_1 }
    }

    private static func perform(
        _ command: EntryCommand,
        _ provider: Provider<AnyEntry>
    ) async throws {
        let needsTopic = [.send, .subscribe].contains(command.kind)
        let entry = AnyEntry(topic: needsTopic ? "t" : nil, command: command)
        if command.kind == .subscribe {
            _ = try await provider.messages(entry)
        } else {
            try await provider.request(entry)
        }
    }

    @Test("No subscription identifier is nothing to refuse where MQTT has none")
    func noIdentifier() async throws {
        let bench = LoopbackBench()
        let transport = try Self.transport(.mqtt, bench)
        let provider = Provider<AnyEntry>(transport: transport)
        try await Self.perform(.subscribe(.subscriptionIdentifier(.omitted)), provider)
        await transport.shutdown()
    }

    @Test(
        "A transport does not know another one's option, whatever its value",
        arguments: [LoopbackBroker.Service.stomp, .eventStream]
    )
    func unknownOption(_ service: LoopbackBroker.Service) async throws {
        let bench = LoopbackBench()
        let transport = try Self.transport(service, bench)
        let provider = Provider<AnyEntry>(transport: transport)
        let command = EntryCommand.subscribe(.subscriptionIdentifier(.omitted))
        let error = await expectError(.unsupported) { try await Self.perform(command, provider) }
        #expect(error?.option == .subscriptionIdentifier)
        try await Self.perform(
            command,
            provider.whenUnsupported(.ignore([.subscriptionIdentifier]))
        )
        await transport.shutdown()
    }

    @Test("Each refusal names the option; ignored, it is left out", arguments: refused)
    func options(
        _ service: LoopbackBroker.Service,
        _ refused: Set<OptionName>
    ) async throws {
        for (option, command) in Self.options {
            let bench = LoopbackBench()
            let transport = try Self.transport(service, bench)
            let provider = Provider<AnyEntry>(transport: transport)
            do {
                try await Self.perform(command, provider)
                #expect(!refused.contains(option), "\(service) takes \(option)")
            } catch let error as WaybillError {
                #expect(error.code == .unsupported, "\(service) \(option): \(error)")
                // A will with more is already refused as a will.
                let isWill =
                    option != .will && command[.will] != nil && error.option == .will
                #expect(error.option == option || isWill, "\(service): \(error)")
                #expect(refused.contains(option), "\(service) refuses \(option)")
                #expect(error.message.contains("\(option)") || option == .qos || isWill)
            }
            if refused.contains(option) {
                let portable = provider.whenUnsupported(.ignore([option, .will]))
                try await Self.perform(command, portable)
            }
            await transport.shutdown()
        }
    }

    @Test("Only what was named is left out, and only where it must be")
    func onlyNamed() async throws {
        let bench = LoopbackBench()
        let transport = try bench.stomp()
        let provider = Provider<AnyEntry>(transport: transport)
            .whenUnsupported(.ignore([.retained]))
        await #expect(throws: WaybillError.self) {
            try await provider.request(.send(topic: "t", .retained, .expiry(.seconds(1))))
        }
        await transport.shutdown()
        // MQTT 5 supports all options.
        let mqtt = try bench.mqtt()
        let portable = Provider<AnyEntry>(transport: mqtt).whenUnsupported(.ignore([.retained]))
        try await portable.request(
            .send(topic: "t", body: .text("x"), qos: .atLeastOnce, .retained)
        )
        let messages = try await portable.messages(.subscribe(topic: "t"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.isRetained == true)
        await mqtt.shutdown()
    }

    @Test("Headers are left out where the protocol has none")
    func headers() async throws {
        let bench = LoopbackBench()
        let transport = try bench.mqtt { $0.version = .v3_1_1 }
        let provider = Provider<AnyEntry>(transport: transport)
        let entry = AnyEntry.send(topic: "t", headers: ["k": "v"])
        do {
            try await provider.request(entry)
            Issue.record("sent headers over 3.1.1")
        } catch let error as WaybillError {
            #expect(error.option == .headers && error.topic == "t")
        }
        try await provider.whenUnsupported(.ignore([.headers])).request(entry)
        await transport.shutdown()
    }

    @Test("The best quality of service that there is takes the place of a better one")
    func qos() async throws {
        let bench = LoopbackBench()
        let transport = try bench.stomp()
        let provider = Provider<AnyEntry>(transport: transport)
            .whenUnsupported(.ignore([.qos]))
        let messages = try await provider.messages(
            .subscribe(topic: "/queue/t", qos: .exactlyOnce)
        )
        try await provider.request(
            .send(topic: "/queue/t", body: .text("x"), qos: .exactlyOnce)
        )
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.qos == .atLeastOnce)
        await transport.shutdown()
    }

    @Test("What is learned costs one refusal, for the provider and its copies")
    func learned() async throws {
        let refusal = OptionName.retained
        let request = Request(topic: "t", command: .send)
        let mock = MockTransport().expect(
            .send,
            .failure(.unsupported(refusal, "no retained messages", in: request)),
            .success
        )
        let provider = Provider<AnyEntry>(transport: mock)
            .whenUnsupported(.ignore([refusal]))
        for _ in 0..<3 { try await provider.request(.send(topic: "t", .retained)) }
        try await provider.intercepted(RetryPolicy()).request(.send(topic: "t", .retained))
        let retained = mock.requests.map { $0.command.isSet(.retained) }
        #expect(retained == [true, false, false, false, false])
    }

    @Test("A transport that refuses what is no longer there is not asked for ever")
    func never() async throws {
        let request = Request(topic: "t", command: .send)
        let mock = MockTransport().expect(
            .send,
            .failure(.unsupported(.retained, "no retained messages", in: request))
        )
        let provider = Provider<AnyEntry>(transport: mock)
            .whenUnsupported(.ignore([.retained]))
        for count in 1...2 {
            await #expect(throws: WaybillError.self) {
                try await provider.request(.send(topic: "t", .retained))
            }
            #expect(mock.requests.count == 2 * count)
        }
    }

    // MARK: Topics

    @Test("A topic style maps one enum's topics to those of a STOMP broker, and back")
    func topicStyle() async throws {
        let bench = LoopbackBench()
        let stomp = try bench.stomp()
        let chat = Provider<AnyEntry>(transport: stomp).topicStyle(.rabbitMQ)
        let heard = try await chat.messages(.subscribe(topic: "chat/lobby"))
        try await chat.request(.send(topic: "chat/lobby", body: .text("hello")))
        var iterator = heard.makeAsyncIterator()
        let message = try await iterator.next()
        #expect(message?.topic == "chat/lobby" && message?.text == "hello")
        let plain = Provider<AnyEntry>(transport: stomp)
        let raw = try await plain.messages(.subscribe(topic: "/topic/chat.lobby"))
        try await chat.request(.send(topic: "chat/lobby", body: .text("again")))
        var rawIterator = raw.makeAsyncIterator()
        #expect(try await rawIterator.next()?.topic == "/topic/chat.lobby")
        try await chat.request(.unsubscribe(topic: "chat/lobby"))
        _ = try await iterator.next()
        #expect(try await iterator.next() == nil)
        await stomp.shutdown()
    }

    @Test("Headers of an HTTP answer are found whatever the case of their names")
    func headerLookup() async throws {
        let bench = LoopbackBench()
        let transport = try bench.transport(.eventStream)
        let provider = Provider<AnyEntry>(transport: transport)
        let receipt = try await provider.request(.send(topic: "t", body: .text("x")))
        let length = receipt.headers["Content-Length"]
        #expect(length != nil && length == receipt.headers["content-length"])
        #expect(receipt.reply?.headers["CONTENT-LENGTH"] == length)
        bench.broker.faults.answers = [LoopbackFaults.Answer(404, headers: ["X-Why": "gone"])]
        do {
            try await provider.request(.send(topic: "t"))
            Issue.record("no error")
        } catch let error as WaybillError {
            let refusal = error.underlying as? HTTPRefusal
            #expect(refusal?.headers["x-why"] == "gone")
        }
        await transport.shutdown()
    }
}
