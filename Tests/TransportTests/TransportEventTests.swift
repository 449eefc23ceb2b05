import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The events of observers over MQTT and STOMP. `StreamEventTests` tests them for event streams.
@Suite("Transports with a life cycle: events", .inSimulation, .timeLimit(.minutes(30)))
struct TransportEventTests {
    private static let secret = "s3cret"
    /// Long, since other tests run at the same time.
    private static let timeout = Duration.seconds(50)
    private static let services: [LoopbackBroker.Service] = [
        .mqtt, .mqttOverWebSocket, .stomp, .stompOverWebSocket,
    ]

    private struct Entry: EntryType {
        var command: EntryCommand
        var topic: String?
        var body = EntryBody.none
        var headers: Headers = [:]

        static func send(_ text: String, qos: QoS = .atLeastOnce) -> Entry {
            Entry(
                command: .send(qos: qos),
                topic: "room",
                body: .text(text),
                headers: ["token": "\(secret)-header"]
            )
        }

        static func subscribe(_ topic: String = "room") -> Entry {
            Entry(command: .subscribe(qos: .atLeastOnce), topic: topic)
        }

        static let connect = Entry(command: .connect)
    }

    private static func broker() throws -> LoopbackBroker {
        try .started { $0.credentials = ["ada": "\(secret)-password"] }
    }

    /// A transport whose waits are all 3,000 seconds long, with a ceiling of an hour.
    private static func transport(
        _ service: LoopbackBroker.Service,
        _ broker: LoopbackBroker,
        _ reconnection: ReconnectionPolicy = .slow
    ) throws -> any Transport {
        var environment = LinkEnvironment.system
        environment.random = { 3_000_000_000_000 }
        let url = try #require(URL(string: broker.url(for: service)))
        var queue = OfflinePolicy()
        queue.messageLimit = 1
        queue.overflow = .dropOldest
        switch service {
        case .mqtt, .mqttOverWebSocket:
            var configuration = MQTTConfiguration()
            (configuration.timeouts.connect, configuration.timeouts.confirmation) = (
                timeout, timeout
            )
            (configuration.userName, configuration.password) = ("ada", "\(secret)-password")
            configuration.reconnection = reconnection
            configuration.offline = queue
            return try MQTTTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        default:
            var configuration = STOMPConfiguration()
            (configuration.timeouts.connect, configuration.timeouts.confirmation) = (
                timeout, timeout
            )
            (configuration.userName, configuration.password) = ("ada", "\(secret)-password")
            configuration.reconnection = reconnection
            configuration.offline = queue
            return try STOMPTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        }
    }

    private static func isMQTT(_ service: LoopbackBroker.Service) -> Bool {
        service == .mqtt || service == .mqttOverWebSocket
    }

    /// Takes a transport through all states. At the end there are no references to it.
    /// - Returns: The events that one observer has got, and the iterator of the other.
    private static func life(
        _ service: LoopbackBroker.Service,
        _ broker: LoopbackBroker
    ) async throws -> ([TransportEvent], TransportEvents.AsyncIterator) {
        let transport = try transport(service, broker)
        let provider = Provider<Entry>(transport: transport)
        var first = provider.events.makeAsyncIterator()
        let second = transport.events.makeAsyncIterator()
        try await provider.request(.connect)
        let messages: Messages<String> = try await provider.messages(.subscribe())
        var heard = messages.makeAsyncIterator()
        try await provider.request(.send("\(secret)-one"))
        #expect(try await heard.next() == "\(secret)-one")
        broker.dropConnections()
        var events = await take(to: .waiting, &first)
        // The queue has room for one of the two sends.
        let away = (1...2).map { _ in
            Task { (try? await provider.request(.send("\(secret)-away"))) != nil }
        }
        events += await take(to: .sendFailed, &first)
        try await provider.request(.connect)
        #expect(try await heard.next() == "\(secret)-away")
        var sent = 0
        for task in away where await task.value { sent += 1 }
        #expect(sent == 1)
        try await provider.request(Entry(command: .unsubscribe, topic: "room"))
        try await provider.request(Entry(command: .disconnect))
        await transport.shutdown()
        return (events + (await rest(&first)), second)
    }

    /// Takes all further events.
    private static func rest(
        _ iterator: inout TransportEvents.AsyncIterator
    ) async -> [TransportEvent] {
        var events = await take(to: .subscriptionEnded, &iterator)
        if events.last?.kind == .subscriptionEnded {
            events += await take(to: .disconnected, &iterator)
        }
        return events
    }

    @Test(
        "A life with a loss in it: every event once, in order, to all observers",
        arguments: services
    )
    func life(service: LoopbackBroker.Service) async throws {
        let broker = try Self.broker()
        var (events, second) = try await Self.life(service, broker)
        // The broker decides whether the message or its acknowledgement comes first.
        #expect(
            events.map(\.kind).filter { $0 != .acknowledged } == [
                .connecting, .connected, .subscribed, .sent, .received, .disconnected, .waiting,
                .dropped, .sendFailed, .connecting, .connected, .resubscribed, .sent, .received,
                .subscriptionEnded, .disconnected,
            ]
        )
        // The other observer gets the same events, and then the end, since the transport is gone.
        var others: [TransportEvent] = []
        while let event = await second.next() { others.append(event) }
        #expect(others.map { "\($0)" } == events.map { "\($0)" })
        check(events, service, broker)
        for event in events { #expect(!"\(event)".contains(Self.secret)) }
        await broker.stop()
    }

    /// Checks the values of the events.
    private func check(
        _ events: [TransportEvent],
        _ service: LoopbackBroker.Service,
        _ broker: LoopbackBroker
    ) {
        func all(_ kinds: TransportEvent.Kind...) -> [TransportEvent] {
            events.filter { kinds.contains($0.kind) }
        }
        let isMQTT = Self.isMQTT(service)
        let connections = all(.connecting, .connected, .disconnected)
        let host = "127.0.0.1:\(broker.port(for: service))"
        #expect(connections.allSatisfy { $0.host == host })
        #expect(all(.connecting, .connected, .waiting).allSatisfy { $0.attempt == 1 })
        #expect(all(.connected).allSatisfy { $0.isResumed == (isMQTT ? false : nil) })
        #expect(all(.disconnected).map { $0.error?.code } == [.connectionLost, nil])
        let waiting = all(.waiting)
        #expect(waiting.first?.error?.code == .connectionLost)
        for event in waiting {
            let wait = event.until.map { event.time.duration(to: $0) } ?? .zero
            #expect(wait > .seconds(2_000) && wait <= .seconds(3_000))
        }
        let subscriptions = all(.subscribed, .resubscribed, .subscriptionEnded)
        #expect(subscriptions.allSatisfy { $0.topic == "room" && $0.error == nil })
        let granted: QoS? = isMQTT ? .atLeastOnce : nil
        #expect(subscriptions.map(\.qos) == [granted, granted, nil])
        let messages = all(.sent, .acknowledged, .received, .sendFailed)
        #expect(messages.allSatisfy { $0.topic == "room" && $0.qos == granted })
        #expect(all(.sent).map(\.byteCount) == [10, 11])
        #expect(all(.acknowledged).map(\.byteCount) == [10, 11])
        #expect(all(.received).map(\.byteCount) == [10, 11])
        #expect(all(.sendFailed).first?.error?.code == .limitExceeded)
        let dropped = all(.dropped).first
        #expect(dropped?.count == 1 && dropped?.byteCount == 11 && dropped?.topic == "room")
        #expect(dropped?.dropReason == .oldestQueued)
        let timed = all(
            .connected,
            .subscribed,
            .resubscribed,
            .acknowledged,
            .sendFailed,
            .disconnected
        )
        #expect(timed.allSatisfy { $0.duration ?? .zero > .zero })
        for length in [10, 11] {
            let kinds = all(.sent, .acknowledged).filter { $0.byteCount == length }.map(\.kind)
            #expect(kinds == [.sent, .acknowledged])
        }
    }

    @Test(
        "A broker that stays away: each attempt with its number, up to the last",
        arguments: services
    )
    func away(service: LoopbackBroker.Service) async throws {
        let broker = try Self.broker()
        var policy = ReconnectionPolicy()
        policy.initialDelay = .zero
        policy.maximumAttempts = 2
        let transport = try Self.transport(service, broker, policy)
        let provider = Provider<Entry>(transport: transport)
        var iterator = provider.events.makeAsyncIterator()
        let messages: Messages<String> = try await provider.messages(.subscribe())
        await broker.stop()
        let events = await take(to: .subscriptionEnded, &iterator)
        #expect(
            events.map(\.kind) == [
                .connecting, .connected, .subscribed, .disconnected,
                .waiting, .connecting, .connectionFailed,
                .waiting, .connecting, .connectionFailed, .subscriptionEnded,
            ]
        )
        #expect(events.map(\.attempt) == [1, 1, nil, nil, 1, 1, 1, 2, 2, 2, nil])
        let failed = events.filter { $0.kind == .connectionFailed }
        #expect(failed.allSatisfy { $0.error?.code == .connectionRefused })
        #expect(events.last?.error?.code == .connectionRefused)
        await #expect(throws: WaybillError.self) { try await provider.request(.send("x")) }
        let again = await take(to: .sendFailed, &iterator)
        // The send waits for the interval of the policy.
        #expect(again.map(\.kind) == [.waiting, .connecting, .connectionFailed, .sendFailed])
        #expect(again.last?.error?.code == .connectionRefused && again.last?.byteCount == 1)
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("What is refused is told once, with the error that the caller gets", arguments: services)
    func refused(service: LoopbackBroker.Service) async throws {
        let broker = try Self.broker()
        broker.faults.refusesSubscriptions = ["no"]
        let transport = try Self.transport(service, broker)
        let provider = Provider<Entry>(transport: transport)
        var iterator = provider.events.makeAsyncIterator()
        await #expect(throws: WaybillError.self) {
            let _: Messages<String> = try await provider.messages(.subscribe("no"))
        }
        let events = await take(to: .subscriptionRefused, &iterator)
        #expect(!events.contains { $0.kind == .subscribed || $0.kind == .subscriptionEnded })
        #expect(events.last?.topic == "no")
        let code = Self.isMQTT(service) ? WaybillError.Code.unauthorized : .rejected
        #expect(events.last?.error?.code == code)
        await transport.shutdown()
        await #expect(throws: WaybillError.self) { try await provider.request(.send("x")) }
        let failed = await take(to: .sendFailed, &iterator)
        #expect(failed.last?.error?.code == .shutDown)
        #expect(!failed.contains { $0.kind == .subscriptionEnded || $0.kind == .sent })
        await broker.stop()
    }

    @Test("A slow consumer: what is dropped, and why the subscription ends", arguments: services)
    func slow(service: LoopbackBroker.Service) async throws {
        let broker = try Self.broker()
        let transport = try Self.transport(service, broker)
        let provider = Provider<Entry>(transport: transport)
        var iterator = provider.events.makeAsyncIterator()
        var entry = Entry.subscribe()
        entry.command = .subscribe(.buffering(BufferPolicy(.fail, messageLimit: 1)))
        var messages: Messages<String>? = try await provider.messages(entry)
        for text in ["1", "2"] {
            try await provider.request(.send(text, qos: .atMostOnce))
        }
        // The app reads only after the drop: an app that takes the first message in time is not slow.
        let dropped = await take(to: .dropped, &iterator)
        #expect(dropped.last?.dropReason == .slowConsumer && dropped.last?.topic == "room")
        await #expect(throws: WaybillError.self) {
            if let messages { for try await _ in messages {} }
        }
        messages = nil
        let ended = await take(to: .subscriptionEnded, &iterator)
        #expect(ended.last?.error?.code == .slowConsumer && ended.last?.topic == "room")
        await transport.shutdown()
        await broker.stop()
    }
}

extension ReconnectionPolicy {
    /// Waits up to an hour.
    fileprivate static var slow: ReconnectionPolicy {
        var policy = ReconnectionPolicy()
        policy.initialDelay = .seconds(3_600)
        policy.maximumDelay = .seconds(3_600)
        return policy
    }
}
