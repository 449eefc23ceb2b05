import CWaybillSimulation
import Waybill
import WaybillLink
import WireCore

/// One seed and what runs in its world.
struct SimulationRun: Sendable {
    /// The result of a run.
    struct Outcome: Sendable {
        let report: Simulation.Report
        let violations: [String]
        /// Whether the body's own test has told its failure already, and would again with each further run.
        let isToldElsewhere: Bool
        /// Whether the test was cancelled, and with it each further run.
        let isCancelled: Bool
        let faultCount: Int
        let lastFault: WireInstant
        let sizes: [String: Int]
        let trace: [String]
    }

    /// How long the tasks of a run may go on after its body, by the world's clock: an hour.
    private static let aftermath = Duration.seconds(3_600)

    let seed: UInt64
    let options: Simulation.Options
    /// After so many steps a run that is not over never will be.
    var stepLimit = 50_000_000
    let body: @Sendable (SimulatedWorld) async throws -> Void

    /// Whether the body is over, and how.
    ///
    /// `@unchecked Sendable`, because: only the thread that simulates touches it.
    private final class Ending: @unchecked Sendable {
        var isOver = false
        var error: (any Error)?
    }

    /// Runs it.
    ///
    /// - Parameters:
    ///   - reduction: What is left out of it.
    ///   - isRecorded: Whether its trace is kept.
    /// - Returns: The result.
    func once(
        _ reduction: SimulationReduction = SimulationReduction(),
        isRecorded: Bool = false
    ) async -> Outcome {
        var dice = SimulationDice(seed: seed, use: 6)
        let preemption = options.preemption ?? dice.pick([0, 0.02, 0.02, 0.1])
        let scheduler = SimulationScheduler(
            seed: seed,
            preemption: preemption,
            isRecorded: isRecorded
        )
        let world = SimulatedWorld(scheduler, reduction)
        let ending = Ending()
        let isCancelled = RaisedFlag()
        SimulationSeam.install()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // Begun by the caller, whose task-local values the body has, and at home in the world from its first job on.
                scheduler.enter()
                Task { @concurrent [body] in
                    let result: Result<Void, any Error>
                    do { result = .success(try await body(world)) } catch {
                        result = .failure(error)
                    }
                    // A task that a thread has resumed on an actor goes on beside the world, and is told only now.
                    guard scheduler.isCurrent else {
                        return scheduler.watch.noteEscape()
                    }
                    if case .failure(let error) = result { ending.error = error }
                    ending.isOver = true
                }
                scheduler.leave()
                SimulationThread.run {
                    scheduler.enter()
                    drive(world, ending, isCancelled)
                    let outcome = outcome(of: world, ending, isCancelled)
                    world.dissolve()
                    scheduler.leave()
                    SimulationEscapes.end(scheduler.tasks)
                    continuation.resume(returning: outcome)
                }
            }
        } onCancel: {
            isCancelled.raise()
        }
    }

    // MARK: On the thread that simulates

    private func drive(_ world: SimulatedWorld, _ ending: Ending, _ isCancelled: RaisedFlag) {
        let scheduler = world.scheduler
        let limit = WireInstant.zero.advanced(by: options.longestTime)
        var steps = 0
        while !ending.isOver, scheduler.violations.isEmpty {
            steps += 1
            if scheduler.now > limit {
                scheduler.violate("the run is not over after \(options.longestTime)")
            } else if steps > stepLimit {
                scheduler.violate("the run is not over after \(stepLimit) steps")
            } else if isCancelled.isRaised {
                scheduler.violate("the test was cancelled")
            } else if !scheduler.step(), !waitForEscapes(scheduler) {
                scheduler.violate(
                    "all tasks wait forever: for each other, or for something that is not simulated"
                )
                scheduler.tellWaits()
            }
            world.checkConditions()
        }
        if let error = ending.error, !isToldElsewhere(ending) || scheduler.violations.isEmpty {
            scheduler.violate("the body has thrown: \(error)")
        }
        guard scheduler.violations.isEmpty else { return }
        runOut(scheduler)
        world.checkEnd()
        if options.leavesNothing { checkLeftovers(world) }
    }

    /// Gives a thread that has resumed a task the time to say so.
    private func waitForEscapes(_ scheduler: SimulationScheduler) -> Bool {
        let limit = waybill_simulation_real_now() + 200_000_000
        while waybill_simulation_real_now() < limit {
            SimulationThread.giveWay()
            if scheduler.hasEscapes() { return true }
        }
        return false
    }

    private func runOut(_ scheduler: SimulationScheduler) {
        let end = scheduler.now.advanced(by: Self.aftermath)
        var steps = 0
        while scheduler.now < end, scheduler.violations.isEmpty, steps < stepLimit,
            scheduler.step()
        {
            steps += 1
        }
    }

    private func checkLeftovers(_ world: SimulatedWorld) {
        let scheduler = world.scheduler
        for (count, what) in [
            (scheduler.readyCount, "jobs"), (scheduler.wakeSleepers(), "tasks that sleep"),
            (scheduler.timerCount, "timers"),
            (world.network.openCount, "ends of connections"),
        ] where count > 0 {
            scheduler.violate(
                "an hour after the body's end there are \(what) left: \(count)"
            )
        }
    }

    private func isToldElsewhere(_ ending: Ending) -> Bool {
        // What Swift Testing's #require throws when it has recorded an issue.
        ending.error.map { "\(type(of: $0))" == "ExpectationFailedError" } ?? false
    }

    private func outcome(
        of world: SimulatedWorld,
        _ ending: Ending,
        _ isCancelled: RaisedFlag
    ) -> Outcome {
        let scheduler = world.scheduler
        let network = world.network
        return Outcome(
            report: Simulation.Report(
                seed: seed,
                hash: scheduler.hash,
                elapsed: world.elapsed,
                jobCount: scheduler.jobCount,
                eventCount: scheduler.eventCount,
                preemptionCount: scheduler.preemptionCount,
                connectionCount: network.connectionCount,
                faults: network.faultCounts
            ),
            violations: scheduler.violations,
            isToldElsewhere: isToldElsewhere(ending),
            isCancelled: isCancelled.isRaised,
            faultCount: network.faultCount,
            lastFault: network.lastFault,
            sizes: world.sizes,
            trace: scheduler.trace.lines
        )
    }
}

/// Puts the simulation in its places in the package, once.
enum SimulationSeam {
    private static let once: Void = {
        LinkEnvironment.installOverride { SimulationScheduler.current?.environment }
        ConnectionStateSource.installWatch { SimulationScheduler.current?.note($0) }
        LockObserver.install(
            willLock: { SimulationScheduler.current?.lockWillBeTaken() },
            didUnlock: { SimulationScheduler.current?.lockDidOpen() },
            hold: { SimulationScheduler.current?.hold($0) },
            beginWait: { reason in
                SimulationScheduler.current?.beginWait(reason(), name: SimulationThread.taskName)
            },
            endWait: { SimulationScheduler.current?.endWait($0) }
        )
    }()

    static func install() { once }
}
