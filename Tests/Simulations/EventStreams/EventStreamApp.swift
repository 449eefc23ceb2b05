import Waybill
import WaybillSSE
import WaybillTesting

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Whether nothing more may be said.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
private final class Silence: @unchecked Sendable {
    var isWanted = false
}

/// One app: it listens to streams, posts, changes its mind, and is checked all the while.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class EventStreamApp: @unchecked Sendable {
    /// How many numbers each lane sends.
    static let laneLength = 25
    static let connectTimeout = Duration.seconds(5)
    static let idleTimeout = Duration.seconds(30)

    let name: String
    let world: SimulatedWorld
    let ledger: EventStreamLedger
    let transport: SSETransport
    let provider: Provider<SimulatedEntry>
    let hints: ConnectionHints
    /// How long a send may take that is neither refused nor repeated.
    let sendLimit: Duration
    /// What it listens to from beginning to end, by the transport and, the last one, by an `EventSource`.
    let topics: [String]
    let source: EventSourceApp
    /// Whether the app is to do nothing more than listen.
    var isIdle = false
    private(set) var isStopping = false
    private(set) var hasSentAll = false
    private(set) var isConnected = false
    /// Whether it has one stream, whose states are those of all.
    private let hasOneStream: Bool
    /// Whether it ends before all is done.
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
        // As with a server that takes Bearer for everything, or Basic.
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
        configuration.connectTimeout = Self.connectTimeout
        configuration.responseTimeout = world.pick(.seconds(4), .seconds(15))
        configuration.idleTimeout = Self.idleTimeout
        configuration.maximumConnectionsPerHost = world.pick(1, 2, 6)
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
            configuration.responseTimeout + Self.connectTimeout * broker.hosts.count + .seconds(1)
        let url = broker.url(for: .eventStream)
        transport = try SSETransport(url: url, configuration: configuration)
        provider = Provider<SimulatedEntry>(transport: transport).intercepted(tokens)
        topics = (0..<(hasOneStream ? 2 : 3)).map { "to-\(name)-\($0)" }
        // With several hosts each is asked in turn; and a source that is opened anew knows of no time.
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

    /// Lives until it is told to stop, and then closes everything.
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

    /// Closes everything in the midst of it.
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

    /// Listens to a topic from now on, whatever happens to the connection.
    private func listen(_ topic: String) async {
        let reader = EventReader(name, topic, from: 0, in: world, ledger)
        var options = SubscribeOptions()
        // So that what comes between the loss of a stream that has brought nothing and the next one is not missed.
        options.lastEventID = "0"
        options.startsOffline = world.chance(0.3)
        while !isStopping {
            do {
                let messages = try await provider.messages(
                    .command(.subscribe(options), topic: topic)
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

    /// Subscriptions that come and go, and go on where the last one was.
    private func changeSubscriptions() async {
        var last: [String: EventReader] = [:]
        while !isIdle {
            await rest(.seconds(5))
            let topic = "x\(world.random(0...2))"
            let earlier = last[topic]
            let reader = EventReader(name, topic, from: earlier?.next, in: world, ledger)
            var options = SubscribeOptions()
            options.lastEventID = earlier?.lastEventID
            reader.lastEventID = earlier?.lastEventID
            // One that is left while it is being opened, often.
            options.startsOffline = world.chance(0.5)
            let time: Duration = options.startsOffline ? .milliseconds(500) : .seconds(5)
            do {
                let messages = try await provider.messages(
                    .command(.subscribe(options), topic: topic)
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
            // One that has heard nothing knows of nothing that it has missed.
            last[topic] = reader.lastEventID == nil ? nil : reader
        }
    }

    /// An error that the network, the server or an expired token can bring about, and no other.
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

    /// Sends once more when all is well, which must succeed.
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
            ) { _ = try await provider.request(.send(0, to: topic, SendOptions())) }
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

    /// What may follow what, with several streams: each change once.
    private static func follows(
        _ state: ConnectionState,
        _ last: ConnectionState,
        hasOneStream: Bool
    ) -> Bool {
        switch (last, state) {
        case (.connecting(let old), .connecting(let new)): old != new
        case (.waiting(let old, _), .waiting(let new, _)): old != new
        // The last stream that was open has ended, and another one is asked for.
        case (.connected, .connecting): !hasOneStream
        case (.idle, .connecting(1)), (.idle, .waiting), (.idle, .disconnected),
            (.disconnected, .connecting(1)), (.disconnected, .waiting),
            (.connecting, .connected), (.connecting, .waiting), (.connecting, .disconnected),
            (.connected, .waiting), (.connected, .disconnected),
            (.waiting, .connecting), (.waiting, .disconnected):
            true
        default: false
        }
    }

    /// A server that says when to come again is not asked earlier.
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
    /// The number that must come next; nil for any.
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

    func take(_ message: Message) {
        take(message.number, message.id?.description)
    }

    func take(_ number: Int?, _ id: String?) {
        world.note("\(name) takes \(number ?? -1) of \(topic)")
        guard let number, let id = id.flatMap({ Int($0) }) else {
            return world.fail("\(name) has heard of \(topic) what nobody published")
        }
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
