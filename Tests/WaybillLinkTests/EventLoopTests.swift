#if os(Linux)
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    @Suite("Connections that share the event loop", .timeLimit(.minutes(30))) struct EventLoopTests
    {
        /// The loop's timers. Each fires 20 ms after it was set, and the clock jumps to its deadline.
        private final class LeapingTimers: TimerSource {
            private let base = SystemClock.shared
            private let leapt = Locked(WireInstant.zero)

            var now: WireInstant { max(base.now, leapt.withLock { $0 }) }

            func scheduleTimer(
                at deadline: WireInstant,
                _ action: @escaping @Sendable () -> Void
            ) -> UInt64 {
                let soon = base.now.advanced(by: .milliseconds(20))
                return base.scheduleTimer(at: min(deadline, soon)) { [self] in
                    leapt.withLock { $0 = max($0, deadline) }
                    action()
                }
            }

            func cancelTimer(_ token: UInt64) { base.cancelTimer(token) }
        }

        private func connect(
            to port: UInt16,
            timers: any TimerSource,
            _ handler: Driver<LineCore>.Handler
        ) async throws -> Driver<LineCore> {
            let endpoint = Endpoint(host: "127.0.0.1", port: port)
            let stream = try await TCPDialer().dial(
                endpoint,
                timeout: .seconds(60),
                timers: SystemClock.shared
            )
            let driver = Driver(core: LineCore(), stream: stream, timers: timers)
            driver.start(handler)
            return driver
        }

        private func echo() throws -> TCPListener {
            try TCPListener { stream in
                // The stream keeps the driver alive until its end.
                Driver(core: LineCore(echoes: true), stream: stream, timers: ManualTimers())
                    .start(Recorder().handler)
            }
        }

        @Test(
            "A peer that reads nothing is cut off, and another connection goes on before and after"
        )
        func deafPeer() async throws {
            let deaf = try SilentListener(backlog: 8)
            let timers = LeapingTimers()
            let cut = Recorder()
            let hostile = try await connect(to: deaf.port, timers: timers, cut.handler)

            let listener = try echo()
            let heard = Recorder()
            let healthy = try await connect(
                to: listener.port,
                timers: ManualTimers(),
                heard.handler
            )
            healthy.withCore(.immediate) { core, _ in core.send("before") }
            await heard.wait(events: 1)

            // More bytes than the sockets of both sides hold.
            let megabyte = String(repeating: "x", count: 1 << 20)
            hostile.withCore(.immediate) { core, _ in
                for _ in 0..<32 { core.send(megabyte) }
                core.isFinished = true
            }
            await cut.wait(ends: 1)
            healthy.withCore(.immediate) { core, _ in core.send("after") }
            await heard.wait(events: 2)
            #expect(heard.events == [.line("before"), .line("after")])
            #expect(hostile.unsentByteCount > 0)

            healthy.close()
            await heard.wait(ends: 1)
            listener.close()
            deaf.close()
        }

        @Test(
            "A connection that breaks while nothing is read is heard to its end when reading goes on"
        )
        func brokenWhileHeld() async throws {
            let listener = try SilentListener(backlog: 8)
            let heard = Recorder()
            let driver = try await connect(
                to: listener.port,
                timers: ManualTimers(),
                heard.handler
            )
            driver.setReading(false)
            // More bytes than one read takes, and then a reset.
            let lines = (0..<20_000).map { "line \($0)\n" }.joined()
            try listener.acceptAndWriteThenReset(lines)
            // When another connection has had its turns, the loop has seen the reset.
            let echo = try echo()
            let other = Recorder()
            let healthy = try await connect(to: echo.port, timers: ManualTimers(), other.handler)
            healthy.withCore(.immediate) { core, _ in core.send("turn") }
            await other.wait(events: 1)
            driver.setReading(true)
            await heard.wait(ends: 1)
            #expect(heard.ends == [.reset])
            healthy.close()
            await other.wait(ends: 1)
            echo.close()
            listener.close()
        }

        @Test("Timers alone keep the thread, and the token of one is never that of another")
        func timersAlone() async throws {
            await #expect(processExitsWith: .success) {
                let clock = SystemClock.shared
                let never = clock.scheduleTimer(at: clock.now.advanced(by: .seconds(3_600))) {}
                let begun = await OpenResources.settled(loop: EventLoop.threadName) {
                    $0.loops == 1
                }
                precondition(begun.loops == 1, "\(begun)")
                clock.cancelTimer(never)
                LinkEnvironment.reclaim()
                let ended = await OpenResources.settled(loop: EventLoop.threadName) {
                    $0.loops == 0
                }
                precondition(ended.loops == 0, "\(ended)")
                for _ in 0..<10 {
                    let fired = Recorder()
                    let token = clock.scheduleTimer(at: clock.now.advanced(by: .milliseconds(5))) {
                        fired.hearEnd()
                    }
                    clock.cancelTimer(never)
                    precondition(token > never)
                    await fired.wait(ends: 1)
                    clock.cancelTimer(token)
                }
                let left = await OpenResources.settled(loop: EventLoop.threadName) {
                    $0.loops == 0
                }
                precondition(left.loops == 0, "\(left)")
            }
        }

        @Test(
            "A timer that sets itself anew for a time that has passed leaves descriptors and jobs their turns"
        )
        func timerThatNeverWaits() async throws {
            let timers = SystemClock.shared
            let goesOn = Locked(true)
            @Sendable func again() {
                guard goesOn.withLock({ $0 }) else { return }
                _ = timers.scheduleTimer(at: .zero) { again() }
            }
            again()
            let listener = try echo()
            let heard = Recorder()
            let healthy = try await connect(
                to: listener.port,
                timers: ManualTimers(),
                heard.handler
            )
            let ran = Recorder()
            _ = timers.scheduleTimer(at: timers.now) { ran.hearEnd() }
            await ran.wait(ends: 1)
            healthy.withCore(.immediate) { core, _ in core.send("heard") }
            await heard.wait(events: 1)
            goesOn.withLock { $0 = false }
            healthy.close()
            await heard.wait(ends: 1)
            listener.close()
        }
    }
#endif
