import Waybill
import WaybillTesting

/// Several listeners of one topic that come and go while all is well.
///
/// Each message reaches the listeners that are there. A message that comes when the last listener has just left
/// is told in an event.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulatedListeners: @unchecked Sendable {
    private struct Listener {
        let number: Int
        let messages: Messages<Message>
        let reader: Task<Void, Never>
    }

    private let client: SimulatedClient
    private let broker: SimulatedBroker
    private let world: SimulatedWorld
    private let service: SimulatedService
    /// The topic, and the filters that match it.
    private let topic: String
    private let filters: [String]
    private let qos: QoS
    private var present: [Listener] = []
    private var lastListener = 0
    /// The messages that each listener has heard.
    private var heard: [Int: Set<Int>] = [:]
    /// The messages of the topic that no listener took.
    private var unheardCount = 0

    init(
        _ client: SimulatedClient,
        _ broker: SimulatedBroker,
        _ service: SimulatedService,
        in world: SimulatedWorld
    ) {
        self.client = client
        self.broker = broker
        self.world = world
        self.service = service
        let topic = service.passingTopic("several-\(client.name)")
        self.topic = topic
        filters = service.isMQTT ? [topic, topic, "\(topic)/#"] : [topic]
        qos = service.isMQTT ? world.pick(.atMostOnce, .atLeastOnce) : .atLeastOnce
    }

    func run() async throws {
        let events = Task {
            for await event in client.provider.events
            where event.dropReason == .noListener && event.topic == topic {
                unheardCount += event.count ?? 0
            }
        }
        defer { events.cancel() }
        for number in 0..<world.size(of: "changes of listeners", 12) {
            if present.isEmpty || (present.count < 3 && world.chance(0.5)) {
                try await join()
            } else {
                leave()
            }
            try await publish(number)
        }
        if !present.isEmpty {
            while !present.isEmpty { leave() }
            try await publish(-1)
        }
        // The server has to learn that the last listener has left. No keep alive is over then, or a ping would be under way.
        try await Task.sleep(for: .milliseconds(8_500))
    }

    private func join() async throws {
        lastListener += 1
        let number = lastListener
        let filter = filters[world.random(0...filters.count - 1)]
        let command = service.subscribe(qos)
        let messages = try await client.provider.messages(.command(command, topic: filter))
        world.note("listener \(number) of \(client.name) has come to \(filter)")
        let reader = Task {
            do {
                for try await message in messages {
                    world.note("listener \(number) of \(client.name) takes \(message.number ?? -1)")
                    heard[number, default: []].insert(message.number ?? -1)
                }
            } catch {
                world.fail("listener \(number) of \(client.name) has ended: \(error)")
            }
        }
        present.append(Listener(number: number, messages: messages, reader: reader))
    }

    private func leave() {
        let listener = present.remove(at: world.random(0...present.count - 1))
        world.note("listener \(listener.number) of \(client.name) goes")
        listener.messages.cancel()
    }

    /// Publishes a message, which reaches all who are there; the server has not yet heard of a listener that has just left.
    ///
    /// Where the server keeps the session, a message without a listener is held for a minute before it is told.
    private func publish(_ number: Int) async throws {
        let before = unheardCount
        broker.publish(Payload("\(number)"), to: service.brokerTopic(topic), qos: qos)
        let (numbers, name) = (present.map(\.number), client.name)
        try await world.wait(
            for: "message \(number) reaches the listeners \(numbers) of \(name), or is told",
            within: numbers.isEmpty ? .seconds(70) : .seconds(10)
        ) { [self] in
            guard !numbers.isEmpty else { return unheardCount > before }
            return numbers.allSatisfy { heard[$0]?.contains(number) == true }
        }
    }
}
