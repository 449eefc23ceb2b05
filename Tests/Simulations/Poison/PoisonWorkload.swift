import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A client of a broker that answers one subscription and one message by ending the connection, and likewise a packet
/// with more than eight filters.
struct PoisonWorkload: Sendable {
    /// What is known of the client's streams and messages.
    private struct Record: Sendable {
        /// The topics whose streams have delivered something.
        var heard: Set<String> = []
        /// The topics whose streams have ended, with the code of the error.
        var ended: [String: String] = [:]
        /// The numbers that the broker has received, each once, in their order.
        var arrived: [Int] = []
        /// The result of the bad message.
        var badSend: String?
        var connectionCount = 0
    }

    private final class Ledger: Sendable {
        private let record = Locked(Record())

        func withLock<Result: Sendable>(_ body: (inout Record) -> Result) -> Result {
            record.withLock { body(&$0) }
        }
    }

    /// The number of filters that the broker accepts in a packet.
    private static let quota = 8
    /// The longest time until the bad subscription or message is found.
    private static let limit = Duration.seconds(300)
    /// The number of the bad message.
    private static let badNumber = 1_000

    let service: SimulatedService

    /// The services whose connections serve several subscriptions.
    static let services = SimulatedService.allCases.filter { $0.isMQTT || $0.isSTOMP }

    func run(_ world: SimulatedWorld) async throws -> [String: Int] {
        let record = Ledger()
        let broker = world.broker("a") { configuration in
            configuration.observe = { Self.observe($0, world, record) }
        }
        let transport = try transport(to: broker, in: world)
        let provider = Provider<SimulatedEntry>(transport: transport)
        let topics = (0...Self.quota + world.random(0...4)).map { service.topic("t\($0)") }
        try await provider.connect()
        var listeners: [Task<Void, Never>] = []
        for topic in topics {
            let command = service.subscribe(.atLeastOnce)
            let messages: Messages<Message> = try await provider.messages(
                .command(command, topic: topic)
            )
            listeners.append(Task { await Self.listen(to: messages, of: topic, record) })
        }
        let bad = topics[world.random(0...topics.count - 1)]
        broker.loopback.faults.losesSessions = true
        broker.loopback.faults.maximumFiltersPerPacket = Self.quota
        broker.loopback.faults.endsConnectionsAt = [bad, service.topic("bad")]
        broker.restart(keepingState: true)
        let good = topics.filter { $0 != bad }
        try await world.wait(for: "the bad subscription has ended", within: Self.limit) {
            record.withLock { $0.ended[bad] != nil } && transport.states.current.isConnected
        }
        world.expect(record.withLock { $0.ended } == [bad: "rejected"], "other streams have ended")
        for topic in good { broker.publish(Payload("0"), to: topic, qos: .atLeastOnce) }
        try await world.wait(
            for: "other subscriptions live although one is answered by an end of the connection",
            within: Self.limit
        ) {
            record.withLock { $0.heard.isSuperset(of: good) }
        }
        if service.isMQTT {
            broker.loopback.faults.losesSessions = world.chance(0.5)
            try await send(over: provider, world, record)
        }
        let count = record.withLock { $0.connectionCount }
        world.expect(count < 20, "\(count) connections")
        await transport.shutdown()
        for listener in listeners { await listener.value }
        return ["connected": count]
    }

    /// Sends good messages with a bad one among them.
    private func send(
        over provider: Provider<SimulatedEntry>,
        _ world: SimulatedWorld,
        _ record: Ledger
    ) async throws {
        let count = world.random(1...10)
        let place = world.random(0...count - 1)
        for number in 0..<count {
            if number == place {
                let send = provider.enqueue(
                    .send(
                        Self.badNumber,
                        to: service.topic("bad"),
                        .send(qos: .atLeastOnce)
                    )
                )
                Task {
                    let result: String
                    do {
                        _ = try await send.receipt
                        result = "sent"
                    } catch {
                        result = (error as? WaybillError)?.code.name ?? "\(error)"
                    }
                    record.withLock { $0.badSend = result }
                }
            }
            // QoS 2 does not outlive a lost session.
            let command = EntryCommand.send(qos: .atLeastOnce)
            _ = provider.enqueue(.send(number, to: service.topic("good"), command))
        }
        try await world.wait(
            for: "a good message arrives although a bad one is queued",
            within: Self.limit
        ) {
            record.withLock { $0.arrived.count == count && $0.badSend != nil }
        }
        let (result, arrived) = record.withLock { ($0.badSend, $0.arrived) }
        world.expect(arrived == Array(0..<count), "arrived: \(arrived)")
        world.expect(result == "rejected", "the bad message: \(result ?? "")")
    }

    private static func listen(
        to messages: Messages<Message>,
        of topic: String,
        _ record: Ledger
    ) async {
        do {
            for try await _ in messages { record.withLock { $0.heard.formUnion([topic]) } }
        } catch {
            let code = (error as? WaybillError)?.code.name ?? "\(error)"
            guard code != "shutDown" else { return }
            record.withLock { $0.ended[topic] = code }
        }
    }

    private static func observe(
        _ occurrence: LoopbackOccurrence,
        _ world: SimulatedWorld,
        _ record: Ledger
    ) {
        world.note("broker: \(occurrence)")
        switch occurrence {
        case .published(_, _, let payload, _):
            let number = Int(String(decoding: payload, as: UTF8.self))
            record.withLock { record in
                guard let number, !record.arrived.contains(number) else { return }
                record.arrived.append(number)
            }
        case .connected: record.withLock { $0.connectionCount += 1 }
        case .violation(let client, let text):
            world.fail("client \(client) has broken the protocol: \(text)")
        default: break
        }
    }

    private func transport(
        to broker: SimulatedBroker,
        in world: SimulatedWorld
    ) throws -> any Transport {
        let text = broker.url(for: service.service)
        guard let url = URL(string: text) else { throw WaybillError(.invalidEntry, text) }
        var reconnection = ReconnectionPolicy()
        reconnection.maximumDelay = SimulatedTransport.maximumDelay
        guard service.isMQTT else {
            var configuration = STOMPConfiguration()
            configuration.reconnection = reconnection
            return try STOMPTransport(url: url, configuration: configuration)
        }
        var configuration = MQTTConfiguration(version: service == .mqtt311 ? .v3_1_1 : .v5)
        configuration.clientIdentifier = "c"
        configuration.session.cleanStart = world.chance(0.5)
        if world.chance(0.5) { configuration.session.expiry = .seconds(3_600) }
        configuration.limits.inFlight = world.pick(1, 3, 20)
        configuration.timeouts.confirmation = .seconds(600)
        configuration.reconnection = reconnection
        return try MQTTTransport(url: url, configuration: configuration)
    }
}
