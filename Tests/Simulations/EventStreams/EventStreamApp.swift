import Waybill
import WaybillSSE
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A flag. Once it is set, the app's transport must send and receive nothing.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
private final class Silence: @unchecked Sendable {
    var isWanted = false
}

/// One app: it listens to streams, posts, and changes its subscriptions. It is checked all the time.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class EventStreamApp: @unchecked Sendable {
    /// The count of numbers that each lane sends.
    static let laneLength = 25
    static let connectTimeout = Duration.seconds(5)
    static let idleTimeout = Duration.seconds(30)

    let name: String
    let world: SimulatedWorld
    let ledger: EventStreamLedger
    let transport: SSETransport
    let provider: Provider<SimulatedEntry>
    let hints: ConnectionHints
    /// The longest duration of a send that is neither refused nor repeated.
    let sendLimit: Duration
    /// The topics of the streams that last from beginning to end. An `EventSource` listens to the last one, the
    /// transport to the others.
    let topics: [String]
    let source: EventSourceApp
    /// True when the app must only listen.
    var isIdle = false
    private(set) var isStopping = false
    private(set) var hasSentAll = false
    private(set) var isConnected = false
    /// True when the app has a single stream, whose states are then the transport's.
    private let hasOneStream: Bool
    /// True when the app ends before the run does.
    private let leavesEarly: Bool
    private let silence: Silence
    private var readers: [String: EventReader] = [:]
    private var consumers: [Task<Void, Never>] = []

    init(
        _ number: Int,
        to broker: SimulatedBroker,
        in world: SimulatedWorld,
        _ ledger: EventStreamLedger
    ) throws {
        let name = "c\(number)"
        self.name = name
        self.world = world
        self.ledger = ledger
        let simulated = SimulatedTokens(world)
        // Servers of both kinds exist: one scheme for all requests, Bearer or Basic.
        let isBearer = world.chance(0.5)
        let tokens = TokenInterceptor(isBearer ? .bearer : Self.basic) { refused in
            ledger.checkRefusal(refused)
            return try await simulated.token(replacing: refused)
        }
        let hints = ConnectionHints()
        self.hints = hints
        leavesEarly = world.chance(0.15)
        hasOneStream = world.chance(0.25)
        let silence = Silence()
        self.silence = silence
        var configuration = SSEConfiguration()
        configuration.timeouts.connect = Self.connectTimeout
        configuration.timeouts.confirmation = world.pick(.seconds(4), .seconds(15))
        configuration.timeouts.silence = Self.idleTimeout
        configuration.limits.connectionsPerHost = world.pick(1, 2, 6)
        configuration.failover.hosts = Array(broker.hosts.dropFirst())
        configuration.failover.order = world.pick(.inOrder, .shuffled)
        configuration.reconnection.maximumDelay = .seconds(8)
        configuration.reconnection.busyDelay = .seconds(3)
        configuration.hints = [hints]
        configuration.buffering = BufferPolicy(
            .holdBack,
            messageLimit: world.pick(1, 3, 100),
            byteLimit: world.pick(1, 1_000)
        )
        configuration.credentials =
            world.chance(0.5)
            ? .token(of: tokens) { Self.credentials($0, isBearer) }
            : CredentialSource { occasion in
                let refused = occasion.refused.map { $0.password ?? "" }
                ledger.checkRefusal(refused)
                return Credentials(
                    userName: "ada",
                    password: try await simulated.token(replacing: refused)
                )
            }
        configuration.wireLogger = ClosureWireLogger { [name, world] record in
            let isSent = record.direction == .outbound
            world.note("\(name) \(isSent ? "→" : "←") \(record.text)")
            world.expect(!silence.isWanted, "\(name) goes on after its shutdown: \(record.text)")
            if isSent { ledger.noteRequest(record.text) }
        }
        sendLimit =
            configuration.timeouts.confirmation + Self.connectTimeout * broker.hosts.count
            + .seconds(1)
        let url = broker.url(for: .eventStream)
        transport = try SSETransport(url: url, configuration: configuration)
        provider = Provider<SimulatedEntry>(transport: transport).intercepted(tokens)
        topics = (0..<(hasOneStream ? 2 : 3)).map { "to-\(name)-\($0)" }
        // With several hosts the app asks each in turn, and a source that is opened again does not know the time.
        // Neither can be watched.
        if broker.hosts.count == 1 { for topic in topics.dropLast() { ledger.watch(topic) } }
        configuration.wireLogger = ClosureWireLogger { [name, world] record in
            world.note("\(name)'s source: \(record.text)")
        }
        source = try EventSourceApp(
            name,
            url,
            topics[topics.count - 1],
            configuration,
            in: world,
            ledger
        )
    }

    private static func basic(_ token: String) -> String {
        "Basic " + Data("ada:\(token)".utf8).base64EncodedString()
    }

    private static let basic = TokenPlacement.header("Authorization", on: [.send]) { basic($0) }

    private static func credentials(_ token: String, _ isBearer: Bool) -> Credentials {
        isBearer
            ? Credentials(headers: ["Authorization": "Bearer \(token)"])
            : Credentials(userName: "ada", password: token)
    }

    /// Runs until it is told to stop, then closes everything.
    func run() async {
        let states = Task { await watchStates() }
        let events = Task { await watchEvents() }
        await withTaskGroup(of: Void.self) { group in
            for topic in topics.dropLast() { group.addTask { await self.listen(topic) } }
            group.addTask { await self.source.run() }
            if !hasOneStream { group.addTask { await self.changeSubscriptions() } }
            group.addTask { await self.changeMind() }
            group.addTask { await self.sendAll() }
            if leavesEarly { group.addTask { await self.leave() } }
            await group.waitForAll()
        }
        while !isStopping { await rest(.seconds(2)) }
        if world.chance(0.5) { _ = try? await provider.request(.command(.disconnect)) }
        await shutDown()
        await source.end()
        for consumer in consumers { await consumer.value }
        if case .disconnected = transport.states.current {
        } else {
            world.fail("\(name) is \(transport.states.current) after its shutdown")
        }
        states.cancel()
        events.cancel()
        await states.value
        await events.value
    }

    /// Closes everything in the middle of the traffic.
    private func leave() async {
        await rest(world.faults.until)
        world.note("\(name) leaves")
        stop()
        await shutDown()
    }

    private func shutDown() async {
        let begin = world.elapsed
        await transport.shutdown()
        let time = world.elapsed - begin
        world.expect(time <= .seconds(10), "\(name) took \(time) to shut down")
        silence.isWanted = true
    }

    func stop() {
        isIdle = true
        isStopping = true
        source.isStopping = true
    }

    // MARK: Pauses

    func rest(_ longest: Duration) async {
        try? await Task.sleep(for: world.random(.zero...longest))
    }

    private func changeMind() async {
        while !isIdle, world.elapsed < world.faults.until {
            await rest(.seconds(15))
            guard !isIdle, world.elapsed < world.faults.until else { return }
            switch world.random(0...5) {
            case 0:
                hints.send(.retryNow)
                for topic in topics { ledger.excuse(topic) }
                world.note("\(name) is in a hurry")
            case 1:
                world.note("\(name) pauses and goes on at once")
                for _ in 0..<world.random(1...3) {
                    await transport.pause()
                    await resume()
                }
            default:
                world.note("\(name) pauses")
                await transport.pause()
                await rest(.seconds(8))
                world.note("\(name) goes on")
                await resume()
            }
        }
    }

    private func resume() async {
        for topic in topics { ledger.excuse(topic) }
        transport.resume()
    }

    // MARK: Listening

    var hasHeardAll: Bool {
        readers.count == topics.count - 1
            && readers.values.allSatisfy { $0.next == ledger.publishedCount($0.topic) }
            && source.reader.next == ledger.publishedCount(source.topic)
    }

    /// Subscribes to a topic and keeps the stream, whatever happens to the connection.
    private func listen(_ topic: String) async {
        let reader = EventReader(name, topic, from: 0, in: world, ledger)
        // A first stream may be lost before its first event. With an id, the next stream misses nothing.
        let command = EntryCommand.subscribe(
            .lastEventID("0"),
            .waitsForConnection(world.chance(0.3))
        )
        while !isStopping {
            do {
                let messages = try await provider.messages(
                    .command(command, topic: topic)
                )
                readers[topic] = reader
                consumers.append(Task { await self.consume(messages, reader) })
                return
            } catch {
                world.note("\(name) cannot listen to \(topic): \(error)")
                checkPassing(error, "a subscription")
                await rest(.seconds(2))
                ledger.excuse(topic)
            }
        }
    }

    private func consume(_ messages: Messages<Message>, _ reader: EventReader) async {
        do {
            for try await message in messages {
                reader.take(message)
                if world.chance(0.2) { await rest(isIdle ? .seconds(1) : .seconds(2)) }
                if world.chance(0.01) { await rest(.seconds(60)) }
            }
            if !isStopping { world.fail("\(name): the stream of \(reader.topic) has ended") }
        } catch {
            world.fail("\(name): the stream of \(reader.topic) has failed: \(error)")
        }
    }

    /// Subscribes and unsubscribes, and resumes each topic after the last event of its previous subscription.
    private func changeSubscriptions() async {
        var last: [String: EventReader] = [:]
        while !isIdle {
            await rest(.seconds(5))
            let topic = "x\(world.random(0...2))"
            let earlier = last[topic]
            let reader = EventReader(name, topic, from: earlier?.next, in: world, ledger)
            var command: EntryCommand = .subscribe
            command[.lastEventID] = earlier?.lastEventID
            reader.lastEventID = earlier?.lastEventID
            // Often the subscription is cancelled while it is being opened.
            let waits = world.chance(0.5)
            command[.waitsForConnection] = waits
            let time: Duration = waits ? .milliseconds(500) : .seconds(5)
            do {
                let messages = try await provider.messages(
                    .command(command, topic: topic)
                )
                let task = Task {
                    for try await message in messages { reader.take(message) }
                }
                await rest(time)
                if world.chance(0.5) { task.cancel() } else { messages.cancel() }
                do { try await task.value } catch is CancellationError {}
            } catch {
                checkPassing(error, "a passing subscription")
            }
            // A subscription without an event cannot be resumed.
            last[topic] = reader.lastEventID == nil ? nil : reader
        }
    }

    /// Checks that the network, the server or an expired token can have caused the error.
    private func checkPassing(_ error: any Error, _ what: String) {
        let passing: [WaybillError.Code] = [
            .connectionLost, .connectionRefused, .notConnected, .timedOut, .unauthorized,
        ]
        if isStopping, (error as? WaybillError)?.code == .shutDown { return }
        guard let error = error as? WaybillError, passing.contains(error.code) else {
            return world.fail("\(name): \(what) was told \(error)")
        }
        ledger.count("\(what): \(error.code)")
    }

    // MARK: Sending

    private func sendAll() async {
        let lanes = EventStreamLane.allCases.prefix(world.size(of: "lanes", 4))
        await withTaskGroup(of: Void.self) { group in
            for lane in lanes { group.addTask { await lane.run(self) } }
        }
        hasSentAll = true
    }

    /// Sends once more after all faults are over. That send must succeed.
    func sendLast() async {
        let topic = "from-\(name)-last"
        var isUnsure = true
        // The tokens of requests and of streams may have expired one after the other.
        for _ in 0..<3 where isUnsure && !isStopping {
            isUnsure = await ledger.send(
                0,
                to: topic,
                isRepeatable: false,
                within: sendLimit * 2
            ) { _ = try await provider.request(.send(0, to: topic, .send)) }
        }
        world.expect(!isUnsure || isStopping, "\(name) cannot send, though all is well")
    }

    // MARK: States and events

    private func watchStates() async {
        var last: ConnectionState?
        for await state in transport.states {
            world.note("\(name) is \(state)")
            if let last, !Self.follows(state, last, hasOneStream: hasOneStream) {
                world.fail("\(name): \(state) follows \(last)")
            }
            last = state
            if case .connected = state { isConnected = true } else { isConnected = false }
        }
    }

    /// True when a state may follow another one. With several streams, each change is reported once.
    private static func follows(
        _ state: ConnectionState,
        _ last: ConnectionState,
        hasOneStream: Bool
    ) -> Bool {
        switch (last, state) {
        case (.connecting(let old), .connecting(let new)): old != new
        // With several streams, each wait has an end of its own.
        case (.waiting, .waiting): true
        // The last open stream has ended, and another one is requested.
        case (.connected, .connecting): !hasOneStream
        case (.idle, .connecting(1)), (.idle, .waiting), (.idle, .disconnected),
            (.disconnected, .connecting(1)), (.disconnected, .waiting),
            (.connecting, .connected), (.connecting, .waiting), (.connecting, .disconnected),
            (.connected, .waiting), (.connected, .disconnected),
            (.waiting, .connecting), (.waiting, .disconnected), (.idle, .paused),
            (.connecting, .paused), (.connected, .paused), (.waiting, .paused),
            (.paused, .connecting), (.paused, .waiting), (.paused, .disconnected),
            (.disconnected, .paused):
            true
        default: false
        }
    }

    /// Checks that the app waits as long as the server asks it to.
    private func watchEvents() async {
        for await event in transport.events {
            guard case .waiting = event.kind, let until = event.until,
                let refusal = event.error?.underlying as? HTTPRefusal,
                let time = refusal.headers["Retry-After"].flatMap({ Int($0) })
            else { continue }
            let wait = event.time.duration(to: until)
            world.expect(
                wait > .seconds(time) - .seconds(1),
                "\(name) waits \(wait) instead of \(time) s"
            )
        }
    }
}

/// Checks that the events of a topic come without a gap and without a repetition.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class EventReader: @unchecked Sendable {
    private let name: String
    let topic: String
    private let world: SimulatedWorld
    private let ledger: EventStreamLedger
    /// The number of the next event; nil when any may come.
    private(set) var next: Int?
    var lastEventID: String?

    init(
        _ name: String,
        _ topic: String,
        from next: Int?,
        in world: SimulatedWorld,
        _ ledger: EventStreamLedger
    ) {
        self.name = name
        self.topic = topic
        self.next = next
        self.world = world
        self.ledger = ledger
    }

    /// The types of events; an event of the type `message` names none.
    static let types = ["message", "price", "news"]

    /// The type of the event with a number.
    static func type(of number: Int) -> String { types[number % types.count] }

    func take(_ message: Message) {
        take(message.number, message.id?.description, message[.eventType] ?? "message")
    }

    func take(_ number: Int?, _ id: String?, _ type: String) {
        world.note("\(name) takes \(number ?? -1) of \(topic)")
        guard let number, let id = id.flatMap({ Int($0) }) else {
            return world.fail("\(name) has received an event of \(topic) that was never published")
        }
        world.expect(
            type == Self.type(of: number),
            "\(name) has heard \(number) of \(topic) with the type \(type)"
        )
        if let next, number != next {
            world.fail("\(name) has heard \(number) of \(topic) instead of \(next)")
        }
        if let last = lastEventID.flatMap({ Int($0) }), id <= last {
            world.fail("\(name) has heard event \(id) of \(topic) behind \(last)")
        }
        next = number + 1
        lastEventID = "\(id)"
        ledger.noteEvent(topic)
    }
}
