import WaybillLink
import WireCore

/// A small world of its own: a network, hosts, a clock and chance, all of which a seed decides.
///
/// What a test runs in it needs no change: transports that are made as ever connect to the hosts of this world,
/// `Task.sleep`, `ContinuousClock` and `Date` follow its clock, and so do random numbers its seed.
///
/// `@unchecked Sendable`, because: it is used only by the tasks of the world, which all run on one thread.
public final class SimulatedWorld: @unchecked Sendable {
    let scheduler: SimulationScheduler
    let network: SimulatedNetwork
    private let reduction: SimulationReduction
    private var dice: SimulationDice
    private var brokerDice: SimulationDice
    private var conditions: [(name: String, holds: @Sendable () -> Bool)] = []
    private(set) var sizes: [String: Int] = [:]
    /// Called when the run's body has ended and what it has left has run out.
    private var lastChecks: [@Sendable (SimulatedWorld) -> Void] = []

    init(_ scheduler: SimulationScheduler, _ reduction: SimulationReduction) {
        self.scheduler = scheduler
        self.reduction = reduction
        network = SimulatedNetwork(scheduler, reduction)
        dice = SimulationDice(seed: scheduler.seed, use: 4)
        brokerDice = SimulationDice(seed: scheduler.seed, use: 5)
        scheduler.environment = LinkEnvironment(
            dialer: SimulatedDialer(network: network),
            clock: SimulatedClock(scheduler, isCalm: false),
            random: { [scheduler] in scheduler.libraryDice.next() }
        )
    }

    // MARK: What is there

    /// The seed.
    public var seed: UInt64 { scheduler.seed }

    /// How long this world has been there.
    public var elapsed: Duration { .nanoseconds(scheduler.now.nanoseconds) }

    /// Adds a broker for all protocols.
    ///
    /// - Parameters:
    ///   - hosts: The names that it is reached by; several are the nodes of one service.
    ///   - configure: Changes how it behaves.
    /// - Returns: The broker.
    public func broker(
        _ hosts: String...,
        configure: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) -> SimulatedBroker {
        var configuration = LoopbackBroker.Configuration()
        configure(&configuration)
        let environment = LinkEnvironment(
            dialer: SimulatedDialer(network: network),
            clock: SimulatedClock(scheduler, isCalm: true),
            random: { [self] in brokerDice.next() }
        )
        let broker = SimulatedBroker(
            hosts.isEmpty ? ["broker"] : hosts,
            LoopbackBroker(configuration: configuration, environment: environment),
            in: network
        )
        brokers.append(broker)
        planFaults(of: broker)
        return broker
    }

    private var brokers: [SimulatedBroker] = []
    /// The number of the plan by which brokers and hosts fail; those of earlier ones are void.
    private var faultPlan = 0

    // MARK: What goes wrong

    /// What goes wrong from now on; each run varies it by its seed.
    public var faults: SimulatedFaults {
        get { network.wantedFaults }
        set {
            network.setFaults(newValue)
            faultPlan += 1
            for broker in brokers { planFaults(of: broker) }
        }
    }

    /// How often another task runs where a lock of the package was opened, 0 to 1.
    ///
    /// Each run draws one for itself unless this is set. Only builds for debugging have it.
    public var preemption: Double {
        get { scheduler.preemption }
        set { scheduler.preemption = newValue }
    }

    /// Nothing goes wrong from now on.
    public func heal() {
        note("all is well from now on")
        network.heal()
    }

    private func planFaults(of broker: SimulatedBroker) {
        plan(.restart, every: network.faults.restarts) { broker.restart(keepingState: true) }
        plan(.loss, every: network.faults.losses) { broker.restart(keepingState: false) }
        for host in broker.hosts {
            plan(.outage, every: network.faults.outages) { [self] in strike(host) }
        }
    }

    private func strike(_ host: String) {
        note("\(host) cannot be reached")
        network.setReachable(false, host)
        let time = network.details.spread(.milliseconds(100) ... .seconds(30))
        _ = scheduler.schedule(after: time) { [network] in network.setReachable(true, host) }
    }

    private func plan(
        _ kind: SimulatedFaults.Kind,
        every mean: Duration?,
        _ action: @escaping @Sendable () -> Void
    ) {
        guard let mean, network.isFaulty else { return }
        let number = faultPlan
        _ = scheduler.schedule(after: network.dice.wait(mean: mean)) { [weak self] in
            guard let self, network.isFaulty, number == faultPlan else { return }
            if network.happens(kind, 100) { action() }
            plan(kind, every: mean, action)
        }
    }

    // MARK: Chance

    /// A number that the seed decides.
    public func random(_ range: ClosedRange<Int>) -> Int {
        let width = UInt64(bitPattern: Int64(range.upperBound &- range.lowerBound))
        let number = width == .max ? dice.next() : dice.next() % (width + 1)
        return range.lowerBound &+ Int(truncatingIfNeeded: number)
    }

    /// A time that the seed decides.
    public func random(_ range: ClosedRange<Duration>) -> Duration {
        dice.duration(range)
    }

    /// One of several; the seed decides which.
    public func pick<Value>(_ values: Value...) -> Value {
        dice.pick(values)
    }

    /// Whether something happens that happens so often, 0 to 1; the seed decides.
    public func chance(_ probability: Double) -> Bool {
        dice.chance(probability)
    }

    /// The size of a part of the run, such as the number of clients: as given, or smaller while the smallest run that fails is
    /// looked for.
    ///
    /// - Parameters:
    ///   - name: What it is the size of.
    ///   - full: The size of a whole run.
    /// - Returns: The size for this run.
    public func size(of name: String, _ full: Int) -> Int {
        sizes[name] = full
        return min(reduction.sizes[name] ?? full, full)
    }

    // MARK: What must hold

    /// Writes a line into the trace that a failure shows.
    public func note(_ text: @autoclosure () -> String) {
        // A recorded run must be the same as one that is not: what makes the text runs alone.
        scheduler.calmly { scheduler.trace.note(text(), at: scheduler.now) }
    }

    /// Ends the run, and has it fail with this text, unless the condition holds.
    public func expect(_ condition: Bool, _ text: @autoclosure () -> String) {
        if !condition || !scheduler.isCurrent { fail(text()) }
    }

    /// Ends the run, and has it fail with this text.
    public func fail(_ text: String) {
        guard scheduler.isCurrent else { return scheduler.watch.noteEscape() }
        scheduler.violate(text)
    }

    /// Looks after each step of the run whether a condition holds.
    public func always(_ name: String, _ condition: @escaping @Sendable () -> Bool) {
        conditions.append((name, condition))
    }

    /// Looks at something when the body has ended and all that it has left behind has run out.
    public func finally(_ check: @escaping @Sendable (SimulatedWorld) -> Void) {
        lastChecks.append(check)
    }

    func checkConditions() {
        guard !conditions.isEmpty else { return }
        scheduler.calmly {
            for condition in conditions where !condition.holds() {
                scheduler.violate("no longer: \(condition.name)")
            }
        }
    }

    func checkEnd() {
        scheduler.calmly {
            for check in lastChecks { check(self) }
        }
    }

    // MARK: Waiting

    /// Sleeps until a condition holds.
    ///
    /// - Parameters:
    ///   - what: What is waited for, in the words of a failure.
    ///   - limit: How long it may take.
    ///   - condition: Looked at ten times a second.
    /// - Throws: `CancellationError` when it did not hold in time, which has failed the run, or the task was cancelled.
    public func wait(
        for what: String,
        within limit: Duration,
        until condition: @Sendable () -> Bool
    ) async throws {
        let end = scheduler.now.advanced(by: limit)
        while !condition() {
            guard scheduler.now < end else {
                fail("not within \(limit): \(what)")
                throw CancellationError()
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Waits until the faults are over, and then until every client is well.
    ///
    /// No transport connects any more or waits for its next attempt, no client has a broken connection that it takes for
    /// a good one, no byte is under way, and no task can run. A transport that the app has paused, disconnected or never
    /// connected is well.
    ///
    /// - Parameter limit: How long the clients may take after the faults.
    /// - Throws: As ``wait(for:within:until:)``.
    public func recover(within limit: Duration) async throws {
        let rest = network.faults.until - elapsed
        if rest > .zero { try await Task.sleep(for: rest) }
        heal()
        let end = scheduler.now.advanced(by: limit)
        // What happens to a connection reaches its ends before the second look.
        var looks = 0
        while looks < 2 {
            let trouble = trouble
            looks = trouble == nil ? looks + 1 : 0
            guard looks == 2 || scheduler.now < end else {
                let reason = trouble ?? "well, but only at the last look"
                fail("not within \(limit): every client is well (\(reason))")
                throw CancellationError()
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// What a client still has to get over, in words; nil when all are well.
    private var trouble: String? {
        scheduler.calmly {
            let seeking = scheduler.seekingCount
            if seeking > 0 { return "transports without the connection that they want: \(seeking)" }
            let broken = network.brokenCount
            if broken > 0 { return "broken connections whose clients do not know: \(broken)" }
            let bytes = network.byteCountUnderWay
            if bytes > 0 { return "bytes under way: \(bytes)" }
            return scheduler.isQuiet ? nil : "tasks that can run"
        }
    }

    /// Lets go of all that would keep the world alive.
    func dissolve() {
        conditions = []
        lastChecks = []
        brokers = []
        network.dissolve()
        scheduler.environment = nil
    }
}

extension SimulatedWorld: CustomReflectable {
    /// Nothing: its brokers know passwords.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
