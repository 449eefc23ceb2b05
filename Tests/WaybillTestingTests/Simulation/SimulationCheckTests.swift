#if os(Linux) && DEBUG
    import Testing
    import Waybill
    import WaybillLink
    import WaybillMQTT
    import WaybillSSE
    import WireTestSupport

    @testable import WaybillTesting

    /// The checks that a test can ask for, and the resources that a run must not leave behind.
    @Suite("Simulation: what must hold", .enabled(if: Simulation.isAvailable))
    struct SimulationCheckTests {
        @Test("What is expected and is not so ends the run")
        func expect() async throws {
            let steps = Notes<String>()
            let failure = try await failure { world in
                world.expect(true, "two is even")
                world.expect(false, "three is even")
                await Task.yield()
                steps.add("went on")
            }
            #expect(failure.violations == ["three is even"])
            #expect(steps.all.isEmpty)
            let plain = try await self.failed { $0.fail("enough") }
            #expect(plain == ["enough"])
        }

        private func failed(
            _ body: @escaping @Sendable (SimulatedWorld) async throws -> Void
        ) async throws -> [String] {
            try await failure(body).violations
        }

        @Test("What must always hold is looked at after each step")
        func always() async throws {
            let failure = try await failure { world in
                let numbers = Notes<Int>()
                world.always("fewer than three numbers") { numbers.all.count < 3 }
                for number in 0..<10 {
                    numbers.add(number)
                    try await Task.sleep(for: .seconds(1))
                }
            }
            #expect(failure.violations == ["no longer: fewer than three numbers"])
            #expect(failure.report.elapsed >= .seconds(2))
            #expect(failure.report.elapsed < .seconds(3))
        }

        @Test("What must hold at last is looked at when everything has run out")
        func finally() async throws {
            let failure = try await failure { world in
                let numbers = Notes<Int>()
                world.finally { $0.expect(numbers.all == [1, 2], "both: \(numbers.all)") }
                world.finally { $0.expect(numbers.all == [1], "one: \(numbers.all)") }
                numbers.add(1)
                Task {
                    try await Task.sleep(for: .seconds(60))
                    numbers.add(2)
                }
            }
            #expect(failure.violations == ["one: [1, 2]"])
        }

        @Test("A wait ends when its condition holds, and fails when its time is over")
        func wait() async throws {
            try await Simulation.run(seed: 1) { world in
                let numbers = Notes<Int>()
                let task = Task {
                    try await Task.sleep(for: .seconds(60))
                    numbers.add(1)
                }
                try await world.wait(for: "a number", within: .seconds(100)) {
                    !numbers.all.isEmpty
                }
                world.expect(world.elapsed >= .seconds(60), "not before")
                world.expect(world.elapsed < .seconds(61), "not much later")
                try await task.value
            }
            let failure = try await failure { world in
                try await world.wait(for: "a miracle", within: .seconds(5)) { false }
            }
            #expect(failure.violations.first == "not within 5.0 seconds: a miracle")
            #expect(failure.report.elapsed >= .seconds(5))
        }

        @Test(
            "A world has recovered when its faults are over and nothing is under way",
            arguments: 1...5
        )
        func recovered(seed: UInt64) async throws {
            try await Simulation.run(seed: seed) { world in
                let broker = world.broker()
                world.faults = .rough(until: .seconds(100))
                var configuration = MQTTConfiguration()
                configuration.reconnection.maximumDelay = .seconds(5)
                let transport = try MQTTTransport(url: broker.url(), configuration: configuration)
                let provider = Provider<NumberEntry>(transport: transport)
                let sends = Notes<Int>()
                let task = Task {
                    for number in 0..<10 {
                        _ = try await EchoApp.retried {
                            try await provider.request(.send(number, topic: "n"))
                        }
                        sends.add(number)
                    }
                }
                try await world.recover(within: .seconds(600))
                world.expect(world.elapsed >= .seconds(100), "the faults are over")
                world.expect(world.network.byteCountUnderWay == 0, "nothing is under way")
                world.expect(!world.network.isFaulty, "all is well")
                try await task.value
                world.expect(sends.all == Array(0..<10), "everything was sent")
                await transport.shutdown()
            }
        }

        @Test(
            "A world has not recovered before its transports are connected, and know of broken connections",
            arguments: 1...20
        )
        func recoveredClients(seed: UInt64) async throws {
            try await Simulation.run(seed: seed) { world in
                let broker = world.broker()
                // Connections break shortly before the end: a client waits for its next attempt then, or knows nothing.
                var faults = SimulatedFaults(until: .seconds(60))
                faults.connectionLife = .seconds(20)
                faults.unheardResets = 80
                faults.refusals = 50
                world.faults = faults
                let transport = try MQTTTransport(url: broker.url())
                let provider = Provider<NumberEntry>(transport: transport)
                let messages = try await EchoApp.retried {
                    try await provider.messages(.listen("n"))
                }
                try await world.recover(within: .seconds(300))
                world.expect(transport.states.current == .connected, "\(transport.states.current)")
                let begin = world.elapsed
                try await provider.request(.send(1, topic: "n"))
                let time = world.elapsed - begin
                world.expect(time < .seconds(1), "over a good connection a send took \(time)")
                withExtendedLifetime(messages) {}
                await transport.shutdown()
            }
        }

        @Test("A world that does not recover in time tells what is in the way")
        func unrecovered() async throws {
            let violations = try await failed { world in
                let broker = world.broker()
                let transport = try MQTTTransport(url: broker.url())
                try await Provider<NumberEntry>(transport: transport).request(.send(1, topic: "n"))
                broker.loopback.faults.refusesConnections = .serverUnavailable
                broker.restart(keepingState: true)
                try await Task.sleep(for: .seconds(1))
                try await world.recover(within: .seconds(100))
            }
            let trouble = "(transports without the connection that they want: 1)"
            #expect(
                violations.first == "not within 100.0 seconds: every client is well \(trouble)"
            )
        }

        @Test("An event stream that is open does not hide one that waits for its next attempt")
        func hiddenStream() async throws {
            let violations = try await failed { world in
                let broker = world.broker()
                let transport = try SSETransport(url: broker.url(for: .eventStream))
                let provider = Provider<AnyEntry>(transport: transport)
                let open = try await provider.messages(.subscribe(topic: "a"))
                let waiting = try await provider.messages(.subscribe(topic: "b"))
                broker.loopback.faults.refusesConnections = .serverUnavailable
                transport.restart(topic: "b")
                try await Task.sleep(for: .seconds(1))
                world.expect(transport.states.current == .connected, "\(transport.states.current)")
                try await world.recover(within: .seconds(100))
                withExtendedLifetime((open, waiting)) {}
            }
            let trouble = "(transports without the connection that they want: 1)"
            #expect(
                violations.first == "not within 100.0 seconds: every client is well \(trouble)"
            )
        }

        /// The time from a reset until an idle reader knows of it; nil if the seed's first fault is another one.
        private func noticeTime(seed: UInt64, unheardResets: Double) async throws -> Duration? {
            let times = Notes<Duration>()
            try await Simulation.run(seed: seed) { world in
                let transport = try MQTTTransport(url: world.broker().url())
                let messages = try await Provider<NumberEntry>(transport: transport)
                    .messages(.listen("n"))
                var faults = SimulatedFaults(until: .seconds(200))
                faults.connectionLife = .seconds(20)
                faults.unheardResets = unheardResets
                world.faults = faults
                // The connection from before has no fault.
                await transport.pause()
                transport.resume()
                try await world.wait(for: "it is back", within: .seconds(10)) {
                    transport.states.current == .connected
                }
                let count = transport.statistics.connectionCount
                try await world.wait(for: "a fault or their end", within: .seconds(300)) {
                    world.network.faultCount > 0 || !world.network.isFaulty
                }
                let begin = world.elapsed
                if world.network.faultCounts[.reset] == 1 {
                    world.heal()
                    try await world.wait(for: "the reader knows", within: .seconds(100)) {
                        transport.states.current != .connected
                            || transport.statistics.connectionCount > count
                    }
                    times.add(world.elapsed - begin)
                }
                withExtendedLifetime(messages) {}
                await transport.shutdown()
            }
            return times.all.first
        }

        @Test("An idle reader hears of a reset at once, unless its end does not hear of it")
        func idleReader() async throws {
            var heard: [Duration] = []
            var unheard: [Duration] = []
            for seed in 1...40 as ClosedRange<UInt64> {
                if let time = try await noticeTime(seed: seed, unheardResets: 0) {
                    heard.append(time)
                }
                if let time = try await noticeTime(seed: seed, unheardResets: 100) {
                    unheard.append(time)
                }
            }
            #expect(heard.count > 3 && heard.allSatisfy { $0 < .milliseconds(200) }, "\(heard)")
            // With its PINGREQ, or from the system.
            #expect(unheard.contains { $0 > .seconds(10) }, "\(unheard)")
            #expect(unheard.allSatisfy { $0 < .seconds(61) }, "\(unheard)")
        }

        @Test("Nothing may be left behind: no job, no sleeping task, no timer, no connection")
        func leftovers() async throws {
            let sleeping = try await failed { _ in
                Task { try await Task.sleep(for: .seconds(36_000)) }
            }
            #expect(sleeping == ["an hour after the body's end there are tasks that sleep left: 1"])
            let busy = try await failed { _ in
                Task { while true { try await Task.sleep(for: .seconds(50)) } }
            }
            #expect(busy == ["an hour after the body's end there are tasks that sleep left: 1"])
            let connected = try await failed { world in
                let transport = try MQTTTransport(url: world.broker().url())
                try await Provider<NumberEntry>(transport: transport)
                    .request(.send(1, topic: "n"))
                // A task that waits without an end keeps the transport alive.
                Task { for await _ in transport.states {} }
            }
            for what in ["timers", "ends of connections"] {
                #expect(
                    connected.contains { $0.contains("there are \(what) left") },
                    "\(connected)"
                )
            }
            var options = Simulation.Options()
            options.leavesNothing = false
            try await Simulation.run(seed: 1, options: options) { _ in
                Task { try await Task.sleep(for: .seconds(36_000)) }
            }
        }

        @Test("A task that never stops running is left behind, too")
        func leftJobs() async {
            var run = SimulationRun(seed: 1, options: Simulation.Options()) { _ in
                Task { repeat { await Task.yield() } while true }
            }
            run.stepLimit = 10_000
            let violations = await run.once().violations
            #expect(violations == ["an hour after the body's end there are jobs left: 1"])
        }

        @Test("A cancelled sleep leaves nothing behind, however long it would have been")
        func cancelledSleep() async throws {
            try await Simulation.run(seed: 1) { _ in
                let task = Task { try await Task.sleep(for: .seconds(36_000)) }
                await Task.yield()
                task.cancel()
                _ = await task.result
            }
        }

        @Test("`#require` in a body fails the run once, as it is")
        func require() async throws {
            let bodies = Notes<Int>()
            try await withKnownIssue {
                try await Simulation.run(seed: 1) { world in
                    bodies.add(1)
                    try #require(world.seed == 2)
                }
            } matching: { issue in
                issue.error == nil || issue.error is SimulationFailure
            }
            #expect(bodies.all.count == 1)
        }

        @Test("Sizes are as given in a run that is not made smaller")
        func sizes() async throws {
            let sizes = Notes<Int>()
            try await Simulation.run(seed: 1) { world in
                sizes.add(world.size(of: "clients", 7))
                sizes.add(world.size(of: "messages", 100))
            }
            #expect(sizes.all == [7, 100])
        }
    }
#endif
