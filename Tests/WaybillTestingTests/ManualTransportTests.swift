import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WaybillWebSocket
import WireCore
import WireTestSupport

/// Every public initializer of `WaybillTesting` that takes a manual clock, over brokers in memory.
@Suite("Transports on a manual clock", .inSimulation, .timeLimit(.minutes(30)))
struct ManualTransportTests {
    private static func transport(
        _ service: LoopbackBroker.Service,
        _ broker: LoopbackBroker,
        _ clock: ManualClock
    ) throws -> any Transport {
        switch service {
        case .mqtt, .mqttOverWebSocket:
            try MQTTTransport(
                to: broker,
                overWebSocket: service == .mqttOverWebSocket,
                clock: clock
            )
        case .stomp, .stompOverWebSocket:
            try STOMPTransport(
                to: broker,
                overWebSocket: service == .stompOverWebSocket,
                clock: clock
            )
        case .eventStream: try SSETransport(to: broker, clock: clock)
        }
    }

    /// Runs the body while the clock moves in small steps.
    private static func moving<Value: Sendable>(
        _ clock: ManualClock,
        by step: Duration = .milliseconds(5),
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let isDone = Locked(false)
        let task = Task {
            defer { isDone.withLock { $0 = true } }
            return try await body()
        }
        try await clock.advance(by: step) { isDone.withLock { $0 } }
        return try await task.value
    }

    @Test(
        "A transport talks to a broker in memory; a lost connection comes back when the clock says so",
        arguments: LoopbackBroker.Service.allCases
    )
    func reconnects(_ service: LoopbackBroker.Service) async throws {
        let clock = ManualClock()
        let broker = LoopbackBroker(clock: clock)
        let transport = try Self.transport(service, broker, clock)
        let messages = try await Self.moving(clock) {
            try await transport.subscribe(Request(topic: "room", command: .subscribe))
        }
        let heard = Locked<Set<String>>([])
        let hearing = Task {
            for try await message in messages {
                heard.withLock { heard in _ = heard.insert(message.text ?? "") }
            }
        }
        try await clock.advance(by: .milliseconds(5)) {
            broker.publish("1", to: "room")
            return heard.withLock { $0 } == ["1"]
        }
        broker.dropConnections()
        try await clock.advance(by: .nanoseconds(1)) { transport.states.isWaiting }
        // The clock does not move by itself.
        await untilQuiet()
        #expect(transport.states.isWaiting)
        try await clock.advance(by: .milliseconds(100)) {
            transport.states.isConnected && broker.connectionCount == 1
        }
        try await clock.advance(by: .milliseconds(5)) {
            broker.publish("2", to: "room")
            return heard.withLock { $0 } == ["1", "2"]
        }
        messages.cancel()
        try await hearing.value
        try await Self.moving(clock) { await transport.shutdown() }
    }

    @Test("An acknowledgement that the broker withholds is timedOut when the clock says so")
    func withheldAcknowledgement() async throws {
        let clock = ManualClock()
        let broker = LoopbackBroker(clock: clock)
        let transport = try MQTTTransport(to: broker, clock: clock)
        let request = Request(topic: "a", command: .send(qos: .atLeastOnce))
        broker.faults.withholdsAcknowledgements = true
        var error = await #expect(throws: WaybillError.self) {
            try await Self.moving(clock, by: .seconds(1)) { try await transport.perform(request) }
        }
        #expect(error?.code == .timedOut)
        #expect(clock.now.offset >= .seconds(30))
        broker.faults.withholdsAcknowledgements = false
        _ = try await Self.moving(clock) { try await transport.perform(request) }
        broker.faults.withholdsSubscriptionAnswers = true
        error = await #expect(throws: WaybillError.self) {
            try await Self.moving(clock, by: .seconds(1)) {
                try await transport.subscribe(Request(topic: "a", command: .subscribe))
            }
        }
        #expect(error?.code == .timedOut)
        try await Self.moving(clock) { await transport.shutdown() }
    }

    @Test("A broker accepts the first connection and refuses the second one")
    func secondConnection() async throws {
        let clock = ManualClock()
        let broker = LoopbackBroker(clock: clock)
        let transport = try MQTTTransport(to: broker, clock: clock)
        let request = Request(topic: "a", command: .send(qos: .atLeastOnce))
        _ = try await Self.moving(clock) { try await transport.perform(request) }
        broker.faults.refusesConnections = .notAuthorized
        broker.dropConnections()
        try await clock.advance(by: .milliseconds(100)) {
            guard case .disconnected(let cause?) = transport.states.current else { return false }
            return cause.code == .unauthorized
        }
        try await Self.moving(clock) { await transport.shutdown() }
    }

    @Test("A message that the broker refuses fails with its reason, and reaches no subscriber")
    func refusedMessage() async throws {
        let broker = LoopbackBroker()
        let transport = try MQTTTransport(to: broker)
        let messages = try await transport.subscribe(Request(topic: "a", command: .subscribe))
        broker.faults.refusesMessages = .quotaExceeded
        let error = await #expect(throws: WaybillError.self) {
            try await transport.perform(
                Request(topic: "a", command: .send(qos: .atLeastOnce), body: "refused")
            )
        }
        #expect(error?.code == .rejected)
        #expect(error?.peerReason?.isEmpty == false)
        broker.faults.refusesMessages = nil
        _ = try await transport.perform(
            Request(topic: "a", command: .send(qos: .atLeastOnce), body: "taken")
        )
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "taken")
        await transport.shutdown()
    }

    @Test("An event source and a WebSocket are on the clock, too")
    func others() async throws {
        let clock = ManualClock()
        let broker = LoopbackBroker(clock: clock)
        let source = try EventSource(to: broker, topic: "news", clock: clock)
        let seen = Locked<[String]>([])
        let openings = Locked(0)
        source.onMessage { event in seen.withLock { $0.append(event.data) } }
        source.onOpen { openings.withLock { $0 += 1 } }
        source.connect()
        try await clock.advance(by: .milliseconds(5)) { openings.withLock { $0 } == 1 }
        broker.publish("1", to: "news")
        try await clock.advance(by: .milliseconds(5)) { seen.withLock { $0 } == ["1"] }
        broker.dropConnections()
        try await clock.advance(by: .milliseconds(100)) { openings.withLock { $0 } == 2 }
        await source.shutdown()

        let socket = try await Self.moving(clock) {
            var configuration = WebSocketClient.Configuration()
            configuration.subprotocols = ["mqtt"]
            return try await WebSocketClient.connect(
                to: broker,
                configuration: configuration,
                clock: clock
            )
        }
        #expect(socket.subprotocol == "mqtt")
        try await Self.moving(clock, by: .milliseconds(100)) { _ = try? await socket.close() }
    }
}

extension ConnectionStates {
    fileprivate var isConnected: Bool {
        if case .connected = current { true } else { false }
    }

    fileprivate var isWaiting: Bool {
        if case .waiting = current { true } else { false }
    }
}
