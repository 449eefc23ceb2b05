import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// The records of loggers and observers for a whole conversation, on every transport.
@Suite("Secrets", .inSimulation, .timeLimit(.minutes(30))) struct SecretTests {
    private static let secret = "s3cret"

    /// Collects lines from any thread.
    private struct Log: WireLogger {
        let lines: AsyncStream<String>.Continuation

        // The line contains the body, if there is one.
        func log(_ record: WireRecord) { lines.yield(record.line) }
    }

    private static func transport(
        _ service: LoopbackBroker.Service,
        _ broker: LoopbackBroker,
        _ log: some WireLogger
    ) throws -> any Transport {
        let url = broker.url(for: service)
        let (user, password) = ("ada", "\(secret)-password")
        switch service {
        case .mqtt, .mqttOverWebSocket:
            var configuration = MQTTConfiguration()
            (configuration.userName, configuration.password) = (user, password)
            configuration.will = Will(topic: "gone", body: Payload("\(secret)-will"))
            configuration.wireLogger = log
            configuration.timeouts.connect = LoopbackBroker.connectTimeout
            return try MQTTTransport(url: url, configuration: configuration)
        case .stomp, .stompOverWebSocket:
            var configuration = STOMPConfiguration()
            (configuration.userName, configuration.password) = (user, password)
            configuration.wireLogger = log
            configuration.timeouts.connect = LoopbackBroker.connectTimeout
            return try STOMPTransport(url: url, configuration: configuration)
        case .eventStream:
            var configuration = SSEConfiguration()
            (configuration.userName, configuration.password) = (user, password)
            configuration.wireLogger = log
            configuration.timeouts.connect = LoopbackBroker.connectTimeout
            return try SSETransport(url: url, configuration: configuration)
        }
    }

    @Test(
        "Frames come with bodies where the logger asks for them, and credentials stay hidden",
        arguments: LoopbackBroker.Service.allCases
    )
    func bodies(service: LoopbackBroker.Service) async throws {
        let broker = try LoopbackBroker.started {
            $0.credentials = ["ada": "\(Self.secret)-password"]
        }
        let (lines, continuation) = AsyncStream<String>.makeStream()
        let log = Log(lines: continuation).showing(bodies: .shownAlthoughTheyMayHoldSecrets)
        let transport = try Self.transport(service, broker, log)
        let provider = Provider<LoopbackEntry>(transport: transport)
        let messages: Messages<String> = try await provider.messages(
            LoopbackEntry(command: .subscribe, topic: "room")
        )
        var heard = messages.makeAsyncIterator()
        try await provider.request(
            LoopbackEntry(
                command: .send(qos: .atLeastOnce),
                topic: "room",
                body: .text("shown-body"),
                headers: ["token": "\(Self.secret)-header"]
            )
        )
        #expect(try await heard.next() == "shown-body")
        await transport.shutdown()
        await broker.stop()
        continuation.finish()
        let wire = await lines.reduce(into: [String]()) { $0.append($1) }
        for arrow in ["→", "←"] {
            let shown = wire.contains { $0.hasPrefix(arrow) && $0.hasSuffix("  shown-body") }
            #expect(shown, "\(wire)")
        }
        for line in wire { #expect(!line.contains(Self.secret), "\(line)") }
    }

    /// Texts that the log of a conversation must contain.
    private static func words(of service: LoopbackBroker.Service) -> [String] {
        switch service {
        case .mqtt, .mqttOverWebSocket: ["CONNECT", "SUBSCRIBE", "PUBLISH", "UNSUBSCRIBE"]
        case .stomp, .stompOverWebSocket: ["CONNECT", "SUBSCRIBE", "SEND", "MESSAGE"]
        case .eventStream: ["GET /room?…", "POST /room?…", "event message"]
        }
    }

    @Test(
        "No log line and no event shows a password, a header's value, a body, a will or a query",
        arguments: LoopbackBroker.Service.allCases
    )
    func redacted(service: LoopbackBroker.Service) async throws {
        let broker = try LoopbackBroker.started {
            $0.credentials = ["ada": "\(Self.secret)-password"]
        }
        let (lines, continuation) = AsyncStream<String>.makeStream()
        let log = Log(lines: continuation)
        let transport = try Self.transport(service, broker, log)
        let (frames, requests) = AsyncStream<String>.makeStream()
        let provider = Provider<LoopbackEntry>(transport: transport).logged(Log(lines: requests))
        let events = LineLog()
        let observer = observe(provider.events) { events.append("\($0)") }
        // Only a path can have a query. Elsewhere the text would be part of the topic.
        let topic = service == .eventStream ? "room?token=\(Self.secret)-query" : "room"
        let leave = LoopbackEntry(command: .unsubscribe, topic: topic)
        try await provider.request(LoopbackEntry(command: .connect))
        let messages: Messages<String> = try await provider.messages(
            LoopbackEntry(command: .subscribe, topic: topic)
        )
        var heard = messages.makeAsyncIterator()
        try await provider.request(
            LoopbackEntry(
                command: .send,
                topic: topic,
                body: .text("\(Self.secret)-body"),
                headers: ["token": "\(Self.secret)-header"]
            )
        )
        #expect(try await heard.next() == "\(Self.secret)-body")
        try await provider.request(leave)
        // Failures are logged, too: the subscription has ended, or the broker refuses it.
        broker.faults.refusesSubscriptions = [topic, "room"]
        await #expect(throws: WaybillError.self) {
            _ = try await provider.messages(LoopbackEntry(command: .subscribe, topic: topic))
        }
        await transport.shutdown()
        await broker.stop()
        observer.cancel()
        continuation.finish()
        requests.finish()
        let wire = await lines.reduce(into: [String]()) { $0.append($1) }
        let calls = await frames.reduce(into: [String]()) { $0.append($1) }
        await observer.value
        let noted = events.all
        // All steps were logged: those with a secret, and those that failed.
        for word in Self.words(of: service) {
            #expect(wire.contains { $0.contains(word) }, "\(word): \(wire)")
        }
        for command in ["connect", "subscribe", "send", "unsubscribe"] {
            #expect(calls.contains { $0.contains(command) }, "\(command): \(calls)")
        }
        for kind in ["connected", "subscribed", "received", "subscriptionRefused"] {
            #expect(noted.contains { $0.hasPrefix(kind) }, "\(kind): \(noted)")
        }
        let basic = Data("ada:\(Self.secret)-password".utf8).base64EncodedString()
        for line in wire + calls + noted {
            #expect(!line.contains(Self.secret) && !line.contains(basic), "\(line)")
        }
    }
}
