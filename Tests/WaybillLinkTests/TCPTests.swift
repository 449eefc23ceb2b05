#if os(Linux)
    import Glibc
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    @Suite("TCP on the event loop", .timeLimit(.minutes(30))) struct TCPTests {
        /// A listener whose connections echo lines. It keeps their drivers.
        private final class EchoServer: Sendable {
            let streams = Locked([Driver<LineCore>]())
            let heard = Recorder()
            let timers = ManualTimers()

            func listen() throws -> TCPListener {
                try TCPListener { [self] stream in
                    let driver = Driver(
                        core: LineCore(echoes: true),
                        stream: stream,
                        timers: timers
                    )
                    streams.withLock { $0.append(driver) }
                    driver.start(heard.handler)
                }
            }
        }

        private func connect(
            to port: UInt16,
            host: String = "127.0.0.1",
            timers: ManualTimers = ManualTimers(),
            _ recorder: Recorder
        ) async throws -> Driver<LineCore> {
            let endpoint = Endpoint(host: host, port: port)
            let stream = try await TCPDialer().dial(endpoint, timeout: .seconds(10), timers: timers)
            let driver = Driver(
                core: LineCore(),
                stream: stream,
                timers: timers
            )
            driver.start(recorder.handler)
            return driver
        }

        @Test(
            "What a socket takes in parts arrives whole, in order, with what was written meanwhile"
        )
        func partialWrites() async throws {
            let server = EchoServer()
            let listener = try server.listen()
            let recorder = Recorder()
            let driver = try await connect(to: listener.port, recorder)
            driver.withCore { core, _ in core.send("first") }
            await recorder.wait(events: 1)
            for peer in server.streams.withLock({ $0 }) { peer.setReading(false) }
            // More than the systems of both ends take.
            let line = String(repeating: "0123456789", count: 2_000_000)
            driver.withCore { core, _ in core.send(line) }
            #expect(driver.unsentByteCount > 0, "the socket has taken all")
            driver.withCore { core, _ in core.send("last") }
            for peer in server.streams.withLock({ $0 }) { peer.setReading(true) }
            await server.heard.wait(events: 3)
            #expect(server.heard.events == [.line("first"), .line(line), .line("last")])
            driver.close()
            await recorder.wait(ends: 1)
            listener.close()
        }

        @Test("Lines go there and back, small and large, and the name localhost is resolved")
        func echo() async throws {
            let server = EchoServer()
            let listener = try server.listen()
            let recorder = Recorder()
            let driver = try await connect(to: listener.port, host: "localhost", recorder)
            let lines = (0..<1_000).map { "\($0)" } + [String(repeating: "z", count: 300_000)]
            for line in lines { driver.withCore { core, _ in core.send(line) } }
            await recorder.wait(events: lines.count)
            #expect(recorder.events == lines.map { .line($0) })
            driver.close()
            await recorder.wait(ends: 1)
            #expect(recorder.ends == [nil])
            await server.heard.wait(ends: 1)
            listener.close()
        }

        @Test("A port without a listener refuses connections")
        func refused() async throws {
            let listener = try TCPListener { $0.close() }
            let port = listener.port
            listener.close()
            await #expect(throws: LinkError.refused) {
                _ = try await TCPDialer().dial(
                    Endpoint(host: "127.0.0.1", port: port),
                    timeout: .seconds(10),
                    timers: ManualTimers()
                )
            }
        }

        @Test("A name without address is told apart")
        func unknownName() async throws {
            do {
                _ = try await TCPDialer().dial(
                    Endpoint(host: "no such name.invalid", port: 1),
                    timeout: .seconds(10),
                    timers: ManualTimers()
                )
                Issue.record("a name that cannot exist was resolved")
            } catch {
                guard case .nameNotResolved(let host, _) = error else {
                    Issue.record("\(error)")
                    return
                }
                #expect(host == "no such name.invalid")
            }
        }

        @Test("A server that does not answer: the timeout and cancelling both end the attempt")
        func timeoutAndCancellation() async throws {
            let silent = try SilentListener()
            let timers = ManualTimers()
            let endpoint = Endpoint(host: "127.0.0.1", port: silent.port)
            let attempt = Task { () -> LinkError? in
                do throws(LinkError) {
                    _ = try await TCPDialer().dial(endpoint, timeout: .seconds(3), timers: timers)
                    return nil
                } catch { return error }
            }
            try await waitUntil { timers.count != 0 }
            timers.advance(by: .seconds(3))
            #expect(await attempt.value == .timedOut)
            #expect(timers.count == 0)

            let cancelled = Task { () -> LinkError? in
                do throws(LinkError) {
                    _ = try await TCPDialer().dial(endpoint, timeout: .seconds(3), timers: timers)
                    return nil
                } catch { return error }
            }
            try await waitUntil { timers.count != 0 }
            cancelled.cancel()
            #expect(await cancelled.value == .cancelled)
            #expect(timers.count == 0)
            silent.close()
        }

        @Test("A peer that closes is an end of stream, one that resets is a reset")
        func peerEnds() async throws {
            let server = EchoServer()
            let listener = try server.listen()
            let recorder = Recorder()
            let driver = try await connect(to: listener.port, recorder)
            driver.withCore { core, _ in core.send("hello") }
            await recorder.wait(events: 1)
            server.streams.withLock { $0.first }?.close()
            await recorder.wait(events: 2, ends: 1)
            #expect(recorder.events == [.line("hello"), .ended])
            #expect(recorder.ends == [.endOfStream])

            let abandoned = Recorder()
            let third = try await connect(to: listener.port, abandoned)
            third.withCore { core, _ in core.send("hello") }
            await abandoned.wait(events: 1)
            server.streams.withLock { $0.last }?.abandon()
            await abandoned.wait(ends: 1)
            #expect(abandoned.ends == [.reset])
            listener.close()

            let abrupt = try SilentListener(backlog: 8)
            let reset = Recorder()
            let other = try await connect(to: abrupt.port, reset)
            try abrupt.acceptAndReset()
            await reset.wait(ends: 1)
            #expect(reset.ends == [.reset])
            other.withCore { core, _ in core.send("nobody listens") }
            #expect(reset.ends == [.reset])
            abrupt.close()
        }

        @Test("Half-close: what the peer wrote before finishing is still heard")
        func halfClose() async throws {
            let abrupt = try SilentListener(backlog: 8)
            let recorder = Recorder()
            let driver = try await connect(to: abrupt.port, recorder)
            try abrupt.acceptAndWrite("last words\n", thenFinish: true)
            await recorder.wait(events: 2, ends: 1)
            #expect(recorder.events == [.line("last words"), .ended])
            #expect(recorder.ends == [.endOfStream])
            driver.close()
            abrupt.close()
        }
    }
#endif
