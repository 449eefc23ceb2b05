import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

/// A broker for one test, a transport to it in one of the ways, and a clock that stands still.
final class Bench: Sendable {
    /// The settings of a test, which apply to every way.
    struct Plan {
        var reconnection = ReconnectionPolicy()
        var credentials: CredentialSource?
        var hints: [any ConnectionHintSource] = []
        var offlineQueue = OfflinePolicy()
        /// The timeouts of connecting and of acknowledgements; nil for the transport's defaults.
        var connectTimeout: Duration?
        var answerTimeout: Duration?
        /// True when keep-alives are on, with their defaults. Event streams may then be silent for 30 seconds.
        var keepsAlive = false
        /// The users that the broker accepts, with their passwords; empty for any user.
        var users: [String: String] = [:]
        /// Further settings. Without keep-alives, WebSockets send no pings either, unless these closures turn them
        /// on.
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

    /// The length of each wait unless a test sets another: half a second, below all ceilings.
    ///
    /// The clock moves by exactly this time. The work after the wait then has time limits of its own.
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
            clock: RememberingTimers(clock.linkTimers, deadlines),
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
            configuration.offline = plan.offlineQueue
            if !plan.keepsAlive {
                configuration.keepAlive.interval = .zero
                configuration.webSocket.pingInterval = nil
            }
            if let limit = plan.connectTimeout { configuration.timeouts.connect = limit }
            if let limit = plan.answerTimeout { configuration.timeouts.confirmation = limit }
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
            configuration.offline = plan.offlineQueue
            if !plan.keepsAlive {
                configuration.heartBeat.incoming = .zero
                configuration.heartBeat.outgoing = .zero
                configuration.webSocket.pingInterval = nil
            }
            if let limit = plan.connectTimeout { configuration.timeouts.connect = limit }
            if let limit = plan.answerTimeout { configuration.timeouts.confirmation = limit }
            plan.stomp(&configuration)
            return try STOMPTransport(
                url: url,
                configuration: configuration,
                environment: environment
            )
        }
        var configuration = SSEConfiguration()
        // The tests have many calls in flight at once.
        configuration.limits.connectionsPerHost = 64
        configuration.reconnection = plan.reconnection
        configuration.credentials = plan.credentials
        configuration.hints = plan.hints
        if plan.keepsAlive { configuration.timeouts.silence = .seconds(30) }
        if let limit = plan.connectTimeout { configuration.timeouts.connect = limit }
        if let limit = plan.answerTimeout { configuration.timeouts.confirmation = limit }
        plan.events(&configuration)
        return try SSETransport(url: url, configuration: configuration, environment: environment)
    }

    // MARK: The conversation

    /// Connects where that is a command, and subscribes.
    func open(_ topic: String = "room") async throws -> Messages<String> {
        if way != .events { try await provider.request(.connect) }
        return try await provider.messages(.listen(topic))
    }

    /// Sends a text, which must be the first that the stream gets.
    func deliver(
        _ text: String,
        to topic: String = "room",
        by messages: Messages<String>,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await provider.request(.say(text, to: topic))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == text, sourceLocation: sourceLocation)
    }

    /// Sets the wait after the next failure. It must not exceed the ceiling.
    func setWait(_ duration: Duration) {
        dice.withLock { $0 = UInt64(clamping: Int64(duration / .nanoseconds(1))) }
    }

    /// Makes the wait after the next failure as long as its ceiling if the ceiling has this value. Any other ceiling
    /// gives another wait.
    func setCeiling(_ ceiling: Duration) {
        dice.withLock {
            $0 = (UInt64(clamping: Int64(ceiling / .nanoseconds(1))) + 1) * 1_000_000 - 1
        }
    }

    /// Observes the states, starting with the current one.
    func watch() -> Watch { Watch(iterator: transport.states.makeAsyncIterator()) }

    /// Cuts the connection, and waits until the transport has noticed it.
    func lose(_ watch: inout Watch) async {
        broker.dropConnections()
        await watch.until("waiting")
    }

    /// Ends the wait, and waits until the transport is connected again.
    func comeBack(_ watch: inout Watch) async {
        clock.advance(by: Bench.wait)
        await watch.until("connected")
    }

    /// The number of timers so far that were set for this time after the current moment.
    func timerCount(after duration: Duration) -> Int {
        let now = clock.linkTimers.now
        return deadlines.withLock { deadlines in
            deadlines.count { $0 == now.advanced(by: duration) }
        }
    }

    /// Sends without a connection, and waits until the send is in the queue.
    func enqueue(_ text: String, timeout: Duration? = nil) async -> Call<Receipt> {
        let timeout = timeout ?? way.sendLimit
        let count = timerCount(after: timeout)
        let provider = provider
        let call = Call { try await provider.request(.say(text)) }
        await until { self.timerCount(after: timeout) > count }
        return call
    }

    /// Moves the clock to one nanosecond before the limit, when the call must still be running, and then to the
    /// limit.
    func pass<Value>(_ limit: Duration, endsAt call: Call<Value>) async {
        clock.advance(by: limit - .nanoseconds(1))
        await untilQuiet()
        #expect(!call.isDone, "\(limit)")
        clock.advance(by: .nanoseconds(1))
    }

    /// Moves the clock in small steps until the condition is true.
    /// - Returns: The time by which the clock was moved.
    func advance(
        inStepsOf step: Duration = .milliseconds(500),
        sourceLocation: SourceLocation = #_sourceLocation,
        until isDone: () -> Bool
    ) async -> Duration {
        let begin = clock.now
        while !isDone() {
            for _ in 0..<200 where !isDone() { await Task.yield() }
            if isDone() { break }
            // Lets tasks of other threads run, too.
            try? await Task.sleep(for: .milliseconds(1))
            if isTooLate(sourceLocation) { break }
            clock.advance(by: step)
        }
        return begin.duration(to: clock.now)
    }

    /// Ends the transport and the broker, even when the peer does not answer. A second call does nothing.
    func end() async {
        let isFirst = isEnded.withLock { isEnded in
            defer { isEnded = true }
            return !isEnded
        }
        guard isFirst else { return }
        let transport = transport
        // A test that has run out of time does not wait for the end.
        guard !Task.isCancelled else {
            broker.dropConnections()
            return
        }
        let call = Call { await transport.shutdown() }
        _ = await advance { call.isDone }
        await broker.stop()
    }

    // MARK: The broker's log

    /// The log from a client on: for each line, the first word with an arrow from the broker's point of view.
    func words(from client: Int = 1) -> [String] {
        lines.withLock { $0 }.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 3, let number = Int(words[1]), number >= client else { return nil }
            return "\(words[2]) \(words[3])"
        }
    }

    var log: [String] { lines.withLock { $0 } }

    /// The number of lines from a client on that begin with this word.
    func count(_ word: String, from client: Int = 1) -> Int {
        words(from: client).count { $0 == "← \(word)" }
    }

    /// The number of the latest client.
    var lastClient: Int {
        lines.withLock { $0 }.compactMap { line in
            let words = line.split(separator: " ")
            return words.count > 1 ? Int(words[1]) : nil
        }.max() ?? 0
    }
}

/// A value that several tasks change.
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

    /// The next state in words.
    mutating func next() async -> String { await iterator.next().map { "\($0)" } ?? "over" }

    /// Waits for a state whose text begins like this.
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

    /// Waits for the state "waiting", and returns the length of the wait.
    mutating func untilWaiting(
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Duration {
        let state = await until("waiting", sourceLocation: sourceLocation)
        guard case .waiting(let duration, _)? = state else { throw CancellationError() }
        return duration
    }
}

/// A call in its own task.
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

    /// Waits for the end. When the test has run out of time, the call is cancelled instead.
    private func finish(_ sourceLocation: SourceLocation) async {
        await until(sourceLocation: sourceLocation) { isDone }
        if !isDone { task.withLock { $0 }?.cancel() }
    }

    /// The error of the call; nil when it succeeded.
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

/// Waits until the condition is true.
func until(sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool) async {
    do { try await waitUntil(isSo) } catch {
        Issue.record("\(error)", sourceLocation: sourceLocation)
    }
}

/// True when the test has run out of time. Records an issue at the place that still waits.
func isTooLate(_ sourceLocation: SourceLocation) -> Bool {
    if Task.isCancelled { Issue.record("not so in time", sourceLocation: sourceLocation) }
    return Task.isCancelled
}

/// Casts the error to the package's type. Records an issue for any other error.
private func own(_ error: any Error, _ sourceLocation: SourceLocation) -> WaybillError? {
    let own = error as? WaybillError
    if own == nil { Issue.record(error, "no error of ours", sourceLocation: sourceLocation) }
    return own
}

/// The error of the body.
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
