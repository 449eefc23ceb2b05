import CWaybillSimulation
import Waybill
import WaybillLink
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Runs a program in a world that a seed decides: its network, its clock and which of its tasks runs next.
///
/// The same seed gives the same run, to the last byte, so that whatever fails once can be looked at as often as needed.
/// Hours pass in a moment, since the clock moves on when all tasks wait.
///
/// ```swift
/// @Test(arguments: Simulation.seeds(100))
/// func chatSurvives(seed: UInt64) async throws {
///     try await Simulation.run(seed: seed) { world in
///         let broker = world.broker("chat.example")
///         world.faults = .rough(until: .seconds(60))
///         let service = ChatService(url: broker.url())
///         try await service.say("hello")
///         try await world.recover(within: .seconds(600))
///         world.expect(service.isSaid("hello"), "what was said is there")
///     }
/// }
/// ```
///
/// On Linux, with a toolchain that lets default executors be replaced (Swift 6.3), and without a sanitizer;
/// ``isAvailable`` tells.
public enum Simulation {
    /// How a run behaves.
    public struct Options: Sendable {
        /// When a run is taken for one that hangs, by the world's clock: after a day.
        public var longestTime = Duration.seconds(86_400)
        /// How often another task runs where a lock of the package was opened, 0 to 1; nil draws it from the seed.
        public var preemption: Double?
        /// How many further runs may be spent on finding a smaller one that fails: 100; 0 shows the failure as it is.
        ///
        /// They are spent on a test's first seed that fails. Others are shown as they are; `WAYBILL_SEED` chooses one.
        public var shrinkingRuns = 100
        /// Whether it is a failure to leave tasks asleep, timers, or connections behind.
        public var leavesNothing = true

        /// The defaults.
        public init() {}
    }

    /// What a run was like.
    public struct Report: Sendable {
        /// The seed.
        public let seed: UInt64
        /// A number made of everything that ran, when it ran, and every byte that arrived: equal for equal runs.
        public let hash: UInt64
        /// How long it took, by the world's clock.
        public let elapsed: Duration
        /// How many jobs of tasks ran.
        public let jobCount: Int
        /// How many events of the network and of timers there were.
        public let eventCount: Int
        /// How often a task was preempted where a lock was opened.
        public let preemptionCount: Int
        /// How many connections were made.
        public let connectionCount: Int
        /// How often each kind of fault happened.
        public let faults: [SimulatedFaults.Kind: Int]

        /// How many faults happened.
        public var faultCount: Int { faults.values.reduce(0, +) }
    }

    /// Whether there is a simulation on this platform, in this process.
    public static var isAvailable: Bool {
        waybill_simulation_is_available() != 0
    }

    /// Whether the calling task runs in a simulated world.
    package static var isRunning: Bool { SimulationScheduler.current != nil }

    /// Seeds to run: so many in a row, or the one that the environment variable `WAYBILL_SEED` names.
    public static func seeds(_ count: Int, from first: UInt64 = 1) -> [UInt64] {
        if let seed = replayedSeed { return [seed] }
        return (0..<max(count, 0)).map { first + UInt64($0) }
    }

    private static var replayedSeed: UInt64? {
        ProcessInfo.processInfo.environment["WAYBILL_SEED"].flatMap { UInt64($0) }
    }

    /// Runs a body in the world of a seed.
    ///
    /// - Parameters:
    ///   - seed: What decides everything.
    ///   - options: How the run behaves.
    ///   - name: The name of the test, by which the command that replays a failure finds it.
    ///   - fileID: The file of the test.
    ///   - body: What runs: it makes brokers and says what goes wrong, makes what is tested anew each time, and leaves
    ///     nothing behind. It may run many times.
    /// - Returns: What the run was like.
    /// - Throws: `SimulationFailure` when something did not hold, `body` has thrown, the run did not end, something real was
    ///   used, or something was left behind; `WaybillError` with `unsupported` where there is no simulation.
    @discardableResult
    public static func run(
        seed: UInt64,
        options: Options = Options(),
        name: String = #function,
        fileID: String = #fileID,
        _ body: @escaping @Sendable (SimulatedWorld) async throws -> Void
    ) async throws -> Report {
        guard isAvailable else {
            throw WaybillError(
                .unsupported,
                "there is no simulation on this platform, with a sanitizer, or with WAYBILL_SIMULATION=off"
            )
        }
        guard SimulationScheduler.current == nil else {
            throw WaybillError(.unsupported, "a simulation cannot run inside another one")
        }
        let run = SimulationRun(seed: seed, options: options, body: body)
        await SimulationGate.shared.enter()
        defer { SimulationGate.shared.leave() }
        let outcome = await run.once()
        guard !outcome.violations.isEmpty else { return outcome.report }
        throw await SimulationShrinker(run, outcome, name: name, in: fileID).smallest()
    }
}

/// Lets so many simulations run at a time: they never wait, and other tests need a processor, too.
final class SimulationGate: Sendable {
    private struct State: Sendable {
        var free: Int
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    static let shared = SimulationGate(
        width: max(ProcessInfo.processInfo.activeProcessorCount / 2, 1)
    )

    private let state: Locked<State>

    init(width: Int) {
        state = Locked(State(free: width))
    }

    func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                state.waiters.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
