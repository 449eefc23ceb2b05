import Foundation
import Testing
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

/// A broker of one's own, a transport to it by one of the ways, and a clock that stands still.
final class Bench: Sendable {
    /// What a test wants otherwise, whatever the way.
    struct Plan {
        var reconnection = ReconnectionPolicy()
        var credentials: CredentialSource?
        var hints: [any ConnectionHintSource] = []
        var offlineQueue = OfflineQueuePolicy()
        /// How long connecting, and acknowledgements, may take; nil for the transport's defaults.
        var connectTimeout: Duration?
        var answerTimeout: Duration?
        /// Whether signs of life are asked for, by the defaults; event streams may be silent for 30 seconds then.
        var keepsAlive = false
        /// Whom the broker lets in; nil for everybody.
        var users: [String: String] = [:]
        /// Further wishes; where no signs of life are asked for, WebSockets send no pings either, unless these say so.
        var broker: (inout LoopbackBroker.Configuration) -> Void = { _ in }
        var mqtt: (inout MQTTConfiguration) -> Void = { _ in }
        var stomp: (inout STOMPConfiguration) -> Void = { _ in }
        var events: (inout SSEConfiguration) -> Void = { _ in }
    }

    let way: Way
    let broker: LoopbackBroker
    let clock = ManualClock()
    let dialer = BenchDialer()
    let transport: any Transport
    let provider: Provider<Talk>
    private let dice: Kept<UInt64>
    private let lines: Kept<[String]>
    private let deadlines: Kept<[WireInstant]>
    private let isEnded = Kept(false)

    /// How long each wait is unless a test says otherwise: half a second, below all ceilings.
    ///
    /// The clock is moved by just that: what follows the wait has begun then and has time limits of its own.
    static let wait = Duration.milliseconds(500)

    init(_ way: Way, _ change: (inout Plan) -> Void = { _ in }) throws {
        self.way = way
        var plan = Plan()
        change(&plan)
        let lines = Kept([String]())
        self.lines = lines
        let dice = Kept(UInt64(500_000_000))
        self.dice = dice
        var configuration = LoopbackBroker.Configuration()
        configuration.credentials = plan.users
        configuration.log = { line in lines.withLock { $0.append(line) } }
        plan.broker(&configuration)
        broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        let deadlines = Kept([WireInstant]())
        self.deadlines = deadlines
        let clock = clock
        let environment = LinkEnvironment(
            dialer: dialer,
            makeTimers: { RememberingTimers(clock.linkTimers, deadlines) },
            random: { dice.withLock { $0 } }
        )
        let url = broker.url(for: way.service)
        let transport = try Self.transport(way, url, plan, environment)
        self.transport = transport
        provider = Provider(transport: transport)
        BenchesEnd.note(self)
    }

    private static func transport(
        _ way: Way,
        _ url: String,
        _ plan: Plan,
        _ environment: LinkEnvironment
    ) throws -> any Transport {
        let url = try #require(URL(string: url))
        if way.isMQTT {
            var configuration = MQTTConfiguration(version: way == .mqtt311 ? .v3_1_1 : .v5)
            configuration.reconnection = plan.reconnection
            configuration.credentials = plan.credentials
            configuration.hints = plan.hints
            configuration.offlineQueue = plan.offlineQueue
            if !plan.keepsAlive {
                configuration.keepAlive = .zero
                configuration.webSocket.pingInterval = nil
            }
            if let limit = plan.connectTimeout { configuration.connectTimeout = limit }
            if let limit = plan.answerTimeout { configuration.acknowledgementTimeout = limit }
            plan.mqtt(&configuration)
            return try MQTTTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        }
        if way.isSTOMP {
            var configuration = STOMPConfiguration()
            configuration.reconnection = plan.reconnection
            configuration.credentials = plan.credentials
            configuration.hints = plan.hints
            configuration.offlineQueue = plan.offlineQueue
            if !plan.keepsAlive {
                configuration.incomingHeartBeat = .zero
                configuration.outgoingHeartBeat = .zero
                configuration.webSocket.pingInterval = nil
            }
            if let limit = plan.connectTimeout { configuration.connectTimeout = limit }
            if let limit = plan.answerTimeout { configuration.receiptTimeout = limit }
            plan.stomp(&configuration)
            return try STOMPTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        }
        var configuration = SSEConfiguration()
        // Many calls are to be under way at once.
        configuration.maximumConnectionsPerHost = 64
        configuration.reconnection = plan.reconnection
        configuration.credentials = plan.credentials
        configuration.hints = plan.hints
        if plan.keepsAlive { configuration.idleTimeout = .seconds(30) }
        if let limit = plan.connectTimeout { configuration.connectTimeout = limit }
        if let limit = plan.answerTimeout { configuration.responseTimeout = limit }
        plan.events(&configuration)
        return try SSETransport(url: url, configuration: configuration, environment: environment)
    }

    // MARK: The conversation

    /// Connects, and subscribes: what any way can do.
    func open(_ topic: String = "room") async throws -> Messages<String> {
        if way != .events { try await provider.request(.connect) }
        return try await provider.messages(.listen(topic))
    }

    /// The wait that follows the next failure, as long as it is no longer than its ceiling.
    func setWait(_ duration: Duration) {
        dice.withLock { $0 = UInt64(clamping: Int64(duration / .nanoseconds(1))) }
    }

    /// The wait that follows the next failure: its ceiling, if the ceiling is this, and something else for any other.
    func setCeiling(_ ceiling: Duration) {
        dice.withLock {
            $0 = (UInt64(clamping: Int64(ceiling / .nanoseconds(1))) + 1) * 1_000_000 - 1
        }
    }

    /// Observes the states, the present one first.
    func watch() -> Watch { Watch(iterator: transport.states.makeAsyncIterator()) }

    /// Cuts the link, and waits until that has been noticed.
    func lose(_ watch: inout Watch) async {
        broker.dropConnections()
        await watch.until("waiting")
    }

    /// Lets the wait pass, and waits until the link is back.
    func comeBack(_ watch: inout Watch) async {
        clock.advance(by: Bench.wait)
        await watch.until("connected")
    }

    /// How many timers were ever set for so long after this moment.
    func timerCount(after duration: Duration) -> Int {
        let now = clock.linkTimers.now
        return deadlines.withLock { deadlines in
            deadlines.count { $0 == now.advanced(by: duration) }
        }
    }

    /// Sends while there is no link, and waits until that is in the queue.
    func enqueue(_ text: String, patience: Duration? = nil) async -> Call<Receipt> {
        let patience = patience ?? way.sendLimit
        let count = timerCount(after: patience)
        let provider = provider
        let call = Call { try await provider.request(.say(text)) }
        await until { self.timerCount(after: patience) > count }
        return call
    }

    /// Moves the clock on to one nanosecond before a limit, where nothing must have happened yet, and beyond it.
    func pass<Value>(_ limit: Duration, endsAt call: Call<Value>) async {
        clock.advance(by: limit - .nanoseconds(1))
        await settle()
        #expect(!call.isDone, "\(limit)")
        clock.advance(by: .nanoseconds(1))
    }

    /// Moves the clock on in small steps until something is done.
    /// - Returns: How far it had to be moved.
    func advance(
        inStepsOf step: Duration = .milliseconds(500),
        sourceLocation: SourceLocation = #_sourceLocation,
        until isDone: () -> Bool
    ) async -> Duration {
        let begin = clock.now
        while !isDone() {
            for _ in 0..<200 where !isDone() { await Task.yield() }
            if isDone() { break }
            // Those of other threads, too, have their turns.
            try? await Task.sleep(for: .milliseconds(1))
            if isTooLate(sourceLocation) { break }
            clock.advance(by: step)
        }
        return begin.duration(to: clock.now)
    }

    /// Ends everything; a peer that does not answer holds nothing up. Doing it twice does nothing more.
    func end() async {
        let isFirst = isEnded.withLock { isEnded in
            defer { isEnded = true }
            return !isEnded
        }
        guard isFirst else { return }
        let transport = transport
        // Nobody waits for the end of a test that is out of time.
        guard !Task.isCancelled else {
            broker.dropConnections()
            return
        }
        let call = Call { await transport.shutdown() }
        _ = await advance { call.isDone }
        await broker.stop()
    }

    // MARK: The broker's log

    /// What a client and the broker said to each other, from a client on: its first words, with an arrow as the
    /// broker sees them.
    func words(from client: Int = 1) -> [String] {
        lines.withLock { $0 }.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 3, let number = Int(words[1]), number >= client else { return nil }
            return "\(words[2]) \(words[3])"
        }
    }

    /// All lines.
    var log: [String] { lines.withLock { $0 } }

    /// How many lines there are whose first word is this one, from a client on.
    func count(_ word: String, from client: Int = 1) -> Int {
        words(from: client).count { $0 == "← \(word)" }
    }

    /// The number of the client that came last.
    var lastClient: Int {
        lines.withLock { $0 }.compactMap { line in
            let words = line.split(separator: " ")
            return words.count > 1 ? Int(words[1]) : nil
        }.max() ?? 0
    }
}

/// A value that several tasks work on.
final class Kept<Value: Sendable>: Sendable {
    private let value: Locked<Value>

    init(_ value: Value) { self.value = Locked(value) }

    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        value.withLock { body(&$0) }
    }
}

/// An observer of the states.
struct Watch {
    var iterator: ConnectionStates.AsyncIterator

    /// The next state, in words.
    mutating func next() async -> String { await iterator.next().map { "\($0)" } ?? "over" }

    /// Waits for a state by its first words.
    @discardableResult
    mutating func until(
        _ words: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> ConnectionState? {
        while let state = await iterator.next() {
            if "\(state)".hasPrefix(words) { return state }
        }
        Issue.record("never \(words)", sourceLocation: sourceLocation)
        return nil
    }

    /// Waits for a wait, and until when it is.
    mutating func untilWaiting(
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ContinuousClock.Instant {
        let state = await until("waiting", sourceLocation: sourceLocation)
        guard case .waiting(let end, _)? = state else { throw CancellationError() }
        return end
    }
}

/// A call under way.
final class Call<Value: Sendable>: Sendable {
    private let outcome = Locked<[Result<Value, any Error>]>([])
    private let task = Locked<Task<Void, Never>?>(nil)

    init(_ body: @escaping @Sendable () async throws -> Value) {
        let task = Task { [self] in
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.withLock { $0.append(result) }
        }
        self.task.withLock { $0 = task }
    }

    var isDone: Bool { outcome.withLock { !$0.isEmpty } }

    /// Waits for the end; the call is cancelled, and not waited for, when the test is out of time.
    private func finish(_ sourceLocation: SourceLocation) async {
        await until(sourceLocation: sourceLocation) { isDone }
        if !isDone { task.withLock { $0 }?.cancel() }
    }

    /// How it ended: nil for well.
    func error(sourceLocation: SourceLocation = #_sourceLocation) async -> WaybillError? {
        await finish(sourceLocation)
        guard case .failure(let error)? = outcome.withLock({ $0.first }) else { return nil }
        return own(error, sourceLocation)
    }

    func value(sourceLocation: SourceLocation = #_sourceLocation) async throws -> Value {
        await finish(sourceLocation)
        return try #require(outcome.withLock { $0.first }).get()
    }
}

/// Waits until something is so.
func until(sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool) async {
    do { try await waitUntil(isSo) } catch {
        Issue.record("not so in time", sourceLocation: sourceLocation)
    }
}

/// Whether the test is out of time, which is an issue at the place that still waits.
func isTooLate(_ sourceLocation: SourceLocation) -> Bool {
    if Task.isCancelled { Issue.record("not so in time", sourceLocation: sourceLocation) }
    return Task.isCancelled
}

/// The error as the package's own; any other is an issue.
private func own(_ error: any Error, _ sourceLocation: SourceLocation) -> WaybillError? {
    let own = error as? WaybillError
    if own == nil { Issue.record(error, "no error of ours", sourceLocation: sourceLocation) }
    return own
}

/// What a call fails with.
func failure<T>(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> T
) async -> WaybillError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return own(error, sourceLocation)
    }
}
