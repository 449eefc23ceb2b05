import Waybill
import WaybillTesting

/// One app in a workload: it sends, subscribes, pauses and disconnects. It is checked all the time.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulatedClient: @unchecked Sendable {
    /// The number of messages that each lane sends.
    private let laneLength: Int
    let name: String
    let world: SimulatedWorld
    let service: SimulatedService
    let ledger: SimulationLedger
    let tokens: SimulatedTokens
    let transport: SimulatedTransport
    let provider: Provider<SimulatedEntry>
    /// True when the app must only listen.
    var isIdle = false
    /// True when the app must end.
    var isStopping = false
    /// True when all messages have been sent.
    private(set) var hasSentAll = false
    private(set) var isConnected = false
    /// True when the last pause has begun. A pause that began after its `resume()` would not end.
    private var isPausing = false
    /// The packets that it has sent and received.
    let log: SimulatedLog
    private var listening: Set<String> = []
    /// True after the app has disconnected, which ends its streams. They miss the messages of that time.
    private(set) var hasDisconnected = false
    /// True when a message of QoS 2 has failed because the connection ended with it again and again. Its packet identifier
    /// stays in use as long as the session.
    private(set) var hasFailedMessage = false
    private var consumers: [Task<Void, Never>] = []
    /// The longest time for one message. Some apps cannot keep up.
    private let longestPause: Duration
    /// The topics of the subscriptions that last from beginning to end.
    let listensTo: [(topic: String, qos: QoS)]

    init(
        _ number: Int,
        _ service: SimulatedService,
        to broker: SimulatedBroker,
        in world: SimulatedWorld,
        _ ledger: SimulationLedger,
        _ laneLength: Int
    ) throws {
        self.laneLength = laneLength
        name = "c\(number)"
        self.world = world
        self.service = service
        self.ledger = ledger
        tokens = SimulatedTokens(world)
        let log = SimulatedLog(name, world)
        self.log = log
        longestPause = service.isMQTT && world.chance(0.3) ? .seconds(40) : .seconds(2)
        let qualities: [QoS] =
            service.isMQTT ? [.atLeastOnce, .exactlyOnce] : [.atLeastOnce]
        let title = name
        listensTo = qualities.map { (service.topic("to-\(title)-\($0)"), $0) }
        // Either the transport gets its tokens from a source, or an interceptor adds them to each CONNECT.
        let hasInterceptor = world.chance(0.5)
        transport = try SimulatedTransport(
            service,
            to: broker,
            as: name,
            with: hasInterceptor ? nil : tokens.source,
            in: world,
            log: ClosureWireLogger { [log] record in log.note(record) }
        )
        let plain = Provider<SimulatedEntry>(transport: transport.transport)
        provider = hasInterceptor ? plain.intercepted(tokens.interceptor) : plain
    }

    /// Runs until it is told to stop, then closes everything.
    func run() async throws {
        let states = Task { await watchStates() }
        let failures = Task { await watchFailures() }
        for (topic, qos) in listensTo { await listen(topic, qos) }
        if service.hasReplies { await answer() }
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<world.size(of: "lanes", 3) {
                group.addTask { await self.send(lane) }
            }
            group.addTask { await self.changeSubscriptions() }
            if self.service.hasReplies { group.addTask { await self.ask() } }
            group.addTask { await self.changeMind() }
            // The senders end by themselves. The other tasks end when they are told to.
            for _ in 0..<world.size(of: "lanes", 3) { await group.next() }
            hasSentAll = true
            await group.waitForAll()
        }
        while !isStopping { await rest(.seconds(2)) }
        if world.chance(0.5) { _ = try? await provider.request(.command(.disconnect)) }
        await transport.transport.shutdown()
        for consumer in consumers { await consumer.value }
        states.cancel()
        failures.cancel()
        await states.value
        await failures.value
    }

    // MARK: Pauses

    private func rest(_ longest: Duration) async {
        try? await Task.sleep(for: world.random(.zero...longest))
    }

    // MARK: Sending

    private func send(_ lane: Int) async {
        let qos = service.qualities[lane % service.qualities.count]
        let topic = service.passingTopic("from-\(name)-\(lane)")
        ledger.open(service.brokerTopic(topic), qos)
        for number in 0..<world.size(of: "messages", laneLength) {
            var command = EntryCommand.send(qos: qos)
            if world.chance(0.1) {
                command[.timeout] = .milliseconds(world.random(50...3_000))
            }
            await send(number, topic, command, canBeCancelled: true)
            if world.chance(0.5) { await rest(.seconds(4)) }
        }
    }

    /// Sends once more in each lane, which must succeed in spite of the earlier faults.
    func sendProbes() async {
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<world.size(of: "lanes", 3) {
                group.addTask {
                    let qos = self.service.qualities[lane % self.service.qualities.count]
                    let topic = self.service.passingTopic("from-\(self.name)-\(lane)")
                    await self.send(SimulationLedger.firstProbe, topic, .send(qos: qos))
                }
            }
        }
    }

    private func send(
        _ number: Int,
        _ topic: String,
        _ command: EntryCommand,
        canBeCancelled: Bool = false
    ) async {
        await ledger.send(
            number,
            to: service.brokerTopic(topic),
            within: (command[.timeout] ?? transport.acknowledgementTimeout) * 2 + .seconds(120),
            mustSucceed: command[.timeout] == nil
        ) {
            try await request(number, topic, command, canBeCancelled)
        }
    }

    private func request(
        _ number: Int,
        _ topic: String,
        _ command: EntryCommand,
        _ canBeCancelled: Bool
    ) async throws {
        let provider = provider
        let call = Task {
            try await provider.request(.send(number, to: topic, command))
        }
        var canceller: Task<Void, Never>?
        if canBeCancelled, world.chance(0.05) {
            canceller = Task {
                await rest(.seconds(1))
                call.cancel()
            }
        }
        let result = await call.result
        canceller?.cancel()
        _ = try result.get()
    }

    // MARK: Listening

    /// True when all further messages of a topic must reach the app.
    func hasBegunToListen(to topic: String) -> Bool {
        listening.contains(topic)
    }

    /// Subscribes to a topic and keeps the stream, whatever happens to the connection.
    private func listen(_ topic: String, _ qos: QoS) async {
        if !hasBegunToListen(to: topic) {
            ledger.open(topic, qos, listener: service.isMQTT ? name : nil)
        }
        while !isStopping {
            do {
                let command = service.subscribe(qos)
                let messages = try await provider.messages(.command(command, topic: topic))
                if !listening.insert(topic).inserted { ledger.beginAnotherStream(of: topic) }
                consumers.append(Task { await self.consume(messages, topic, qos) })
                return
            } catch {
                world.note("\(name) cannot listen to \(topic): \(error)")
                checkPassing(error, "a subscription")
                await rest(.seconds(2))
            }
        }
    }

    private func consume(
        _ messages: Messages<Message>,
        _ topic: String,
        _ qos: QoS
    ) async {
        do {
            for try await message in messages {
                world.note("\(name) takes \(message.number ?? -1) of \(topic)")
                ledger.arrive(message.number, at: topic)
                if world.chance(0.2) { await rest(isIdle ? .seconds(2) : longestPause) }
            }
            guard !isStopping else { return }
            world.expect(hasDisconnected, "\(name): the stream of \(topic) has ended")
            await listen(topic, qos)
        } catch {
            if !isStopping { world.fail("\(name): the stream of \(topic) has failed: \(error)") }
        }
    }

    /// Subscribes to topics for a while.
    private func changeSubscriptions() async {
        while !isIdle {
            await rest(.seconds(5))
            let topic = service.passingTopic("x\(world.random(0...2))")
            do {
                let command: EntryCommand = .subscribe(qos: world.pick(.atMostOnce, .atLeastOnce))
                let messages = try await provider.messages(.command(command, topic: topic))
                let reader = Task {
                    for try await message in messages {
                        world.note("\(name) hears \(message.number ?? -1) of \(topic)")
                    }
                }
                await rest(.seconds(5))
                if world.chance(0.5) { reader.cancel() } else { messages.cancel() }
                do { try await reader.value } catch is CancellationError {}
            } catch {
                checkPassing(error, "a passing subscription")
            }
        }
    }

    /// Checks that the network or an expired token can have caused the error.
    private func checkPassing(_ error: any Error, _ what: String) {
        let passing: [WaybillError.Code] = [
            .connectionLost, .connectionRefused, .notConnected, .timedOut, .unauthorized,
        ]
        guard let error = error as? WaybillError, passing.contains(error.code) else {
            return world.fail("\(name): \(what) was told \(error)")
        }
        ledger.count("\(what): \(error.code)")
    }

    // MARK: Questions

    private static func questions(to name: String, _ service: SimulatedService) -> String {
        service.topic("ask-\(name)")
    }

    /// Answers the requests of the other apps with the number that each contains.
    private func answer() async {
        let topic = Self.questions(to: name, service)
        consumers.append(
            Task {
                while !isStopping {
                    do {
                        let command = service.subscribe(.atLeastOnce)
                        let questions = try await provider.messages(
                            .command(command, topic: topic)
                        )
                        for try await question in questions { await reply(to: question) }
                    } catch {
                        checkPassing(error, "a subscription to questions")
                    }
                    await rest(.seconds(2))
                }
            }
        )
    }

    private func reply(to question: Message) async {
        do {
            try await provider.request(
                .command(
                    .reply(to: question, qos: .atLeastOnce),
                    topic: question.replyTopic,
                    body: .bytes(question.body.bytes)
                )
            )
        } catch {
            checkPassing(error, "an answer")
        }
    }

    /// Sends requests to the other apps.
    private func ask() async {
        for number in 0..<world.size(of: "questions", 5) where !isIdle {
            await rest(.seconds(10))
            let topic = Self.questions(to: "c\(world.random(0...1))", service)
            var command = EntryCommand.send(qos: .atLeastOnce)
            command[.timeout] = .seconds(world.random(1...30))
            do {
                let reply = try await provider.request(
                    .send(number, to: topic, command),
                    as: Message.self
                )
                world.expect(
                    reply.number == number,
                    "\(name) has asked \(number) and was answered \(reply.number ?? -1)"
                )
                ledger.count("answered")
            } catch {
                checkPassing(error, "a question")
            }
        }
    }

    // MARK: The app's whims

    private func changeMind() async {
        while !isIdle, world.elapsed < world.faults.until {
            await rest(.seconds(30))
            guard !isIdle, world.elapsed < world.faults.until else { return }
            guard world.chance(0.2) else {
                world.note("\(name) pauses")
                // The pause may be over before the connection is closed.
                let transport = transport
                isPausing = false
                let pause = Task {
                    isPausing = true
                    await transport.pause()
                }
                while !isPausing { await rest(.milliseconds(1)) }
                if world.chance(0.7) { await pause.value }
                await rest(world.pick(.milliseconds(50), .seconds(3)))
                transport.resume()
                await pause.value
                continue
            }
            world.note("\(name) disconnects")
            hasDisconnected = true
            do {
                try await provider.request(.command(.disconnect))
                await rest(.seconds(3))
                try await provider.request(.command(.connect))
            } catch {
                checkPassing(error, "a connect of the app's own")
            }
        }
    }

    // MARK: States

    private func watchStates() async {
        var last: ConnectionState?
        for await state in provider.states {
            world.note("\(name) is \(state)")
            if let last, !Self.follows(state, last) {
                world.fail("\(name): \(state) follows \(last)")
            }
            if case .waiting(_, let cause) = state { ledger.checkUnbroken(cause, name) }
            last = state
            if case .connected = state { isConnected = true } else { isConnected = false }
            if isConnected { ledger.inform(name) }
        }
    }

    private func watchFailures() async {
        for await event in provider.events {
            guard event.kind == .sendFailed, event.error?.code == .rejected,
                event.qos == .exactlyOnce
            else { continue }
            hasFailedMessage = true
        }
    }

    /// The table of states in the documentation of ``ConnectionState``.
    private static func follows(_ state: ConnectionState, _ last: ConnectionState) -> Bool {
        switch (last, state) {
        case (.idle, .connecting(1)), (.connecting, .connected), (.connecting, .disconnected),
            (.connecting, .waiting), (.connected, .waiting), (.connected, .disconnected),
            (.waiting, .connecting), (.waiting, .disconnected), (.disconnected, .connecting(1)),
            (.disconnected, .waiting), (.idle, .disconnected), (.connecting, .paused),
            (.connected, .paused), (.waiting, .paused), (.paused, .connecting),
            (.paused, .disconnected), (.idle, .paused), (.disconnected, .paused):
            true
        default: false
        }
    }
}

/// A log of the packets, frames or requests of one client.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulatedLog: @unchecked Sendable {
    private let name: String
    private let world: SimulatedWorld
    /// The number of sent ones of each kind.
    private(set) var sent: [Substring: Int] = [:]

    init(_ name: String, _ world: SimulatedWorld) {
        self.name = name
        self.world = world
    }

    func note(_ record: WireRecord) {
        let isSent = record.direction == .outbound
        world.note("\(name) \(isSent ? "→" : "←") \(record.text)")
        if isSent { sent[record.text.prefix { $0 != " " }, default: 0] += 1 }
    }
}
