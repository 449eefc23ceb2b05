package import Testing
import WaybillTesting
import WireTestSupport

/// Runs each test of a suite in a simulated world of its own, where the platform has one.
///
/// A test then has one thread and simulated time, so that ``untilQuiet()`` is exact and a busy machine changes
/// nothing. A test must not use threads, files or sockets; a ``LoopbackBroker`` listens in the world. Without
/// simulations, as with a sanitizer, the test runs on the system's threads and clock. Bytes that differ from a script of
/// the test (``ScriptRecord``) are a failure, except with the thread sanitizer.
package struct InSimulation: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    @concurrent package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let isOutside = test.traits.contains { $0 is OutsideSimulation }
        let scripts = ScriptRecord()
        defer { scripts.report() }
        guard Simulation.isAvailable, !isOutside else {
            #if WAYBILL_THREAD_SANITIZER
                // On threads, a slow machine lets simulated time run ahead of a task. The sanitizer ends the process at
                // a data race, which is all that it looks for here; what the test expects is checked in a world.
                if !isOutside {
                    return await withKnownIssue("no world", isIntermittent: true) {
                        try await function()
                    }
                }
            #endif
            return try await scripts.watch(function)
        }
        var options = Simulation.Options()
        // What a test records counts once, and it looks after its remains itself.
        options.shrinkingRuns = 0
        options.leavesNothing = false
        // The order of a world is enough: what threads may do in between is for the services in Tests/Simulations.
        options.preemption = 0
        let body = Self.escaping(function)
        for seed in Simulation.seeds(1) {
            try await Simulation.run(seed: seed, options: options, name: test.name) { _ in
                try await WaitLimits.$longest.withValue(.seconds(5)) {
                    try await scripts.watch(body)
                }
            }
        }
    }

    private typealias Body = @Sendable @concurrent () async throws -> Void

    /// Makes a body that may outlive the call: a test that waits for ever stays suspended when its world ends.
    ///
    /// `withoutActuallyEscaping` would trap then. A parameter that escapes and one that does not are passed in the
    /// same way. Swift Testing (6.3, `Runner._applyScopingTraits`) composes the body of closures that escape, so its
    /// context can be retained. To be read again with each new toolchain.
    private static func escaping(_ body: Body) -> Body {
        let retain: (@escaping Body) -> Body = { $0 }
        return unsafeBitCast(retain, to: ((Body) -> Body).self)(body)
    }
}

/// Keeps one test of a suite with the trait ``InSimulation`` on the system's threads, which it needs.
package struct OutsideSimulation: TestTrait {}

extension Trait where Self == InSimulation {
    /// Runs each test in a simulated world of its own, where the platform has one.
    package static var inSimulation: Self { InSimulation() }
}

extension Trait where Self == OutsideSimulation {
    /// Keeps the test on the system's threads, since it needs sockets, Dispatch or another thread.
    package static var outsideSimulation: Self { OutsideSimulation() }
}

/// Returns when nothing else can run: all other tasks wait, and no byte is under way.
///
/// A test that expects nothing to happen waits here. It is exact in a simulation, so the test's suite must have the
/// trait ``InSimulation``. Without simulations it lets other tasks and threads run for a moment of real time.
package func untilQuiet(_ location: SourceLocation = #_sourceLocation) async {
    if Simulation.isRunning {
        // Everything due within the second happens in between: the simulated time moves when nothing can run.
        try? await Task.sleep(for: .seconds(1))
        return
    }
    if Simulation.isAvailable {
        Issue.record(
            "outside a simulation nothing tells when all is quiet",
            sourceLocation: location
        )
    }
    for _ in 0..<5 {
        for _ in 0..<20 { await Task.yield() }
        try? await Task.sleep(for: .milliseconds(1))
    }
}
