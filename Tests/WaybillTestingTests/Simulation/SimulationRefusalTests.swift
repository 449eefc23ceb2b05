#if os(Linux) && DEBUG
    import Dispatch
    import Foundation
    import Glibc
    import Testing
    import Waybill
    import WaybillLink
    import WaybillMQTT
    import WaybillWebSocket
    import WireCore
    import WireTestSupport

    @testable import WaybillTesting

    /// Real resources cannot enter a world unnoticed, and a run that does not end reports the reason.
    @Suite(
        "Simulation: what is refused",
        .enabled(if: Simulation.isAvailable),
        .timeLimit(.minutes(30))
    )
    struct SimulationRefusalTests {
        private static let escaped = "a task was resumed by another thread"

        @Test("A task that a queue or a thread resumes has got out of the world")
        func threads() async throws {
            let queue = try await failure { _ in
                await waitForThread { body in DispatchQueue.global().async { body() } }
            }
            #expect(queue.violations.contains { $0.hasPrefix(Self.escaped) }, "\(queue)")
            let thread = try await failure { _ in
                await waitForThread()
            }
            #expect(thread.violations.contains { $0.hasPrefix(Self.escaped) }, "\(thread)")
            #expect(thread.description.contains("not simulated"))
        }

        private actor Waiter {
            func wait() async {
                await waitForThread()
            }
        }

        @Test("So has a task on an actor, and on the main actor")
        func actors() async throws {
            let onActor = try await failure { _ in await Waiter().wait() }
            #expect(onActor.violations.contains { $0.hasPrefix(Self.escaped) }, "\(onActor)")
            let inWorld = try await failure { world in
                await Waiter().wait()
                world.expect(true, "what is outside is noticed here, too")
                for await _ in AsyncStream<Never>.makeStream().stream {}
            }
            #expect(inWorld.violations.contains { $0.hasPrefix(Self.escaped) }, "\(inWorld)")
            let onMain = try await failure { _ in
                await Task { @MainActor in
                    await waitForThread()
                }.value
            }
            #expect(onMain.violations.contains { $0.hasPrefix(Self.escaped) }, "\(onMain)")
        }

        private final class QueueExecutor: SerialExecutor {
            let queue = DispatchQueue(label: "of its own")

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
            }
        }

        private actor QueueActor {
            nonisolated let executor = QueueExecutor()
            nonisolated var unownedExecutor: UnownedSerialExecutor {
                executor.asUnownedSerialExecutor()
            }

            func work() {}
        }

        @Test("An actor with an executor of its own is outside")
        func executors() async throws {
            let failure = try await failure { _ in await QueueActor().work() }
            #expect(failure.violations.contains { $0.hasPrefix(Self.escaped) }, "\(failure)")
        }

        @Test("No socket can be opened: not by a broker, not by a connection, not by other code")
        func sockets() async throws {
            let refusal = "a socket was asked for: only the simulated network can be used"
            let plain = try await failure { world in
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                world.expect(descriptor == -1 && errno == EACCES, "it is refused")
            }
            #expect(plain.violations == [refusal])
            let pair = try await failure { world in
                var descriptors: [Int32] = [-1, -1]
                let result = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors)
                world.expect(result == -1 && errno == EACCES, "it is refused")
            }
            #expect(pair.violations == [refusal])
            let names = try await failure { world in
                var addresses: UnsafeMutablePointer<addrinfo>?
                let result = getaddrinfo("127.0.0.1", "1", nil, &addresses)
                world.expect(result == EAI_SYSTEM && errno == EACCES, "it is refused")
            }
            #expect(names.violations == [refusal])
            let listener = try await failure { _ in _ = try TCPListener { _ in } }
            #expect(
                listener.description.contains("a real socket inside a simulation"),
                "\(listener)"
            )
            let dialer = try await failure { world in
                _ = try await TCPDialer().dial(
                    Endpoint(host: "127.0.0.1", port: 1),
                    timeout: .seconds(1),
                    timers: LinkEnvironment.system.clock
                )
            }
            #expect(!dialer.violations.isEmpty)
        }

        @Test("A transport finds the hosts of its world and no others")
        func hosts() async throws {
            let refused = try await failure { _ in
                _ = try await WebSocketClient.connect(to: "ws://127.0.0.1:1")
            }
            #expect(refused.description.contains("no such host in this world"), "\(refused)")
        }

        @Test("No thread sleeps")
        func sleepingThreads() async throws {
            let sleeps: [(String, @Sendable () -> Void)] = [
                ("usleep", { usleep(1) }),
                ("sleep", { _ = sleep(1) }),
                (
                    "nanosleep",
                    {
                        var time = timespec(tv_sec: 0, tv_nsec: 1); nanosleep(&time, nil)
                    }
                ),
                ("Thread", { Thread.sleep(forTimeInterval: 0.001) }),
            ]
            for (name, sleep) in sleeps {
                let failure = try await failure { _ in sleep() }
                #expect(
                    failure.violations == [
                        "a thread was to sleep: only tasks can, with Task.sleep"
                    ],
                    "\(name)"
                )
            }
        }

        /// A clock whose sleeping tasks are resumed by a thread.
        private struct ThreadClock: Clock {
            var now: ContinuousClock.Instant { .now }
            var minimumResolution: Duration { .nanoseconds(1) }

            func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
                await waitForThread()
            }
        }

        @Test("A clock of the app's is simulated if it sleeps by a clock that is")
        func clocks() async throws {
            let thread = try await failure { _ in
                try await Task.sleep(for: .seconds(1), clock: ThreadClock())
            }
            #expect(thread.violations.contains { $0.hasPrefix(Self.escaped) }, "\(thread)")
            let manual = try await failure { _ in
                try await Task.sleep(for: .seconds(1), clock: ManualClock())
            }
            let body = "the body waits for the time of a manual clock"
            #expect(manual.violations == [Self.waiting, body])
            try await Simulation.run(seed: 1) { world in
                let clock = ManualClock()
                let sleeper = Task { try await Task.sleep(for: .seconds(1), clock: clock) }
                await clock.waitForSleepers()
                clock.advance(by: .seconds(1))
                try await sleeper.value
            }
        }

        private static let waiting =
            "all tasks wait forever: for each other, or for something that is not simulated"

        @Test("Tasks that all wait for each other are told of")
        func deadlock() async throws {
            let failure = try await failure { _ in
                for await _ in AsyncStream<Never>.makeStream().stream {}
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            }
            #expect(failure.violations == [Self.waiting])
        }

        @Test("Tasks that wait for ever in the package are named, with what they wait for")
        func waits() async throws {
            let failure = try await failure { world in
                let transport = try MQTTTransport(url: world.broker().url())
                Task(name: "watcher") { for await _ in transport.states {} }
                Task { await ManualClock().waitForSleepers() }
                // These have waited, and do no longer.
                await withTaskGroup { group in
                    for _ in 0..<3 { group.addTask { await Task.yield() } }
                }
                let clock = ManualClock()
                let sleeper = Task {
                    try await clock.sleep(until: clock.now.advanced(by: .seconds(1)))
                }
                await clock.waitForSleepers()
                clock.advance(by: .seconds(1))
                try await sleeper.value
                try await clock.sleep(until: clock.now.advanced(by: .seconds(1)))
            }
            #expect(failure.violations.first == Self.waiting)
            for expected in [
                " \"watcher\" waits for a stream of the type ConnectionState",
                " waits for tasks that sleep by a manual clock",
                "the body waits for the time of a manual clock",
            ] {
                #expect(failure.violations.count { $0.hasSuffix(expected) } == 1, "\(failure)")
            }
            let clocks = failure.violations.filter { $0.hasSuffix("the time of a manual clock") }
            #expect(clocks.count == 1, "\(failure)")
        }

        @Test("A run that does not end is ended, by its clock or by its steps")
        func endless() async throws {
            let sleeping = try await failure { _ in
                while true { try await Task.sleep(for: .seconds(60)) }
            }
            #expect(sleeping.violations == ["the run is not over after 86400.0 seconds"])
            var options = Simulation.Options()
            options.longestTime = .seconds(100)
            let impatient = try await failure(options: options) { _ in
                while true { try await Task.sleep(for: .seconds(60)) }
            }
            #expect(impatient.violations == ["the run is not over after 100.0 seconds"])
            var run = SimulationRun(seed: 1, options: options) { _ in
                repeat { await Task.yield() } while true
            }
            run.stepLimit = 10_000
            #expect(await run.once().violations == ["the run is not over after 10000 steps"])
        }

        @Test("A body that throws fails with its error")
        func throwing() async throws {
            let failure = try await failure { _ in throw WaybillError(.invalidEntry, "so") }
            #expect(failure.violations.count == 1)
            #expect(failure.description.contains("the body has thrown: "))
            #expect(failure.description.contains("so"))
        }

        @Test("There is no world within a world")
        func nested() async throws {
            let failure = try await failure { _ in try await Simulation.run(seed: 2) { _ in } }
            #expect(failure.description.contains("a simulation cannot run inside another one"))
        }

        @Test("A test that is cancelled ends its run, and the failure says so")
        func cancelled() async throws {
            let bodies = Notes<Int>()
            let running = Task {
                var options = Simulation.Options()
                options.longestTime = .seconds(1_000_000_000)
                try await Simulation.run(seed: 1, options: options) { _ in
                    bodies.add(1)
                    while true { try await Task.sleep(for: .milliseconds(1)) }
                }
            }
            // Runs of other tests may come first, so that only the limit of the suite counts.
            while bodies.all.isEmpty { try await Task.sleep(for: .milliseconds(10)) }
            running.cancel()
            let error = await #expect(throws: SimulationFailure.self) { try await running.value }
            #expect(error?.violations == ["the test was cancelled"])
            #expect(error?.seed == 1)
            // There was no search for a smaller run.
            #expect(bodies.all.count == 1)
        }
    }
#endif
