#if os(Linux) && DEBUG
    import Foundation
    import Glibc
    import Testing
    import WireTestSupport

    @testable import WaybillTesting

    /// Swift's tasks, clocks and random numbers belong to the simulated world.
    @Suite("Simulation: tasks, time and chance", .enabled(if: Simulation.isAvailable))
    struct SimulatedTasksTests {
        private actor Counter {
            var count = 0

            func add(_ threads: Notes<UInt>) {
                threads.add(threadNumber())
                count += 1
            }
        }

        @MainActor private static func onMain(_ threads: Notes<UInt>) {
            MainActor.assertIsolated()
            threads.add(threadNumber())
        }

        @concurrent private static func concurrent(_ threads: Notes<UInt>) async {
            threads.add(threadNumber())
        }

        @Test("Processor time is the system's, and a clock that does not exist is refused")
        func systemClocks() async throws {
            try await Simulation.run(seed: 1) { world in
                var clock = clockid_t()
                world.expect(pthread_getcpuclockid(pthread_self(), &clock) == 0, "it has a clock")
                var time = timespec()
                world.expect(clock_gettime(clock, &time) == 0 && time.tv_sec < 100_000, "its own")
                world.expect(clock_gettime(CLOCK_MONOTONIC, &time) == 0, "the world's")
                world.expect(time.tv_sec >= 1_000_000, "the world's begins late")
                world.expect(clock_gettime(99, &time) == -1 && errno == EINVAL, "there is none")
            }
        }

        @Test("All tasks run on the world's thread, whatever began them", arguments: 1...5)
        func oneThread(seed: UInt64) async throws {
            let threads = Notes<UInt>()
            let outside = threadNumber()
            try await Simulation.run(seed: seed) { world in
                threads.add(threadNumber())
                await Task { threads.add(threadNumber()) }.value
                await Task.detached(priority: .high) { threads.add(threadNumber()) }.value
                await Task { @MainActor in threads.add(threadNumber()) }.value
                await Self.onMain(threads)
                await Self.concurrent(threads)
                let counter = Counter()
                await counter.add(threads)
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<3 {
                        group.addTask {
                            await Task.yield()
                            await counter.add(threads)
                        }
                    }
                }
                async let one: Void = counter.add(threads)
                async let two: Void = Self.onMain(threads)
                _ = await (one, two)
                let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
                Task {
                    threads.add(threadNumber())
                    continuation.yield(1)
                    continuation.finish()
                }
                for await _ in stream { threads.add(threadNumber()) }
                try await Task.sleep(for: .seconds(1))
                threads.add(threadNumber())
                let sleeper = Task { try await Task.sleep(for: .seconds(3_600)) }
                await withTaskCancellationHandler {
                    await Task.yield()
                } onCancel: {
                }
                sleeper.cancel()
                _ = await sleeper.result
                threads.add(threadNumber())
                world.expect(await counter.count == 5, "the actor has counted all")
            }
            #expect(threads.all.count == 16)
            #expect(Set(threads.all).count == 1)
            #expect(!threads.all.contains(outside))
        }

        @Test("Seeds decide which of several tasks is first")
        func order() async throws {
            func order(_ seed: UInt64) async throws -> [Int] {
                let order = Notes<Int>()
                try await Simulation.run(seed: seed) { _ in
                    await withTaskGroup(of: Void.self) { group in
                        for number in 0..<5 { group.addTask { order.add(number) } }
                    }
                }
                return order.all
            }
            var orders: Set<[Int]> = []
            for seed in 1...30 as ClosedRange<UInt64> {
                let order = try await order(seed)
                #expect(order.sorted() == [0, 1, 2, 3, 4])
                orders.insert(order)
            }
            #expect(orders.contains([0, 1, 2, 3, 4]))
            #expect(orders.count >= 5)
        }

        @Test("Hours pass at once, on every clock alike")
        func time() async throws {
            let begin = ContinuousClock.now
            let calendar = Date()
            let report = try await Simulation.run(seed: 1) { world in
                let elapsed = world.elapsed
                let continuous = ContinuousClock.now
                let suspending = SuspendingClock.now
                let date = Date()
                let seconds = Glibc.time(nil)
                var day = timeval()
                gettimeofday(&day, nil)
                let uptime = ProcessInfo.processInfo.systemUptime
                world.expect(day.tv_sec == seconds, "both are the calendar's")
                world.expect(
                    abs(date.timeIntervalSince1970 - Double(seconds)) <= 1,
                    "the date is the calendar's"
                )

                try await Task.sleep(for: .seconds(36_000))

                let passed = world.elapsed - elapsed
                world.expect(passed >= .seconds(36_000), "ten hours have passed: \(passed)")
                world.expect(passed < .seconds(36_001), "and no more: \(passed)")
                world.expect(ContinuousClock.now - continuous == passed, "continuous")
                world.expect(SuspendingClock.now - suspending == passed, "suspending")
                let exact = passed / .seconds(1)
                world.expect(abs(Date().timeIntervalSince(date) - exact) < 0.001, "date")
                world.expect(abs(Double(Glibc.time(nil) - seconds) - exact) <= 1, "time")
                let rise = ProcessInfo.processInfo.systemUptime - uptime
                world.expect(abs(rise - exact) < 0.001, "uptime")
                try await Task.sleep(until: .now + .seconds(10), clock: .suspending)
                try await Task.sleep(nanoseconds: 5_000_000_000)
                world.expect(world.elapsed - elapsed - passed >= .seconds(15), "and further")
            }
            #expect(report.elapsed >= .seconds(36_015))
            // The clocks of the test itself have not changed.
            #expect(ContinuousClock.now - begin < .seconds(3_600))
            #expect(abs(Date().timeIntervalSince(calendar)) < 3_600)
        }

        @Test("A task that waits with a limit of time gets its answer, or the limit")
        func race() async throws {
            try await Simulation.run(seed: 1) { world in
                let winner = try await withThrowingTaskGroup(of: String.self) { group in
                    group.addTask {
                        try await Task.sleep(for: .seconds(100_000))
                        return "late"
                    }
                    group.addTask {
                        try await Task.sleep(for: .seconds(2))
                        return "early"
                    }
                    defer { group.cancelAll() }
                    return try await group.next()
                }
                world.expect(winner == "early", "\(winner ?? "none")")
                world.expect(world.elapsed < .seconds(3), "after \(world.elapsed)")
            }
        }

        @Test("Random numbers of Swift's and of Foundation's are the seed's")
        func chance() async throws {
            func draw(_ seed: UInt64) async throws -> [String] {
                let draws = Notes<String>()
                try await Simulation.run(seed: seed) { world in
                    draws.add("\(UInt64.random(in: 0 ... .max))")
                    draws.add("\(Double.random(in: 0..<1))")
                    draws.add("\(Array(0..<100).shuffled())")
                    draws.add("\(UUID())")
                    draws.add("\(world.random(0...Int.max - 1))")
                    draws.add("\(world.random(.zero ... .seconds(1_000)))")
                }
                return draws.all
            }
            let first = try await draw(1)
            let other = try await draw(2)
            #expect(first == (try await draw(1)))
            for (one, two) in zip(first, other) { #expect(one != two) }
        }

        @Test("A set of words is gone through in the same order each time")
        func sets() async throws {
            let orders = Notes<[String]>()
            for _ in 0..<2 {
                try await Simulation.run(seed: 1) { _ in
                    // Sets of the same capacity at different addresses.
                    for _ in 0..<10 { orders.add(Array(Set((0..<20).map { "word \($0)" }))) }
                }
            }
            #expect(Set(orders.all).count == 1)
        }

        @Test("Values that the test has for its tasks are there for those of the world")
        func taskLocals() async throws {
            let names = Notes<String>()
            try await Names.$current.withValue("ada") {
                try await Simulation.run(seed: 1) { _ in
                    names.add(Names.current)
                    await Task { names.add(Names.current) }.value
                }
            }
            #expect(names.all == ["ada", "ada"])
        }

        private enum Names {
            @TaskLocal static var current = "nobody"
        }
    }
#endif
