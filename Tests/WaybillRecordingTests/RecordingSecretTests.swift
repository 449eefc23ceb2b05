import Foundation
import Testing
import TransportTestSupport
import WaybillMQTT
import WaybillRecording
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WaybillWebSocket
import WireCore
import WireTestSupport

@testable import class WaybillRecording.Recorder

/// What a recording has of a whole conversation on each transport, and what it never has.
@Suite("Secrets and recordings", .inSimulation, .timeLimit(.minutes(30)))
struct RecordingSecretTests {
    private static let secret = "s3cret"

    private static func transport(
        _ service: LoopbackBroker.Service,
        _ broker: LoopbackBroker,
        _ recorder: Recorder
    ) throws -> any Transport {
        let url = broker.url(for: service)
        let (user, password) = ("ada", "\(secret)-password")
        switch service {
        case .mqtt, .mqttOverWebSocket:
            var configuration = MQTTConfiguration()
            (configuration.userName, configuration.password) = (user, password)
            var will = Will(topic: "gone", body: Payload("\(secret)-will"))
            will.headers = ["token": "\(secret)-will-property"]
            configuration.will = will
            configuration.webSocket.headers = ["X-Token": "\(secret)-upgrade"]
            (configuration.wireLogger, configuration.label) = (recorder, "app")
            configuration.timeouts.connect = LoopbackBroker.connectTimeout
            return try MQTTTransport(url: url, configuration: configuration)
        case .stomp, .stompOverWebSocket:
            var configuration = STOMPConfiguration()
            (configuration.userName, configuration.password) = (user, password)
            (configuration.wireLogger, configuration.label) = (recorder, "app")
            configuration.timeouts.connect = LoopbackBroker.connectTimeout
            return try STOMPTransport(url: url, configuration: configuration)
        case .eventStream:
            var configuration = SSEConfiguration()
            (configuration.userName, configuration.password) = (user, password)
            (configuration.wireLogger, configuration.label) = (recorder, "app")
            configuration.timeouts.connect = LoopbackBroker.connectTimeout
            return try SSETransport(url: url, configuration: configuration)
        }
    }

    /// A whole conversation, with a token, recorded by the transport, by a provider and by observation.
    private static func record(
        _ service: LoopbackBroker.Service,
        bodies: WireLogBodies = .hidden
    ) async throws -> Recording {
        let broker = try LoopbackBroker.started {
            $0.credentials = ["ada": "\(secret)-password"]
        }
        let buffer = RecordingBuffer()
        var options = Recorder.Options()
        options.bodies = bodies
        let recorder = Recorder(buffer: buffer, options: options)
        let transport = try transport(service, broker, recorder)
        let observation = recorder.observe(transport, label: "app")
        let token = TokenInterceptor(.header("token", on: [.send, .subscribe]) { $0 }) { _ in
            "\(secret)-token"
        }
        let provider = Provider<LoopbackEntry>(transport: transport)
            .intercepted(token).logged(recorder)
        // Only a path can have a query. Elsewhere the text would be part of the topic.
        let topic = service == .eventStream ? "room?token=\(secret)-query" : "room"
        try await provider.request(LoopbackEntry(command: .connect))
        let messages: Messages<String> = try await provider.messages(
            LoopbackEntry(command: .subscribe, topic: topic)
        )
        var heard = messages.makeAsyncIterator()
        try await provider.request(
            LoopbackEntry(
                command: .send(qos: .atLeastOnce),
                topic: topic,
                body: .text("\(secret)-body"),
                headers: ["secret": "\(secret)-header"]
            )
        )
        #expect(try await heard.next() == "\(secret)-body")
        broker.faults.refusesSubscriptions = [topic, "other"]
        await #expect(throws: WaybillError.self) {
            _ = try await provider.messages(LoopbackEntry(command: .subscribe, topic: "other"))
        }
        await transport.shutdown()
        // The events end when the transport is gone, and the states with the shutdown.
        try await waitUntil {
            buffer.snapshot(limit: .max).records.contains {
                $0.kind == .state && $0.name == "disconnected"
            }
        }
        observation.cancel()
        await observation.value
        // One that has ended is not kept.
        #expect(recorder.observationCount == 0)
        await broker.stop()
        let snapshot = buffer.snapshot(limit: .max)
        #expect(snapshot.missedCount == 0)
        return Recording(snapshot.records)
    }

    private static func frames(_ service: LoopbackBroker.Service) -> [String] {
        switch service {
        case .mqtt, .mqttOverWebSocket:
            [
                "out CONNECT", "in CONNACK", "out SUBSCRIBE room", "in SUBACK", "out PUBLISH room",
                "in PUBLISH room",
            ]
        case .stomp, .stompOverWebSocket:
            [
                "out CONNECT", "in CONNECTED", "out SUBSCRIBE room", "out SEND room",
                "in MESSAGE room",
            ]
        case .eventStream:
            [
                "out GET room?…", "in 200 room?…", "in event room?…", "out POST room?…",
            ]
        }
    }

    /// A record in a few words.
    private static func words(_ record: Recording.Record) -> String {
        let direction = record.direction.map { $0 == .inbound ? "in " : "out " } ?? ""
        return direction + record.name + (record.topic.map { " \($0)" } ?? "")
    }

    @Test(
        "No password, token, header, property, will, query or body is in the file; names, topics and sizes are",
        arguments: LoopbackBroker.Service.allCases
    )
    func redacted(service: LoopbackBroker.Service) async throws {
        let recording = try await Self.record(service)
        let text = try #require(recording.contents.text)
        let basic = Data("ada:\(Self.secret)-password".utf8).base64EncodedString()
        let body = Data("\(Self.secret)-body".utf8).base64EncodedString()
        for secret in [Self.secret, basic, body] {
            let lines = text.split(separator: "\n").filter { $0.contains(secret) }
            #expect(lines.isEmpty, "\(lines)")
        }
        func words(_ kind: Recording.Kind) -> [String] {
            recording.records.filter { $0.kind == kind }.map(Self.words)
        }
        let frames = words(.frame)
        for frame in Self.frames(service) { #expect(frames.contains(frame), "\(frame): \(frames)") }
        let topic = service == .eventStream ? "room?…" : "room"
        #expect(
            words(.request).contains("out connect") && words(.request).contains("out send \(topic)")
        )
        #expect(words(.receipt).contains("in send \(topic)"), "\(words(.receipt))")
        #expect(words(.message).contains("in message \(topic)"), "\(words(.message))")
        #expect(words(.failure).contains("in subscribe other"), "\(words(.failure))")
        #expect(words(.event).contains("received \(topic)"), "\(words(.event))")
        #expect(words(.state).contains("connected") && words(.state).last == "disconnected")
        #expect(recording.records.allSatisfy { $0.label == "app" && !$0.name.isEmpty })
        // The body is known by its length alone.
        let length = "\(Self.secret)-body".utf8.count
        let received = recording.records.first { $0.kind == .message }
        #expect(received?.byteCount == length)
    }

    @Test(
        "Bodies are recorded where the recorder asks for them, and credentials, headers and wills are not",
        arguments: LoopbackBroker.Service.allCases
    )
    func bodies(service: LoopbackBroker.Service) async throws {
        let recording = try await Self.record(service, bodies: .shownAlthoughTheyMayHoldSecrets)
        let body = "\(Self.secret)-body"
        for (kind, direction) in [
            (Recording.Kind.frame, WireRecord.Direction.outbound), (.frame, .inbound),
            (.request, .outbound), (.message, .inbound),
        ] {
            let isThere = recording.records.contains {
                $0.kind == kind && $0.direction == direction && $0.body?.text == body
            }
            #expect(isThere, "\(kind) \(direction)")
        }
        let text = try #require(recording.contents.text).replacing(body, with: "")
        let lines = text.split(separator: "\n").filter { $0.contains(Self.secret) }
        #expect(lines.isEmpty, "\(lines)")
        // Without bodies again, to be passed on.
        #expect(recording.redacted.contents.text?.contains(Self.secret) == false)
    }

    @Test(
        "A password in a URL is not in the record of a connection that fails",
        arguments: LoopbackBroker.Service.allCases
    )
    func failedConnection(service: LoopbackBroker.Service) async throws {
        let broker = try LoopbackBroker.started {
            $0.credentials = ["ada": "another"]
        }
        let address = broker.url(for: service)
        let user = "://ada:\(Self.secret)-password@"
        let url = address.replacing("://", with: user, maxReplacements: 1)
        let buffer = RecordingBuffer()
        let recorder = Recorder(buffer: buffer)
        let transport = try Self.transport(service, to: url, recorder)
        recorder.observe(transport)
        let provider = Provider<LoopbackEntry>(transport: transport).logged(recorder)
        await #expect(throws: WaybillError.self) {
            if service == .eventStream {
                // A stream connects by its first request.
                _ = try await provider.messages(
                    LoopbackEntry(command: .subscribe, topic: "room?token=\(Self.secret)-query")
                )
            } else {
                try await provider.request(LoopbackEntry(command: .connect))
            }
        }
        await transport.shutdown()
        await broker.stop()
        let records = buffer.snapshot(limit: .max).records
        #expect(records.contains { $0.kind == .failure })
        let text = try #require(Recording(records).contents.text)
        let basic = Data("ada:\(Self.secret)-password".utf8).base64EncodedString()
        for secret in [Self.secret, basic] {
            let lines = text.split(separator: "\n").filter { $0.contains(secret) }
            #expect(lines.isEmpty, "\(lines)")
        }
    }

    /// A transport whose credentials are in its URL alone.
    private static func transport(
        _ service: LoopbackBroker.Service,
        to url: String,
        _ recorder: Recorder
    ) throws -> any Transport {
        switch service {
        case .mqtt, .mqttOverWebSocket:
            try MQTTTransport(url: url) {
                $0.wireLogger = recorder
                $0.reconnection = .never
                $0.timeouts.connect = LoopbackBroker.connectTimeout
            }
        case .stomp, .stompOverWebSocket:
            try STOMPTransport(url: url) {
                $0.wireLogger = recorder
                $0.reconnection = .never
                $0.timeouts.connect = LoopbackBroker.connectTimeout
            }
        case .eventStream:
            try SSETransport(url: url) {
                $0.wireLogger = recorder
                $0.reconnection = .never
                $0.timeouts.connect = LoopbackBroker.connectTimeout
            }
        }
    }

    @Test("A WebSocket's frames have names and lengths, and no header, query or payload")
    func webSocket() async throws {
        let broker = try LoopbackBroker.started()
        for bodies in [WireLogBodies.hidden, .shownAlthoughTheyMayHoldSecrets] {
            let buffer = RecordingBuffer()
            var options = Recorder.Options()
            options.bodies = bodies
            var configuration = WebSocketClient.Configuration()
            configuration.subprotocols = ["v12.stomp"]
            configuration.headers = ["token": "\(Self.secret)-header"]
            configuration.wireLogger = Recorder(buffer: buffer, options: options)
            configuration.connectTimeout = LoopbackBroker.connectTimeout
            let socket = try await WebSocketClient.connect(
                to: broker.url(for: .stompOverWebSocket),
                configuration: configuration
            )
            let frame = "CONNECT\naccept-version:1.2\nhost:\(Self.secret)\n\n\0"
            var messages = socket.messages.makeAsyncIterator()
            try await socket.send(frame)
            _ = try await messages.next()
            try await socket.close()
            let records = buffer.snapshot().records
            let words = records.map(Self.words)
            #expect(
                words.prefix(2) == ["out text", "in text"] && words.last == "in Close",
                "\(words)"
            )
            #expect(records.first?.byteCount == frame.utf8.count)
            let isHidden = bodies == .hidden
            #expect(records.first?.body?.text == (isHidden ? nil : frame))
            let text = try #require(Recording(records).redacted.contents.text)
            #expect(!text.contains(Self.secret))
            if isHidden { #expect(records.allSatisfy { $0.body == nil }) }
        }
        await broker.stop()
    }

    @Test("A PUBLISH that names its topic by an alias has the topic in its record")
    func aliases() async throws {
        let broker = try LoopbackBroker.started { $0.topicAliasMaximum = 4 }
        let buffer = RecordingBuffer()
        var configuration = MQTTConfiguration()
        configuration.wireLogger = Recorder(buffer: buffer)
        configuration.timeouts.connect = LoopbackBroker.connectTimeout
        let transport = try MQTTTransport(
            url: broker.url(for: .mqtt),
            configuration: configuration
        )
        let provider = Provider<LoopbackEntry>(transport: transport)
        let messages = try await provider.messages(.subscribe("a/long/topic/of/many/levels"))
        var heard = messages.makeAsyncIterator()
        for _ in 0..<4 {
            try await provider.request(.send("x", to: "a/long/topic/of/many/levels"))
            _ = try await heard.next()
        }
        await transport.shutdown()
        await broker.stop()
        let published = buffer.snapshot().records.filter { $0.name == "PUBLISH" }
        #expect(published.count == 8)
        #expect(published.allSatisfy { $0.topic == "a/long/topic/of/many/levels" })
        // Otherwise this test shows nothing.
        #expect(published.contains { $0.text.contains("topic= ") }, "\(published)")
    }
}
