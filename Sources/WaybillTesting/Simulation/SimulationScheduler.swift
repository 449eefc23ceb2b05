import CWaybillSimulation
import Waybill
import WaybillLink
import WireCore

/// A job of Swift's, and the executor that it was meant for.
struct SimulatedJob: Sendable {
    let job: UnownedJob
    /// Whether it is a task's; if not, it is the turn of an actor, which runs the tasks that wait for the actor.
    let isTask: Bool
    let runsOnMain: Bool

    init(_ job: UnownedJob, isTask: Bool, runsOnMain: Bool) {
        self.job = job
        self.isTask = isTask
        self.runsOnMain = runsOnMain
    }
}

/// What runs next in a simulated world, and what time it is there.
///
/// Everything runs on one thread: the jobs of tasks, and the callbacks of timers and of the network, which stand for one
/// event loop. Which of them is next, the seed says.
///
/// `@unchecked Sendable`, because: only the thread that simulates touches it, between `enter` and `leave`; what comes
/// from another thread goes to `SimulationEscapes`, behind a lock.
final class SimulationScheduler: @unchecked Sendable {
    /// Which of those that could run does.
    enum Order: CaseIterable {
        /// Any.
        case random
        /// The job that has waited longest.
        case first
        /// The job that came last, so that some wait very long.
        case last
        /// Sometimes one, sometimes the other.
        case mixed
        /// Each task has a rank, and the highest runs; ranks change now and then.
        case ranked
    }

    /// The states of a transport that was made in this world.
    private struct Connection {
        weak var states: ConnectionStateSource?
    }

    /// A task that waits in the package.
    private struct Wait {
        let task: UInt64?
        let name: String?
        let reason: String

        var words: String {
            let task =
                switch task {
                case 0: "the body"
                case let task?: "task \(task)"
                case nil: "a task on an actor"
                }
            return "\(task)\(name.map { " \"\($0)\"" } ?? "") waits for \(reason)"
        }
    }

    let seed: UInt64
    private let order: Order
    /// The longest that a job takes, in nanoseconds.
    private let jobCost: Int64
    /// How far the loop's idea of the time may lag behind, in nanoseconds.
    private let granularity: Int64
    private var dice: SimulationDice
    /// For what the library draws.
    var libraryDice: SimulationDice
    /// How often another job runs where a lock was opened.
    var preemption = 0.0

    private(set) var now = WireInstant.zero
    private var lastEvent = WireInstant.zero
    private var ready: [SimulatedJob] = []
    private var events = TimerQueue()
    private var ranks: [UInt64: UInt64] = [:]
    private var numbers: [UInt64: UInt64] = [:]
    /// The numbers of the tasks that were ever here.
    private(set) var tasks: [UInt64] = []
    /// Sees what leaves the world.
    let watch = SimulationEscapes.begin()
    /// What wakes the tasks that sleep, by number; that of a sleep that was cancelled stays until it is due.
    private var sleepers: [UInt64: SimulatedJob] = [:]
    private var lastSleeper: UInt64 = 0
    /// How many timers of links wait.
    var timerCount = 0
    /// What stands for the system in this world.
    var environment: LinkEnvironment?
    private var connections: [Connection] = []
    /// What tasks wait for in the package, by the number of the wait.
    private var waits: [UInt64: Wait] = [:]
    private var lastWait: UInt64 = 0
    /// The number of the task that runs; nil for one that runs in the turn of an actor.
    private var runningTask: UInt64?

    private var lockDepth = 0
    private var nesting = 0
    private var loopDepth = 0
    private var mainDepth = 0
    /// Above zero nothing is preempted: what runs is part of the world and not of what is tested.
    private var calmDepth = 0

    private(set) var hash: UInt64 = 0x6A09_E667_F3BC_C908
    private(set) var jobCount = 0
    private(set) var eventCount = 0
    private(set) var preemptionCount = 0
    private(set) var violations: [String] = []
    let trace: SimulationTrace

    init(seed: UInt64, preemption: Double, isRecorded: Bool) {
        self.seed = seed
        self.preemption = preemption
        trace = SimulationTrace(isRecording: isRecorded)
        var dice = SimulationDice(seed: seed, use: 1)
        order = dice.pick(Order.allCases)
        jobCost = dice.pick([0, 1_000, 20_000, 300_000])
        granularity = dice.pick([1, 1_000_000, 4_000_000])
        self.dice = dice
        libraryDice = SimulationDice(seed: seed, use: 2)
    }

    /// The time as a loop knows it, which looks at the clock once for all that it does in a turn.
    var loopNow: WireInstant {
        max(lastEvent, WireInstant(nanoseconds: now.nanoseconds / granularity * granularity))
    }

    var isOnMain: Bool { mainDepth > 0 }

    /// Whether the calling thread simulates this world.
    var isCurrent: Bool { Self.current === self }

    // MARK: What is told

    /// Notes that something must not be; the run ends.
    func violate(_ text: String) {
        violations.append(text)
        trace.note("VIOLATION: \(text)", at: now)
    }

    func mix(_ value: UInt64) {
        hash = (hash ^ value) &* 0x0000_0100_0000_01B3
        hash ^= hash >> 29
    }

    // MARK: What waits

    /// Notes that the running task waits in the package.
    /// - Returns: The number of the wait.
    func beginWait(_ reason: String, name: String?) -> UInt64 {
        lastWait += 1
        waits[lastWait] = Wait(task: runningTask, name: name, reason: reason)
        return lastWait
    }

    /// Adds to a failure the tasks that wait, without filling its trace.
    func tellWaits() {
        let words = waits.sorted { $0.key < $1.key }.map(\.value.words)
        violations += words.prefix(Self.toldWaitCount)
        let rest = words.count - Self.toldWaitCount
        if rest > 0 { violations.append("and \(rest) more") }
    }

    private static let toldWaitCount = 20

    func endWait(_ wait: UInt64) {
        waits[wait] = nil
    }

    /// Notes the states of a transport that was made.
    func note(_ states: ConnectionStateSource) {
        connections.removeAll { $0.states == nil }
        connections.append(Connection(states: states))
    }

    /// The number of transports that connect, or wait for their next attempt.
    var seekingCount: Int {
        connections.count { $0.states?.isSeeking == true }
    }

    func enqueue(_ job: SimulatedJob) {
        let task = job.task
        if numbers[task] == nil {
            numbers[task] = UInt64(numbers.count)
            if job.isTask {
                tasks.append(task)
                calmly { SimulationEscapes.note(task, for: watch) }
            }
        }
        ready.append(job)
    }

    func enqueue(_ job: SimulatedJob, after delay: some DurationProtocol) {
        guard let delay = delay as? Duration else {
            violate("a task sleeps by a clock that is not simulated")
            return enqueue(job)
        }
        lastSleeper += 1
        let number = lastSleeper
        sleepers[number] = job
        _ = schedule(after: delay) { [self] in
            if let job = sleepers.removeValue(forKey: number) { enqueue(job) }
        }
    }

    /// Wakes all tasks that sleep, before their time.
    ///
    /// The job that would have woken a cancelled sleep is still there, and wakes no task.
    /// - Returns: How many there were.
    func wakeSleepers() -> Int {
        var count = 0
        for (_, job) in sleepers.sorted(by: { $0.key < $1.key }) {
            let before = ready.count
            calmly { job.run() }
            if ready.count > before { count += 1 }
        }
        sleepers = [:]
        return count
    }

    /// Calls back after so long, as an event loop would.
    func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> UInt64 {
        schedule(at: now.advanced(by: max(delay, .zero)), action)
    }

    func schedule(
        at time: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64 {
        // What is never due must not overflow where some lateness is added.
        let last = WireInstant(nanoseconds: .max / 2)
        return events.add(at: min(max(time, now), last), action)
    }

    func cancel(_ event: UInt64) {
        events.cancel(event)
    }

    /// How late a timer fires.
    func drawLateness() -> Duration {
        dice.duration(.zero ... .milliseconds(2))
    }

    /// How long the loop takes to notice something.
    func drawNotice() -> Duration {
        dice.duration(.zero ... .microseconds(30))
    }

    // MARK: What runs

    /// How many jobs wait to run.
    var readyCount: Int { ready.count }

    /// Whether nothing can run before time passes.
    var isQuiet: Bool {
        ready.isEmpty && (events.nextDeadline.map { $0 > now } ?? true)
    }

    /// Runs one thing, or lets time pass until something can.
    /// - Returns: Whether there was anything at all.
    func step() -> Bool {
        takeEscapes()
        guard runNext() else {
            guard let deadline = events.nextDeadline else { return false }
            advance(to: deadline)
            return true
        }
        if jobCost > 0 {
            advance(
                to: now.advanced(byNanoseconds: Int64(dice.next() % UInt64(jobCost)))
            )
        }
        return true
    }

    private func advance(to time: WireInstant) {
        now = max(now, time)
        waybill_simulation_set_now(now.nanoseconds)
    }

    /// Runs one of those that could run now.
    private func runNext() -> Bool {
        // The loop does one thing after another, and so does the main actor.
        let hasEvent = loopDepth == 0 && events.nextDeadline.map { $0 <= now } ?? false
        let count = ready.count + (hasEvent ? 1 : 0)
        guard count > 0 else { return false }
        let index = choose(count, hasEvent: hasEvent)
        mix(UInt64(index) << 32 | UInt64(count))
        mix(UInt64(bitPattern: now.nanoseconds))
        guard index < ready.count else {
            runEvent()
            return true
        }
        let job = ready[index]
        guard !job.runsOnMain || mainDepth == 0 else { return false }
        ready.remove(at: index)
        jobCount += 1
        // Inside another task where that one was preempted.
        let outerTask = runningTask
        runningTask = job.isTask ? numbers[job.task] : nil
        if job.runsOnMain { mainDepth += 1 }
        job.run()
        if job.runsOnMain { mainDepth -= 1 }
        runningTask = outerTask
        return true
    }

    private func runEvent() {
        guard let action = events.takeDue(at: now) else { return }
        eventCount += 1
        lastEvent = now
        loopDepth += 1
        action()
        loopDepth -= 1
    }

    /// The index of the next job; that of the loop's event comes behind all jobs.
    private func choose(_ count: Int, hasEvent: Bool) -> Int {
        switch order {
        case .random: return dice.below(count)
        case .first: return hasEvent && dice.chance(0.5) ? count - 1 : 0
        case .last: return dice.chance(0.9) ? max(ready.count - 1, 0) : dice.below(count)
        case .mixed: return dice.chance(0.5) ? 0 : dice.below(count)
        case .ranked: return chooseByRank(hasEvent: hasEvent)
        }
    }

    private func chooseByRank(hasEvent: Bool) -> Int {
        var best = 0
        var bestRank: UInt64 = 0
        var bestTask: UInt64 = .max
        for (index, job) in ready.enumerated() {
            let task = numbers[job.task] ?? 0
            let rank = rank(of: task)
            if index == 0 || rank > bestRank { (best, bestRank, bestTask) = (index, rank, task) }
        }
        if hasEvent, ready.isEmpty || rank(of: .max) > bestRank {
            (best, bestTask) = (ready.count, .max)
        }
        if dice.chance(0.02) { ranks[bestTask] = dice.next() >> 8 }
        return best
    }

    private func rank(of task: UInt64) -> UInt64 {
        if let rank = ranks[task] { return rank }
        let rank = dice.next()
        ranks[task] = rank
        return rank
    }

    // MARK: Preemption

    /// Runs what belongs to the world and not to what is tested: no other job runs in the midst of it.
    func calmly<Result>(_ body: () throws -> Result) rethrows -> Result {
        calmDepth += 1
        defer { calmDepth -= 1 }
        return try body()
    }

    /// Begins or ends a section that no other job may interrupt.
    func hold(_ isHeld: Bool) {
        calmDepth += isHeld ? 1 : -1
    }

    func lockWillBeTaken() {
        lockDepth += 1
    }

    /// Another thread could run here as well as anywhere: some others do, inside this one.
    func lockDidOpen() {
        lockDepth -= 1
        guard lockDepth == 0, preemption > 0, calmDepth == 0, nesting < 3,
            dice.chance(preemption)
        else { return }
        nesting += 1
        preemptionCount += 1
        for _ in 0...dice.below(3) where !runNext() { break }
        nesting -= 1
    }

    // MARK: Tasks that other threads resume

    /// Whether a thread has resumed a task of this world; if so, that is told.
    func hasEscapes() -> Bool {
        takeEscapes()
        return !violations.isEmpty
    }

    private func takeEscapes() {
        if let (jobs, hasEscaped) = calmly({ watch.takeAll() }), hasEscaped || !jobs.isEmpty {
            violate(
                "a task was resumed by another thread: it waited for something that is not simulated"
                    + " (URLSession, Dispatch, a thread or a file)"
            )
            ready += jobs
        }
        let refused = waybill_simulation_take_refused()
        guard refused != 0 else { return }
        if refused & UInt32(WAYBILL_REFUSED_SOCKET) != 0 {
            violate("a socket was asked for: only the simulated network can be used")
        }
        if refused & UInt32(WAYBILL_REFUSED_SLEEP) != 0 {
            violate("a thread was to sleep: only tasks can, with Task.sleep")
        }
    }

    /// Lets the calling thread simulate.
    func enter() {
        waybill_simulation_enter(
            Unmanaged.passUnretained(self).toOpaque(),
            now.nanoseconds,
            seed
        )
    }

    func leave() {
        waybill_simulation_leave()
    }
}
