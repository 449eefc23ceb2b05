import MQTTWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSTOMP
import WaybillSession
import WaybillTesting
import WebSocketWire
import WireCore

/// The parts of an error that a program can use: the code, the topic, the command, and the peer's reason as a type.
@Suite("What errors tell", .inSimulation, .timeLimit(.minutes(30))) struct ErrorContextTests {
    private struct Point: Codable, Sendable { var x: Int }

    private static func error(_ body: () async throws -> Void) async -> WaybillError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? WaybillError
        }
    }

    // MARK: Topic and command

    @Test(
        "Topic and command are in the error of each request and stream, over each transport",
        arguments: LoopbackBroker.Service.allCases
    )
    func located(service: LoopbackBroker.Service) async throws {
        let bench = LoopbackBench()
        bench.broker.faults.refusesSubscriptions = ["no", "/no"]
        let transport = try bench.transport(service)
        let provider = Provider<LoopbackEntry>(transport: transport)

        // Refused by the client: an invalid topic.
        let invalid = await Self.error { try await provider.request(.send("x", to: "a\0")) }
        #expect(invalid?.topic == "a\0" && invalid?.command == "send", "\(invalid as Any)")
        // A command that the transport lacks, or one without a target.
        let begin = LoopbackEntry(command: .commit(transaction: "x"))
        let commit = await Self.error { try await provider.request(begin) }
        #expect(commit?.command == "commit", "\(commit as Any)")
        let unknown = LoopbackEntry(command: .ack(.init(.number(1))))
        let ack = await Self.error { try await provider.request(unknown) }
        #expect(ack?.command == "ack", "\(ack as Any)")

        // A message that cannot be decoded as the requested type.
        let points = try await provider.messages(.subscribe("room"), as: Point.self)
        try await provider.request(.send("no point", to: "room"))
        var iterator = points.makeAsyncIterator()
        let undecodable = await Self.error { _ = try await iterator.next() }
        #expect(undecodable?.code == .decodingFailed)
        #expect(undecodable?.topic == "room" && undecodable?.command == "subscribe")

        // Refused by the server, which over STOMP also ends the connection.
        let refused = await Self.error { _ = try await provider.messages(.subscribe("no")) }
        #expect(refused?.topic == "no" && refused?.command == "subscribe", "\(refused as Any)")

        await transport.shutdown()
        // Calls after the shutdown, and the end of a stream.
        let late = await Self.error { try await provider.request(.send("x", to: "room")) }
        #expect(late?.code == .shutDown && late?.topic == "room" && late?.command == "send")
        let over = await Self.error { _ = try await provider.messages(.subscribe("room")) }
        #expect(over?.code == .shutDown && over?.topic == "room" && over?.command == "subscribe")
        await bench.broker.stop()
    }

    @Test("Topic and command are in what a mock fails with, for every code")
    func mock() async throws {
        let codes: [WaybillError.Code] = [
            .timedOut, .connectionLost, .notConnected, .limitExceeded, .rejected, .unauthorized,
        ]
        for code in codes {
            let failure = MockTransport.Outcome.failure(WaybillError(code, "no"))
            let mock = MockTransport()
                .expect(.send, failure).expect(.unsubscribe, failure)
                .expect(.disconnect, failure).expect(.subscribe, failure)
            let provider = Provider<LoopbackEntry>(transport: mock)
            let send = await Self.error { try await provider.request(.send("x", to: "t")) }
            #expect(send?.code == code && send?.topic == "t" && send?.command == "send")
            let leave = LoopbackEntry(command: .unsubscribe, topic: "t")
            let left = await Self.error { try await provider.request(leave) }
            #expect(left?.topic == "t" && left?.command == "unsubscribe")
            let goodbye = LoopbackEntry(command: .disconnect)
            let end = await Self.error { try await provider.request(goodbye) }
            #expect(end?.topic == nil && end?.command == "disconnect")
            let subscription = await Self.error { _ = try await provider.messages(.subscribe("t")) }
            #expect(subscription?.topic == "t" && subscription?.command == "subscribe")
        }
        // A reply that cannot be decoded, and a request without a rule.
        let mock = MockTransport().expect(.send, topic: "t", .reply("no point"))
        let provider = Provider<LoopbackEntry>(transport: mock)
        let reply = await Self.error {
            let _: Point = try await provider.request(.send("x", to: "t"))
        }
        #expect(reply?.code == .decodingFailed && reply?.topic == "t" && reply?.command == "send")
        let unexpected = await Self.error { try await provider.request(.send("x", to: "u")) }
        #expect(unexpected?.topic == "u" && unexpected?.command == "send")
    }

    @Test("The failure of a subscription names what was subscribed to")
    func streamFailure() async throws {
        let mock = MockTransport().expect(.subscribe)
        let provider = Provider<LoopbackEntry>(transport: mock)
        let messages = try await provider.messages(.subscribe("room"))
        mock.dropConnection()
        var iterator = messages.makeAsyncIterator()
        let error = await Self.error { _ = try await iterator.next() }
        #expect(error?.code == .connectionLost)
        #expect(error?.topic == "room" && error?.command == "subscribe")
    }

    // MARK: Catching

    @Test("A code can be caught by its name")
    func catching() async throws {
        func kind(_ error: any Error) -> String {
            do {
                throw error
            } catch WaybillError.Code.unauthorized {
                return "unauthorized"
            } catch WaybillError.Code.timedOut {
                return "timedOut"
            } catch let error as WaybillError where error.code == .rejected {
                return "rejected: \(error.message)"
            } catch {
                return "other"
            }
        }
        #expect(kind(WaybillError(.unauthorized, "no")) == "unauthorized")
        #expect(kind(WaybillError(.timedOut, "no")) == "timedOut")
        #expect(kind(WaybillError(.rejected, "no")) == "rejected: no")
        #expect(kind(WaybillError(.tls, "no")) == "other")
        #expect(kind(CancellationError()) == "other")
    }

    // MARK: Typed reasons

    @Test(
        "An MQTT server's reason is a type, in 3.1.1 by its equal in 5",
        arguments: [MQTTConfiguration.Version.v5, .v3_1_1]
    )
    func mqttReason(version: MQTTConfiguration.Version) async throws {
        let bench = LoopbackBench()
        bench.broker.faults.refusesConnections = .notAuthorized
        let transport = try bench.mqtt {
            $0.version = version
            $0.reconnection = .never
        }
        let provider = Provider<LoopbackEntry>(transport: transport)
        let refused = await Self.error { try await provider.request(.connect) }
        #expect(refused?.mqttReason?.code == .notAuthorized)
        bench.broker.faults.refusesConnections = nil
        bench.broker.faults.refusesSubscriptions = ["no"]
        let rejected = await Self.error { _ = try await provider.messages(.subscribe("no")) }
        let reason = try #require(rejected?.mqttReason)
        #expect(reason.code.isFailure)
        if version == .v3_1_1 { #expect(reason.code == .unspecifiedError) }
        await transport.shutdown()
        await bench.broker.stop()
    }

    @Test("All that an MQTT server says is in the reason")
    func mqttProperties() throws {
        var properties = MQTTProperties()
        properties.reasonString = "too many"
        properties.serverReference = "other.example:1883"
        properties.userProperties = [.init(name: "limit", value: "s3cret")]
        for closure in [
            MQTTClosure.refused(.quotaExceeded, properties),
            .disconnectedByServer(.quotaExceeded, properties),
        ] {
            let error = try #require(MQTTErrorMapping.error(closure))
            let reason = try #require(error.mqttReason)
            #expect(reason.code == .quotaExceeded)
            #expect(reason.text == "too many")
            #expect(reason.serverReference == "other.example:1883")
            #expect(reason.userProperties["limit"] == "s3cret")
            #expect("\(reason)" == "Quota exceeded (0x97): too many")
        }
    }

    @Test("Every reason code of the specification has its name and number")
    func codes() {
        for (code, name) in MQTTReasonCode.names {
            let text = "\(MQTTReason.Code(rawValue: code.rawValue))"
            #expect(text == code.description && text.hasPrefix(name))
        }
        #expect("\(MQTTReason.Code(rawValue: 0xFE))" == "0xFE")
        #expect(EntryCommand.disconnect(.reasonCode(0x98))[.reasonCode] == .administrativeAction)
    }

    @Test(
        "A WebSocket's code and reason are a type, and so is what the system said",
        .outsideSimulation
    )
    func closures() async throws {
        let closed = WaybillError(
            LinkError.webSocketClosed(.init(rawValue: 1_013), reason: "too busy")
        )
        #expect(closed.webSocketClosure?.code == .tryAgainLater)
        #expect(closed.webSocketClosure?.reason == "too busy")
        #expect(closed.peerReason == "1013 too busy")
        #expect(closed.socketFailure == nil && closed.mqttReason == nil)

        let listener = try MQTTTransport(url: "mqtt://127.0.0.1:1")
        let provider = Provider<LoopbackEntry>(transport: listener)
        let refused = await Self.error { try await provider.request(.connect) }
        #expect(refused?.code == .connectionRefused)
        #expect(refused?.socketFailure?.name == "ECONNREFUSED")
        #expect(refused?.socketFailure?.call == "connect")
        await listener.shutdown()
        #expect(SocketFailure(errorNumber: 9_999).name == "errno 9999")
    }
}
