#if os(Linux)
    import Glibc
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    @Suite("The race of addresses on sockets", .timeLimit(.minutes(30))) struct TCPRaceTests {
        /// A listener that counts its connections.
        private final class LiveListener: Sendable {
            let count = Locked(0)

            func listen() throws -> TCPListener {
                try TCPListener { [self] stream in
                    count.withLock { $0 += 1 }
                    stream.close()
                }
            }
        }

        private static let localhost: UInt32 = 0x7F00_0001

        private static func dialer(_ addresses: SocketAddress...) -> TCPDialer {
            TCPDialer { _, completion in completion(.success(addresses)) }
        }

        private static func dial(
            _ dialer: TCPDialer,
            _ timers: ManualTimers
        ) -> Task<LinkError?, Never> {
            Task {
                do throws(LinkError) {
                    let stream = try await dialer.dial(
                        Endpoint(host: "several.example", port: 1),
                        timeout: .seconds(10),
                        timers: timers
                    )
                    stream.close()
                    return nil
                } catch { return error }
            }
        }

        @Test("A dead first address costs 250 ms: then the second is tried, and wins")
        func deadFirst() async throws {
            let dead = try SilentListener()
            let live = LiveListener()
            let listener = try live.listen()
            let timers = ManualTimers()
            let outcome = Self.dial(
                Self.dialer(
                    .ipv4(Self.localhost, port: dead.port),
                    .ipv4(Self.localhost, port: listener.port)
                ),
                timers
            )
            // One timer for the timeout and one for the second address.
            try await waitUntil { timers.count >= 2 }
            timers.advance(by: .milliseconds(249))
            #expect(timers.count == 2)
            #expect(live.count.withLock { $0 } == 0)
            timers.advance(by: .milliseconds(1))
            #expect(await outcome.value == nil)
            #expect(timers.count == 0)
            try await waitUntil { live.count.withLock({ $0 }) != 0 }
            listener.close()
            dead.close()
        }

        @Test("A first address that refuses costs nothing, IPv6 or IPv4")
        func refusingFirst() async throws {
            let live = LiveListener()
            let listener = try live.listen()
            let closed = try SilentListener(backlog: nil)
            defer { closed.close() }
            // Without IPv6 on the system, the first address fails at once, too.
            for first in [
                SocketAddress.ipv6Loopback(port: closed.port),
                .ipv4(Self.localhost, port: closed.port),
            ] {
                let timers = ManualTimers()
                let dialer = Self.dialer(first, .ipv4(Self.localhost, port: listener.port))
                #expect(await Self.dial(dialer, timers).value == nil)
                #expect(timers.count == 0)
                #expect(timers.now == .zero)
            }
            listener.close()
        }

        @Test("All refuse: refused, without waiting")
        func allRefuse() async throws {
            let closed = try SilentListener(backlog: nil)
            defer { closed.close() }
            let timers = ManualTimers()
            let address = SocketAddress.ipv4(Self.localhost, port: closed.port)
            let dialer = Self.dialer(address, address, address)
            #expect(await Self.dial(dialer, timers).value == .refused)
            #expect(timers.count == 0)
        }

        @Test("No address at all is unreachable")
        func noAddress() async throws {
            let timers = ManualTimers()
            let error = await Self.dial(Self.dialer(), timers).value
            #expect(error == .unreachable(errorNumber: 0))
            #expect(timers.count == 0)
        }

        @Test("Dead addresses only: the time allowed ends it, and so does cancelling")
        func allDead() async throws {
            let dead = try SilentListener()
            let address = SocketAddress.ipv4(Self.localhost, port: dead.port)
            let timers = ManualTimers()
            let attempt = Self.dial(Self.dialer(address, address, address), timers)
            try await waitUntil { timers.count >= 2 }
            timers.advance(by: .milliseconds(250))
            #expect(timers.count == 2)
            timers.advance(by: .milliseconds(250))
            // The last address is being tried, so only the timeout is left.
            #expect(timers.count == 1)
            timers.advance(by: .milliseconds(9_500))
            #expect(await attempt.value == .timedOut)
            #expect(timers.count == 0)

            let cancelled = Self.dial(Self.dialer(address, address), timers)
            try await waitUntil { timers.count >= 2 }
            cancelled.cancel()
            #expect(await cancelled.value == .cancelled)
            #expect(timers.count == 0)
            dead.close()
        }

        @Test("Cancelled before the addresses are known: nothing is tried any more")
        func lateAddresses() async throws {
            let live = LiveListener()
            let listener = try live.listen()
            let waiting = Locked<(@Sendable (Result<[SocketAddress], LinkError>) -> Void)?>(nil)
            let dialer = TCPDialer { _, completion in waiting.withLock { $0 = completion } }
            let timers = ManualTimers()
            let attempt = Self.dial(dialer, timers)
            try await waitUntil { waiting.withLock({ $0 != nil }) }
            attempt.cancel()
            #expect(await attempt.value == .cancelled)
            let address = SocketAddress.ipv4(Self.localhost, port: listener.port)
            waiting.withLock { $0 }?(.success([address]))
            #expect(timers.count == 0)
            #expect(live.count.withLock { $0 } == 0)
            listener.close()
        }

        @Test("A winner that is closed before it was started leaves the loop, too")
        func closedUnstarted() async {
            // In a separate process no other test keeps the loop running.
            await #expect(processExitsWith: .success) {
                let listener = try SilentListener(backlog: 8)
                let before = openSockets()
                let dialer = Self.dialer(.ipv4(Self.localhost, port: listener.port))
                let error = await Self.dial(dialer, ManualTimers()).value
                precondition(error == nil, "\(error as Any)")
                // The loop's thread closes the stream and then ends, a little later.
                let end = ContinuousClock.now + .seconds(120)
                while loopThreads() > 0 {
                    precondition(ContinuousClock.now < end, "the loop still runs")
                    await Task.yield()
                }
                precondition(openSockets() == before)
                listener.close()
            }
        }

        @Test("The losers of a race, and all sockets of a race without a winner, are closed")
        func nothingLeft() async {
            // In a separate process no other test has open connections.
            await #expect(processExitsWith: .success) {
                let dead = try SilentListener()
                let refusing = try SilentListener(backlog: nil)
                defer { refusing.close() }
                // The listener keeps the loop running.
                let listener = try TCPListener { $0.close() }
                let addresses = [dead.port, refusing.port, dead.port, listener.port].map {
                    SocketAddress.ipv4(Self.localhost, port: $0)
                }
                let before = openSockets()
                for count in [4, 3, 1] {
                    let timers = ManualTimers()
                    let dialer = TCPDialer { _, completion in
                        completion(.success(Array(addresses.prefix(count))))
                    }
                    let attempt = Self.dial(dialer, timers)
                    let isOver = Locked(false)
                    let clock = Task {
                        while !isOver.withLock({ $0 }) {
                            // While an address is due, move to it. After the last address, move to the timeout.
                            switch timers.count {
                            case 2: timers.advance(by: .milliseconds(250))
                            case 1 where count < 4: timers.advance(by: .seconds(10))
                            default: break
                            }
                            await Task.yield()
                        }
                    }
                    let error = await attempt.value
                    isOver.withLock { $0 = true }
                    await clock.value
                    precondition(
                        error == (count == 4 ? nil : .timedOut),
                        "\(count): \(error as Any)"
                    )
                }
                // The loop's thread closes streams a little later.
                try await waitUntil { openSockets() == before }
                listener.close()
                dead.close()
            }
        }
    }

    /// The number of threads of the event loop in this process.
    func loopThreads() -> Int {
        guard let directory = opendir("/proc/self/task") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) {
            let number = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { Int32(atoi($0)) }
            }
            guard let file = fopen("/proc/self/task/\(number)/comm", "r") else { continue }
            defer { fclose(file) }
            var name = [UInt8](repeating: 0, count: 64)
            let length = fread(&name, 1, 63, file)
            let text = String(decoding: name.prefix(length), as: UTF8.self)
            if text.hasPrefix(EventLoop.threadName) { count += 1 }
        }
        return count
    }

    /// The number of open sockets in this process. Descriptors of other kinds may belong to libraries.
    func openSockets() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) {
            let number = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { Int32(atoi($0)) }
            }
            var status = stat()
            if fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK { count += 1 }
        }
        return count
    }
#endif
