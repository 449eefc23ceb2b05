import ChatService
import Testing
import WaybillMQTT
import WaybillTesting

/// A race in an app's own code, found by running the app in simulated worlds. Each seed has another network, which
/// loses connections and delays messages, and another order of tasks.
@Suite("Chat service: races", .enabled(if: Simulation.isAvailable), .timeLimit(.minutes(30)))
struct RaceTests {
    /// Ada's app counts the messages of two rooms, while Bob sends to both.
    private static func chat<Badge: UnreadBadge>(
        _ world: SimulatedWorld,
        counting badge: Badge.Type
    ) async throws {
        let broker = world.broker("chat.example")
        world.faults = .rough(until: .seconds(60))
        let ada = try MQTTTransport(url: broker.url())
        let bob = try MQTTTransport(url: broker.url())
        let store = UnreadStore()
        let badge = Badge(store: store)
        let entered = Entered()

        let readers = ["lobby", "kitchen"].map { room in
            Task {
                var count = 0
                let messages = try await service(ada).join(room)
                entered.count += 1
                for try await _ in messages {
                    count += 1
                    await badge.add()
                }
                return count
            }
        }
        for number in 0..<world.size(of: "messages", 20) {
            for room in ["lobby", "kitchen"] {
                try? await service(bob).say("\(number)", as: "bob", in: room)
            }
            try await Task.sleep(for: world.random(.zero ... .seconds(3)))
        }
        try await world.recover(within: .seconds(600))
        // On a bad network Ada may not have entered both rooms yet.
        try await world.wait(for: "Ada is in both rooms", within: .seconds(600)) {
            entered.count == 2
        }
        await ada.shutdown()
        await bob.shutdown()

        // QoS 1 may repeat a message. Each message that a loop got must have been counted.
        var count = 0
        for reader in readers { count += try await reader.value }
        let unread = await store.unread
        world.expect(unread == count, "\(unread) unread messages instead of \(count)")
    }

    /// The service as the app builds it.
    private static func service(_ transport: MQTTTransport) -> ChatService {
        let retries = RetryPolicy(maximumAttempts: 20)
        return ChatService(provider: Provider(transport: transport).intercepted(retries))
    }

    @Test("On a bad network every message is sent in the end", arguments: Simulation.seeds(20))
    func spoken(seed: UInt64) async throws {
        try await Simulation.run(seed: seed) { world in
            let broker = world.broker("chat.example")
            world.faults = .rough(until: .seconds(60))
            let transport = try MQTTTransport(url: broker.url())
            let chat = Self.service(transport)
            for number in 0..<world.size(of: "messages", 20) {
                try await chat.say("\(number)", as: "ada", in: "lobby")
                try await Task.sleep(for: world.random(.zero ... .seconds(3)))
            }
            try await world.recover(within: .seconds(600))
            world.expect(broker.connectionCount > 0, "the app is connected again")
            await transport.shutdown()
        }
    }

    @Test("Seeds find the update that is lost, and the smallest run that loses it")
    func lostUpdate() async throws {
        var failures: [SimulationFailure] = []
        for seed in 1...20 as ClosedRange<UInt64> where failures.isEmpty {
            do {
                try await Simulation.run(seed: seed) { world in
                    try await Self.chat(world, counting: HastyBadge.self)
                }
            } catch let failure as SimulationFailure {
                failures.append(failure)
            }
        }
        let failure = try #require(failures.first)
        // In an app's test this is the text to read: the seed, the failed check, the smallest run, its trace, and the
        // command that runs the seed again.
        #expect(failure.description.contains("unread messages instead of"))
        #expect(failure.description.contains("WAYBILL_SEED=\(failure.seed) swift test"))
    }

    @Test("No seed finds any once the race is mended", arguments: Simulation.seeds(100))
    func mended(seed: UInt64) async throws {
        try await Simulation.run(seed: seed) { world in
            try await Self.chat(world, counting: CarefulBadge.self)
        }
    }
}

/// The number of rooms that Ada has entered.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
private final class Entered: @unchecked Sendable {
    var count = 0
}

/// The number on the app's icon.
private protocol UnreadBadge: Actor {
    init(store: UnreadStore)

    func add() async
}

/// The obvious form: an actor that loads, adds and saves.
private actor HastyBadge: UnreadBadge {
    private let store: UnreadStore

    init(store: UnreadStore) { self.store = store }

    func add() async {
        let unread = await store.load()
        // The actor was free during the load. Another call may have loaded the same number.
        await store.save(unread + 1)
    }
}

/// The same without the race: each update waits for the one before it.
private actor CarefulBadge: UnreadBadge {
    private let store: UnreadStore
    private var lastUpdate: Task<Void, Never>?

    init(store: UnreadStore) { self.store = store }

    func add() async {
        // No `await` stands between the two uses of `lastUpdate`.
        let update = Task { [store, lastUpdate] in
            await lastUpdate?.value
            await store.save(await store.load() + 1)
        }
        lastUpdate = update
        await update.value
    }
}

/// Stands for a database, which takes some time.
private actor UnreadStore {
    private(set) var unread = 0

    func load() async -> Int {
        try? await Task.sleep(for: .milliseconds(20))
        return unread
    }

    func save(_ unread: Int) async {
        try? await Task.sleep(for: .milliseconds(20))
        self.unread = unread
    }
}
