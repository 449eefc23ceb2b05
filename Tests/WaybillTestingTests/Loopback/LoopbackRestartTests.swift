import MQTTWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// A broker that is killed and started again.
@Suite("Loopback restarts", .inSimulation, .timeLimit(.minutes(30))) struct LoopbackRestartTests {
    @Test("MQTT: sessions and retained messages stay or go; no client hears a word")
    func mqtt() async throws {
        let bench = LoopbackBench()
        var client = LoopbackPacketClient(bench)
        try client.connect(as: "a", will: "t", subscribing: "t")
        for keepsState in [true, false, true] {
            let sender = try LoopbackPacketClient(bench, connectedAs: "sender")
            try sender.publish("kept", to: "retained", isRetained: true)
            try sender.publish("x", to: "t", .atLeastOnce, identifier: 1)
            let sessions = bench.broker.sessions.map(\.clientIdentifier)
            #expect(sessions.contains("a") && sessions.contains("sender"))
            bench.broker.restart(keepingState: keepsState)
            #expect(bench.broker.connectionCount == 0)
            // The clients see a reset without a DISCONNECT before it.
            #expect(throws: LinkError.reset) { try client.received() }
            #expect(throws: LinkError.reset) { try sender.received() }
            client = LoopbackPacketClient(bench)
            let answers = try client.connect(as: "a", will: "t")
            #expect(answers.first == (keepsState ? "present" : "new"))
            #expect(answers.contains { $0.hasPrefix("x ") } == keepsState)
            try client.subscribe("retained", .atMostOnce)
            #expect(try client.received().contains("kept 0") == keepsState)
            try client.subscribe("t", .exactlyOnce)
            _ = try client.received()
        }
        await bench.broker.stop()
    }

    @Test("STOMP: queues stay, with what was not acknowledged, or go", arguments: [true, false])
    func stomp(keepsState: Bool) async throws {
        let bench = LoopbackBench()
        let first = try LoopbackFrameClient(bench)
        try first.subscribe("1", to: "/queue/q")
        let sender = try LoopbackFrameClient(bench)
        try sender.send("a", to: "/queue/q")
        try sender.send("b", to: "/queue/other")
        bench.broker.restart(keepingState: keepsState)
        let second = try LoopbackFrameClient(bench)
        try second.subscribe("2", to: "/queue/q", ack: "auto")
        try second.subscribe("3", to: "/queue/other", ack: "auto")
        #expect(try second.messages() == (keepsState ? ["2: a again", "3: b"] : []))
        await bench.broker.stop()
    }

    @Test("Event streams: events and their ids go on, or begin again", arguments: [true, false])
    func events(keepsState: Bool) async throws {
        let bench = LoopbackBench()
        func post() throws -> String {
            let stream = try Self.request(bench, "GET /t", "Last-Event-ID: 0")
            try Self.write(
                "POST /t HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
                to: bench.connect(.eventStream)
            )
            return try Self.read(stream)
        }
        #expect(try post().contains("id: 1\n"))
        bench.broker.restart(keepingState: keepsState)
        let text = try post()
        #expect(text.contains("id: 1\n") && text.contains("id: 2\n") == keepsState, "\(text)")
        await bench.broker.stop()
    }

    @Test(
        "A restart amid a CONNECT, a takeover or a packet wedges nothing",
        arguments: [true, false]
    )
    func amid(keepsState: Bool) async throws {
        let bench = LoopbackBench()
        let half = LoopbackPacketClient(bench)
        try half.write([0x10, 0x20, 0, 4])
        let owner = try LoopbackPacketClient(bench, connectedAs: "a", subscribing: "t")
        try owner.write([0x30, 100, 0])
        let taking = LoopbackPacketClient(bench)
        try taking.connect(as: "a")
        for service in LoopbackBroker.Service.allCases { _ = bench.connect(service) }
        bench.broker.restart(keepingState: keepsState)
        let next = LoopbackPacketClient(bench)
        #expect(try next.connect(as: "a") == [keepsState ? "present" : "new"])
        try await waitUntil { bench.broker.connectionCount == 1 }
        await bench.broker.stop()
        #expect(bench.broker.connectionCount == 0)
    }

    @Test(
        "A transport comes back after each, and its subscription with it",
        arguments: [true, false]
    )
    func transport(keepsState: Bool) async throws {
        let bench = LoopbackBench()
        let provider = Provider<LoopbackEntry>(
            transport: try bench.mqtt {
                $0.session.cleanStart = false
                $0.session.expiry = .seconds(1_000)
            }
        )
        let messages = try await provider.messages(.subscribe("t"), as: String.self)
        var iterator = messages.makeAsyncIterator()
        for round in 1...3 {
            try await provider.request(.send("\(round)", to: "t"))
            while let text = try await iterator.next(), text != "\(round)" {}
            bench.broker.restart(keepingState: keepsState)
            try await waitUntil(moving: { bench.clock.advance(by: .milliseconds(100)) }) {
                bench.broker.sessions.contains { $0.isConnected && $0.filters == ["t"] }
            }
        }
        await bench.broker.stop()
    }

    // MARK: Bare HTTP

    static func request(
        _ bench: LoopbackBench,
        _ line: String,
        _ header: String
    ) throws -> any ByteStream {
        let stream = bench.connect(.eventStream)
        try write("\(line) HTTP/1.1\r\nHost: h\r\n\(header)\r\n\r\n", to: stream)
        return stream
    }

    static func write(_ text: String, to stream: any ByteStream) throws {
        try Array(text.utf8).withUnsafeBytes { _ = try stream.write($0) }
    }

    static func read(_ stream: any ByteStream) throws -> String {
        var bytes: [UInt8] = []
        while true {
            var space = [UInt8](repeating: 0, count: 65_536)
            let outcome = try space.withUnsafeMutableBytes { try stream.read(into: $0) }
            guard case .bytes(let count) = outcome else {
                return String(decoding: bytes, as: UTF8.self)
            }
            bytes += space[..<count]
        }
    }
}
