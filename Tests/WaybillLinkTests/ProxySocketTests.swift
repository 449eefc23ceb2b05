#if os(Linux)
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    @Suite("Tunnels through a proxy on sockets", .timeLimit(.minutes(30))) struct ProxySocketTests {
        /// Answers the first bytes, then echoes or closes.
        private final class Answerer: ByteStreamReceiver {
            private let stream: any ByteStream
            private let answer: [UInt8]
            private let hangsUp: Bool
            private let hasAnswered = Locked(false)

            init(_ stream: any ByteStream, _ answer: String, hangsUp: Bool) {
                self.stream = stream
                self.answer = Array(answer.utf8)
                self.hangsUp = hangsUp
            }

            func streamIsReadable() {
                var space = [UInt8](repeating: 0, count: 4_096)
                let outcome = space.withUnsafeMutableBytes { try? stream.read(into: $0) }
                guard case .bytes(let count)? = outcome else { return stream.close() }
                let isFirst = hasAnswered.withLock { hasAnswered in
                    defer { hasAnswered = true }
                    return !hasAnswered
                }
                let bytes = isFirst ? answer : Array(space.prefix(count))
                _ = bytes.withUnsafeBytes { try? stream.write($0) }
                if hangsUp { stream.finishWriting() }
            }

            func streamIsWritable() {}
            func streamShouldFlush() {}
            func streamDidEnd(_ error: LinkError?) {}
        }

        private static func proxy(_ answer: String, hangsUp: Bool = false) throws -> TCPListener {
            try TCPListener { stream in
                stream.start(Answerer(stream, answer, hangsUp: hangsUp))
            }
        }

        private static func dial(
            _ listener: TCPListener,
            _ timers: ManualTimers
        ) async throws(LinkError) -> any ByteStream {
            let endpoint = Endpoint(host: "127.0.0.1", port: listener.port)
            return try await TCPDialer().proxied(by: ProxySettings(endpoint: endpoint))
                .dial(
                    // A name that only the proxy can resolve.
                    Endpoint(host: "broker.invalid", port: 1_883),
                    timeout: .seconds(10),
                    timers: timers
                )
        }

        private static func failure(
            _ listener: TCPListener,
            _ timers: ManualTimers = ManualTimers()
        ) -> Task<LinkError?, Never> {
            Task {
                do throws(LinkError) {
                    let stream = try await dial(listener, timers)
                    stream.close()
                    return nil
                } catch { return error }
            }
        }

        @Test("The name is the proxy's to find; what it sends behind its answer is not lost")
        func conversation() async throws {
            let listener = try Self.proxy("HTTP/1.1 200 OK\r\n\r\nfirst\n")
            let stream = try await Self.dial(listener, ManualTimers())
            let heard = Recorder()
            let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
            driver.start(heard.handler)
            await heard.wait(events: 1)
            driver.withCore { core, _ in core.send("second") }
            await heard.wait(events: 2)
            #expect(heard.events == [.line("first"), .line("second")])
            driver.close()
            await heard.wait(ends: 1)
            listener.close()
        }

        /// Opens a tunnel, and resets it when the first bytes come through.
        private final class Resetter: ByteStreamReceiver {
            private let stream: any ByteStream
            private let hasAnswered = Locked(false)

            init(_ stream: any ByteStream) { self.stream = stream }

            func streamIsReadable() {
                let isFirst = hasAnswered.withLock { hasAnswered in
                    defer { hasAnswered = true }
                    return !hasAnswered
                }
                // A close with unread bytes sends a reset.
                guard isFirst else { return stream.close() }
                var space = [UInt8](repeating: 0, count: 4_096)
                _ = space.withUnsafeMutableBytes { try? stream.read(into: $0) }
                let answer = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
                _ = answer.withUnsafeBytes { try? stream.write($0) }
            }

            func streamIsWritable() {}
            func streamShouldFlush() {}
            func streamDidEnd(_ error: LinkError?) {}
        }

        @Test("A tunnel that breaks while its reader holds back is over, and does not wait for it")
        func brokenWhileHeld() async throws {
            let listener = try TCPListener { $0.start(Resetter($0)) }
            let stream = try await Self.dial(listener, ManualTimers())
            let heard = Recorder()
            let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
            driver.start(heard.handler)
            driver.setReading(false)
            driver.withCore(.immediate) { core, _ in core.send("x") }
            await heard.wait(ends: 1)
            #expect(heard.ends == [.reset])
            listener.close()
        }

        @Test("Refused, hung up, stalled, cancelled: no socket and no timer stays")
        func nothingLeft() async {
            // In a separate process no other test has open connections.
            await #expect(processExitsWith: .success) {
                let refusing = try Self.proxy("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
                let hangingUp = try Self.proxy("HTTP/1.1 200", hangsUp: true)
                let talking = try Self.proxy("SSH-2.0-x\r\n\r\n")
                let stalling = try Self.proxy("HTTP/1.1 ")
                let open = try Self.proxy("HTTP/1.1 200 OK\r\n\r\nmore")
                let before = openSockets()
                for _ in 0..<3 {
                    guard case .proxyRefused? = await Self.failure(refusing).value,
                        await Self.failure(hangingUp).value == .proxy(.endOfStream),
                        case .proxyViolation? = await Self.failure(talking).value,
                        await Self.failure(open).value == nil
                    else { preconditionFailure("another end") }
                    let timers = ManualTimers()
                    let stalled = Self.failure(stalling, timers)
                    let isOver = Locked(false)
                    let clock = Task {
                        try await waitUntil(moving: { timers.advance(by: .milliseconds(50)) }) {
                            isOver.withLock({ $0 })
                        }
                    }
                    let error = await stalled.value
                    isOver.withLock { $0 = true }
                    try await clock.value
                    precondition(error == .proxy(.timedOut), "\(error as Any)")
                    let cancelled = Self.failure(stalling, timers)
                    try await waitUntil { timers.count != 0 }
                    cancelled.cancel()
                    let end = await cancelled.value
                    precondition(end == .cancelled, "\(end as Any)")
                    precondition(timers.count == 0)
                }
                // The loop's thread closes streams a little later.
                try await waitUntil { openSockets() == before }
                for listener in [refusing, hangingUp, talking, stalling, open] { listener.close() }
            }
        }
    }
#endif
