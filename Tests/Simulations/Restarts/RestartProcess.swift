import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One process of an app with a store on disk: it sends, receives, and is killed.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class RestartProcess: @unchecked Sendable {
    let number: Int
    private let world: SimulatedWorld
    private let ledger: RestartLedger
    private let transport: any Transport
    private let provider: Provider<SimulatedEntry>
    private let lanes: RestartWorkload.Lanes
    private var tasks: [Task<Void, Never>] = []
    private var isKilled = false
    /// True when it has subscribed to everything.
    private(set) var listens = false
    /// The senders that have nothing more to send.
    private(set) var finished = 0

    /// - Parameters:
    ///   - number: The number of the process, from 0.
    ///   - host: The host that only this process connects to.
    init(
        _ number: Int,
        _ service: SimulatedService,
        to broker: SimulatedBroker,
        at host: String,
        with store: SimulatedProcessStore,
        in world: SimulatedWorld,
        _ ledger: RestartLedger,
        _ lanes: RestartWorkload.Lanes
    ) throws {
        self.number = number
        self.world = world
        self.ledger = ledger
        self.lanes = lanes
        listens = lanes.incoming.isEmpty
        let text = broker.url(for: service.service, at: host)
        guard let url = URL(string: text) else { throw WaybillError(.invalidEntry, text) }
        let log = ClosureWireLogger { record in
            world.note(
                "process \(number) \(record.direction == .outbound ? "→" : "←") \(record.text)"
            )
        }
        transport =
            service.isSTOMP
            ? try STOMPTransport(url: url, configuration: Self.stomp(store, world, log))
            : try MQTTTransport(url: url, configuration: Self.mqtt(service, store, world, log))
        provider = Provider(transport: transport)
    }

    private static func stomp(
        _ store: any SessionStore,
        _ world: SimulatedWorld,
        _ log: any WireLogger
    ) -> STOMPConfiguration {
        var configuration = STOMPConfiguration()
        configuration.heartBeat.outgoing = world.pick(.seconds(3), .seconds(10))
        configuration.heartBeat.incoming = world.pick(.seconds(3), .seconds(10))
        configuration.timeouts.connect = SimulatedTransport.connectTimeout
        configuration.timeouts.confirmation = world.pick(.seconds(4), .seconds(60))
        configuration.limits.inFlight = world.pick(1, 3, 20)
        configuration.reconnection.maximumDelay = SimulatedTransport.maximumDelay
        configuration.store = store
        configuration.timeouts.close = .seconds(60)
        configuration.wireLogger = log
        return configuration
    }

    private static func mqtt(
        _ service: SimulatedService,
        _ store: any SessionStore,
        _ world: SimulatedWorld,
        _ log: any WireLogger
    ) -> MQTTConfiguration {
        var configuration = MQTTConfiguration(version: service == .mqtt311 ? .v3_1_1 : .v5)
        configuration.clientIdentifier = "app"
        configuration.session.cleanStart = false
        configuration.session.expiry = .seconds(86_400)
        configuration.keepAlive.interval = world.pick(.seconds(3), .seconds(10))
        configuration.timeouts.connect = SimulatedTransport.connectTimeout
        configuration.timeouts.confirmation = world.pick(.seconds(4), .seconds(60))
        configuration.limits.inFlight = world.pick(1, 3, 20)
        configuration.limits.receiveMaximum = world.pick(1, 5, 1_024)
        configuration.reconnection.maximumDelay = SimulatedTransport.maximumDelay
        configuration.session.store = store
        // Longer than the disk ever takes.
        configuration.timeouts.close = .seconds(60)
        configuration.wireLogger = log
        return configuration
    }

    func start() {
        // What was left goes out with the first connection.
        if lanes.incoming.isEmpty { tasks.append(Task { await connect() }) }
        for (topic, qos) in lanes.incoming { tasks.append(Task { await listen(topic, qos) }) }
        for (topic, qos) in lanes.outgoing { tasks.append(Task { await send(topic, qos) }) }
    }

    /// From now on it does nothing, and nothing that it has done counts any more.
    func kill() {
        world.note("process \(number) is killed")
        isKilled = true
    }

    /// Ends as an app does that is closed: what it is told until then counts.
    func end() async {
        world.note("process \(number) ends")
        if world.chance(0.5) { try? await provider.disconnect() }
        await transport.shutdown()
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        isKilled = true
    }

    /// Frees what a process would have left to the system.
    func clean() async {
        isKilled = true
        await transport.shutdown()
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    private func rest(_ longest: Duration) async {
        try? await Task.sleep(for: world.random(.zero...longest))
    }

    private func connect() async {
        while !isKilled, !Task.isCancelled {
            do {
                try await provider.connect()
                return
            } catch {
                world.note("process \(number) cannot connect: \(error)")
                await rest(.seconds(1))
            }
        }
    }

    // MARK: Sending

    /// Sends runs of messages, each without waiting for the one before.
    private func send(_ topic: String, _ qos: QoS) async {
        while !isKilled, !Task.isCancelled, ledger.sentCount(topic) < lanes.length {
            let run = (0..<world.random(1...6)).map { _ in
                let number = ledger.next(topic)
                return (number, provider.enqueue(.send(number, to: topic, .send(qos: qos))))
            }
            for (number, handle) in run {
                do {
                    _ = try await handle.receipt
                    if !isKilled { ledger.acknowledged(number, topic) }
                } catch {
                    if !isKilled { world.note("\(topic) \(number): \(error)") }
                    if !isKilled, let error = error as? WaybillError {
                        ledger.failed(number, topic, error)
                    }
                    ledger.count(isKilled ? "killed" : "failed")
                }
            }
            await rest(.seconds(2))
        }
        finished += 1
    }

    // MARK: Receiving

    private var listening = 0

    private func listen(_ topic: String, _ qos: QoS) async {
        while !isKilled, !Task.isCancelled {
            do {
                // One that fails leaves the filter, and the server no longer keeps messages for it.
                let command = EntryCommand.subscribe(
                    qos: qos,
                    .manualAcknowledgement,
                    .waitsForConnection,
                    .timeout(.seconds(86_400))
                )
                let messages = try await provider.messages(
                    .command(command, topic: topic)
                )
                listening += 1
                if listening == lanes.incoming.count, !isKilled { listens = true }
                for try await message in messages {
                    guard !isKilled else { return }
                    await take(message, topic)
                }
                return
            } catch {
                guard !isKilled else { return }
                world.note("process \(number) cannot listen to \(topic): \(error)")
                await rest(.seconds(1))
            }
        }
    }

    private func take(_ message: Message, _ topic: String) async {
        ledger.take(message.number, topic, by: number)
        if world.chance(0.3) { await rest(.seconds(1)) }
        guard !isKilled, let id = message.id, let number = message.number else { return }
        tasks.append(
            Task {
                do {
                    let command = EntryCommand.ack(id, .awaitsCompletion)
                    try await provider.request(.command(command))
                    if !isKilled { ledger.complete(number, topic) }
                } catch {
                    if !isKilled { world.note("\(topic) \(number), ack: \(error)") }
                }
            }
        )
    }
}
