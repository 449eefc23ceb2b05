import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

@Suite("Mock with a protocol", .inSimulation, .timeLimit(.minutes(30))) struct MockProtocolTests {
    /// A request that the transport of a protocol refuses before any I/O.
    struct BadRequest: CustomTestStringConvertible, Sendable {
        let wireProtocol: MockTransport.WireProtocol
        let name: String
        let request: Request

        init(
            _ wireProtocol: MockTransport.WireProtocol,
            _ name: String,
            _ command: EntryCommand,
            topic: String? = nil,
            body: Payload = Payload(),
            headers: Headers = [:]
        ) {
            self.wireProtocol = wireProtocol
            self.name = name
            request = Request(topic: topic, command: command, body: body, headers: headers)
        }

        var testDescription: String { "\(wireProtocol): \(name)" }
    }

    private static func send(_ options: SendOption...) -> EntryCommand {
        .send(qos: .atLeastOnce, options: options)
    }

    private static let id = Message.ID.named("m")

    private static let requests: [BadRequest] =
        [MockTransport.WireProtocol.mqtt5, .mqtt3_1_1].flatMap { version in
            [
                BadRequest(version, "empty topic", send(), topic: ""),
                BadRequest(version, "wildcard in a send", send(), topic: "a/+"),
                BadRequest(version, "zero in a topic", send(), topic: "a\0b"),
                BadRequest(version, "receipt", send(.receipt(.automatic)), topic: "a"),
                BadRequest(version, "method", send(.method("PUT")), topic: "a"),
                BadRequest(
                    version,
                    "QoS 2 sent once",
                    .send(qos: .exactlyOnce, .sentOnce),
                    topic: "a"
                ),
                BadRequest(version, "empty filter", .subscribe, topic: ""),
                BadRequest(version, "filter with # inside", .subscribe, topic: "a/#/b"),
                BadRequest(version, "body of a subscription", .subscribe, topic: "a", body: "x"),
                BadRequest(version, "ack mode", .subscribe(.ackMode(.client)), topic: "a"),
                BadRequest(version, "event types", .subscribe(.eventTypes(["a"])), topic: "a"),
                BadRequest(version, "empty filter to leave", .unsubscribe, topic: ""),
                BadRequest(version, "transaction", .begin(transaction: "t")),
                BadRequest(version, "commit", .commit(transaction: "t")),
                BadRequest(version, "ack in a transaction", .ack(id, .transaction("t"))),
                BadRequest(version, "topic of an ack", .ack(id), topic: "a"),
                BadRequest(version, "body of a disconnect", .disconnect, body: "x"),
                BadRequest(version, "topic of a connect", .connect, topic: "a"),
                BadRequest(version, "body of a connect", .connect, body: "x"),
            ]
        } + [
            BadRequest(.mqtt3_1_1, "headers", send(), topic: "a", headers: ["k": "v"]),
            BadRequest(.mqtt3_1_1, "expiry", send(.expiry(.seconds(1))), topic: "a"),
            BadRequest(.mqtt3_1_1, "response topic", send(.responseTopic("r")), topic: "a"),
            BadRequest(.mqtt3_1_1, "no local", .subscribe(.noLocal), topic: "a"),
            BadRequest(
                .mqtt3_1_1,
                "headers of a subscription",
                .subscribe,
                topic: "a",
                headers: ["k": "v"]
            ),
            BadRequest(.mqtt3_1_1, "text", send(.payloadFormat(.text)), topic: "a"),
            BadRequest(.mqtt3_1_1, "share name", .subscribe(.shareName("g")), topic: "a"),
            BadRequest(.mqtt3_1_1, "number", .subscribe(.subscriptionIdentifier(1)), topic: "a"),
            BadRequest(.mqtt3_1_1, "session expiry", .connect(.sessionExpiry(.zero))),
            BadRequest(.mqtt3_1_1, "reason of an ack", .ack(id, .reason("r"))),
            BadRequest(.mqtt5, "slash in a share name", .subscribe(.shareName("g/h")), topic: "a"),
            BadRequest(.mqtt5, "number zero", .subscribe(.subscriptionIdentifier(0)), topic: "a"),
            BadRequest(.mqtt5, "reason of servers", .nack(id, .reasonCode(0x10))),
            BadRequest(.stomp, "share name", .unsubscribe(.shareName("g")), topic: "/topic/a"),
            BadRequest(.stomp, "reason of a nack", .nack(id, .reasonCode(0x80))),
            BadRequest(.stomp, "completion", .ack(id, .awaitsCompletion)),
            BadRequest(.events, "share name", .unsubscribe(.shareName("g")), topic: "a"),
            BadRequest(.mqtt3_1_1, "nack", .nack(id)),
            BadRequest(.mqtt3_1_1, "headers of a connect", .connect, headers: ["k": "v"]),
            BadRequest(.mqtt3_1_1, "reason", .disconnect(.reason("bye"))),
            BadRequest(
                .mqtt5,
                "shared without local",
                .subscribe(.noLocal),
                topic: "$share/g/a"
            ),
            BadRequest(.stomp, "retained", send(.retained), topic: "/topic/a"),
            BadRequest(.stomp, "QoS 2", .send(qos: .exactlyOnce), topic: "/topic/a"),
            BadRequest(.stomp, "expiry", send(.expiry(.seconds(1))), topic: "/topic/a"),
            BadRequest(.stomp, "method", send(.method("PUT")), topic: "/topic/a"),
            BadRequest(.stomp, "empty destination", send(), topic: ""),
            BadRequest(
                .stomp,
                "reserved header",
                send(),
                topic: "/topic/a",
                headers: ["receipt": "1"]
            ),
            BadRequest(.stomp, "colon in a name", send(), topic: "/topic/a", headers: ["": "v"]),
            BadRequest(.stomp, "body of a subscription", .subscribe, topic: "/topic/a", body: "x"),
            BadRequest(.stomp, "no local", .subscribe(.noLocal), topic: "/topic/a"),
            BadRequest(
                .stomp,
                "manual in auto",
                .subscribe(.ackMode(.auto), .manualAcknowledgement),
                topic: "/topic/a"
            ),
            BadRequest(.stomp, "will", .connect(.will(Will(topic: "w", body: "x")))),
            BadRequest(.stomp, "identifier", .connect(.clientIdentifier("c"))),
            BadRequest(.stomp, "transaction without a name", .begin(transaction: "")),
            BadRequest(.stomp, "reason", .disconnect(.reason("bye"))),
            BadRequest(.events, "retained", send(.retained), topic: "a"),
            BadRequest(.events, "QoS 2", .send(qos: .exactlyOnce), topic: "a"),
            BadRequest(.events, "space in a path", send(), topic: "a b"),
            BadRequest(.events, "method", send(.method("P T")), topic: "a"),
            BadRequest(.events, "header", send(), topic: "a", headers: ["k": "a\nb"]),
            BadRequest(.events, "manual", .subscribe(.manualAcknowledgement), topic: "a"),
            BadRequest(.events, "ack", .ack(id)),
            BadRequest(.events, "nack", .nack(id)),
            BadRequest(.events, "transaction", .begin(transaction: "t")),
            BadRequest(.events, "password", .connect(.userName("u"), .password("p"))),
            BadRequest(.events, "reason", .disconnect(.reason("bye"))),
        ]

    private static func transport(
        _ wireProtocol: MockTransport.WireProtocol,
        _ broker: LoopbackBroker
    ) throws -> any Transport {
        switch wireProtocol {
        case .mqtt5: try broker.transport(.mqtt)
        case .mqtt3_1_1:
            try MQTTTransport(url: broker.url) {
                $0.version = .v3_1_1
                $0.timeouts.connect = LoopbackBroker.connectTimeout
            }
        case .stomp: try broker.transport(.stomp)
        case .events: try broker.transport(.eventStream)
        }
    }

    private static func error(_ request: Request, over transport: any Transport) async -> String {
        do {
            if request.command.kind == .subscribe {
                _ = try await transport.subscribe(request)
            } else {
                _ = try await transport.perform(request)
            }
            return "none"
        } catch let error as WaybillError {
            return "\(error.code.name): \(error.message)"
        } catch {
            return "\(error)"
        }
    }

    private static func connect(_ transport: any Transport) async throws {
        _ = try await transport.perform(Request(topic: nil, command: .connect))
    }

    @Test("A mock refuses what its transport refuses, with the same words", arguments: requests)
    func refusals(_ bad: BadRequest) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        for isConnected in [false, true] {
            let real = try Self.transport(bad.wireProtocol, broker)
            let mock = MockTransport(like: bad.wireProtocol).expect(.connect)
            for kind in [EntryCommand.Kind.send, .subscribe, .unsubscribe, .begin] {
                mock.expect(kind)
            }
            if isConnected {
                try await Self.connect(real)
                try await Self.connect(mock)
            }
            let expected = await Self.error(bad.request, over: real)
            #expect(expected != "none")
            #expect(await Self.error(bad.request, over: mock) == expected)
            // Nothing was sent for the request, so no rule was evaluated.
            #expect(
                mock.requests.count
                    == (isConnected && bad.wireProtocol != .events ? 1 : mock.requests.count)
            )
            #expect(mock.unexpectedRequests.isEmpty)
            await real.shutdown()
        }
        await broker.stop()
    }

    @Test(
        "The life of a connection is the transport's own: a second connect, a disconnect, ids that are unknown",
        arguments: MockTransport.WireProtocol.allCases
    )
    func life(_ wireProtocol: MockTransport.WireProtocol) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let real = try Self.transport(wireProtocol, broker)
        let mock = MockTransport(like: wireProtocol).expect(.connect).expect(.disconnect)
            .expect(.send).expect(.ack).expect(.begin).expect(.commit).expect(.unsubscribe)
        let topic = wireProtocol == .stomp ? "/topic/a" : "a"
        let ack = Request(topic: nil, command: .ack(Self.id))
        var steps = [
            ack, Request(topic: nil, command: .connect), Request(topic: nil, command: .connect),
            ack, Request(topic: topic, command: .send), Request(topic: nil, command: .disconnect),
            Request(topic: topic, command: .send), ack,
            Request(topic: nil, command: .connect), Request(topic: topic, command: .send),
        ]
        if wireProtocol == .stomp {
            let begin = Request(topic: nil, command: .begin(transaction: "t"))
            let commit = Request(topic: nil, command: .commit(transaction: "t"))
            steps += [commit, begin, begin, commit, commit]
        }
        for (index, step) in steps.enumerated() {
            let expected = await Self.error(step, over: real)
            #expect(await Self.error(step, over: mock) == expected, "step \(index)")
        }
        await real.shutdown()
        #expect(await Self.error(steps[4], over: real).hasPrefix("shutDown"))
        await mock.shutdown()
        #expect(await Self.error(steps[4], over: mock).hasPrefix("shutDown"))
        await broker.stop()
    }
}
