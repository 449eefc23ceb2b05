#if os(Linux)
    import Testing
    import WaybillLink
    import WireCore

    @Suite("Environment of a link")
    struct LinkEnvironmentTests {
        /// A dialer that always fails with its own error.
        private struct SimulatedDialer: Dialer {
            func dial(
                _ endpoint: Endpoint,
                timeout: Duration,
                timers: any TimerSource
            ) async throws(LinkError) -> any ByteStream {
                throw .silent
            }
        }

        private static func environment() -> LinkEnvironment {
            LinkEnvironment(
                dialer: SimulatedDialer(),
                clock: ManualTimers(),
                random: { 4 }
            )
        }

        /// The error that the body throws; nil when it succeeds.
        private static func error(
            of body: () async throws(LinkError) -> Void
        ) async -> LinkError? {
            do throws(LinkError) {
                try await body()
                return nil
            } catch {
                return error
            }
        }

        @Test("A simulation's environment stands in the place of the system's where it says so")
        func override() async {
            // The override cannot be removed, so the test has a process of its own.
            await #expect(processExitsWith: .success) {
                let isSimulated = Locked(false)
                LinkEnvironment.installOverride {
                    isSimulated.withLock { $0 } ? Self.environment() : nil
                }
                precondition(LinkEnvironment.system.dialer is TCPDialer)
                isSimulated.withLock { $0 = true }
                precondition(LinkEnvironment.system.dialer is SimulatedDialer)
                precondition(LinkEnvironment.system.random() == 4)
                // A second override does not replace the first.
                LinkEnvironment.installOverride { nil }
                precondition(LinkEnvironment.system.dialer is SimulatedDialer)
                isSimulated.withLock { $0 = false }
                precondition(LinkEnvironment.system.dialer is TCPDialer)
            }
        }

        @Test("Inside a simulation, sockets and clocks of the system are refused")
        func refusals() async {
            await #expect(processExitsWith: .success) {
                let real = LinkEnvironment.system
                let listener = try TCPListener { $0.close() }
                let endpoint = Endpoint(host: "127.0.0.1", port: listener.port)
                let isSimulated = Locked(true)
                LinkEnvironment.installOverride {
                    isSimulated.withLock { $0 } ? Self.environment() : nil
                }
                let dialing = await Self.error { () async throws(LinkError) in
                    _ = try await real.dialer.dial(
                        endpoint,
                        timeout: .seconds(10),
                        timers: ManualTimers()
                    )
                }
                precondition(dialing == .unsupported("a real socket inside a simulation"))
                let listening = await Self.error { () async throws(LinkError) in
                    _ = try TCPListener { $0.close() }
                }
                precondition(listening == .unsupported("a real socket inside a simulation"))
                precondition(
                    listening?.description == "a real socket inside a simulation is not available"
                )
                // A timer of the real clock is never set, so that no real thread calls its action.
                let hasFired = Locked(false)
                let early = real.clock.scheduleTimer(at: .zero) { hasFired.withLock { $0 = true } }

                // Other threads keep the real environment.
                isSimulated.withLock { $0 = false }
                let later = Recorder()
                let token = real.clock.scheduleTimer(at: .zero) { later.hearEnd() }
                precondition(token > early)
                await later.wait(ends: 1)
                precondition(!hasFired.withLock { $0 })
                real.clock.cancelTimer(early)
                let stream = try await real.dialer.dial(
                    endpoint,
                    timeout: .seconds(10),
                    timers: real.clock
                )
                stream.close()
                listener.close()
            }
        }
    }
#endif
