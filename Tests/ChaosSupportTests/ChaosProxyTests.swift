#if os(Linux)
    import ChaosSupport
    import Testing
    import WireTestSupport

    /// Each fault as the client and the server of a connection see it.
    @Suite("Chaos proxy", .timeLimit(.minutes(30))) struct ChaosProxyTests {
        private static let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

        /// Sends 1,000 bytes to an echo server through a raging proxy, and returns what the client sees.
        private func visit(
            _ plan: ChaosPlan,
            seed: UInt64 = 1,
            finishes: Bool = true
        ) throws -> (
            bytes: [UInt8], end: RawEnd?, sizes: [Int], server: [RawEnd], proxy: ChaosCounts
        ) {
            let server = try EchoServer()
            let proxy = try ChaosProxy(to: server.port, seed: seed, plan: plan)
            proxy.rage()
            let seen: (bytes: [UInt8], end: RawEnd?, sizes: [Int])
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                client.send(Self.bytes)
                if finishes { client.finish() }
                seen = client.receiveAll()
            }
            server.waitForEnd()
            let counts = proxy.counts
            proxy.close()
            server.stop()
            return (seen.bytes, seen.end, seen.sizes, server.ends, counts)
        }

        @Test("A reset is one for both sides, at its byte")
        func reset() throws {
            let seen = try visit(ChaosPlan(only: .reset, after: 400))
            #expect(seen.end == .reset)
            // Bytes that the echo had not sent yet are lost. Each direction has faults of its own.
            #expect(seen.bytes == Array(Self.bytes.prefix(seen.bytes.count)))
            #expect(seen.bytes.count <= 400)
            #expect(seen.server == [.reset])
            #expect(seen.proxy.faults == [.reset: 1])
            #expect(seen.proxy.bytesUp == 400)
        }

        @Test(
            "A stall holds both directions; then it goes on or is reset",
            arguments: 1...8 as ClosedRange<UInt64>
        )
        func stall(seed: UInt64) throws {
            var plan = ChaosPlan(only: .stall, after: 400)
            plan.stalls = .milliseconds(40) ... .milliseconds(60)
            let clock = ContinuousClock()
            let begin = clock.now
            let seen = try visit(plan, seed: seed)
            #expect(clock.now - begin > .milliseconds(30))
            #expect((seen.proxy.faults[.stall] ?? 0) >= 1)
            #expect(seen.proxy.faultCount == seen.proxy.faults[.stall])
            if seen.end == .finished {
                #expect(seen.bytes == Self.bytes)
                #expect(seen.server == [.finished])
            } else {
                // The server may have seen the end of the client's bytes before that.
                #expect(seen.end == .reset)
                #expect(seen.server.count == 1)
            }
        }

        @Test("Some stalls go on, and some are reset")
        func stallEnds() throws {
            var plan = ChaosPlan(only: .stall, after: 900)
            plan.stalls = .milliseconds(1) ... .milliseconds(2)
            var ends: [RawEnd?] = []
            for seed in 1...16 as ClosedRange<UInt64> {
                ends.append(try visit(plan, seed: seed).end)
            }
            #expect(ends.contains(.finished))
            #expect(ends.contains(.reset))
        }

        @Test("A half-close ends one direction, and the other goes on")
        func halfClose() throws {
            let seen = try visit(ChaosPlan(only: .halfClose, after: 400), finishes: false)
            // The server sees the end after the first 400 bytes, and its whole answer comes back.
            #expect(seen.bytes == Array(Self.bytes.prefix(400)))
            #expect(seen.end == .finished)
            #expect(seen.server == [.finished])
            #expect(seen.proxy.faults == [.halfClose: 1])
        }

        @Test("A connection that was ended one way and is not left by its sides is reset in time")
        func farewell() throws {
            var plan = ChaosPlan(only: .halfClose, after: 1)
            plan.farewell = .milliseconds(30)
            let listener = try SilentListener(backlog: 1)
            let proxy = try ChaosProxy(to: listener.port, seed: 1, plan: plan)
            proxy.rage()
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                client.send([1, 2])
                #expect(client.receive().end == .reset)
            }
            proxy.close()
            listener.close()
        }

        @Test("A delay loses nothing")
        func delay() throws {
            var plan = ChaosPlan(only: .delay, after: 300)
            plan.delays = .milliseconds(20) ... .milliseconds(20)
            let clock = ContinuousClock()
            let begin = clock.now
            let seen = try visit(plan)
            #expect(seen.bytes == Self.bytes)
            #expect(seen.end == .finished)
            #expect(seen.proxy.faults == [.delay: 6])
            // Each direction is late three times. Both may be late at the same time.
            #expect(clock.now - begin > .milliseconds(55))
        }

        @Test("What is split comes in pieces of three bytes at most, and whole")
        func split() throws {
            var plan = ChaosPlan(only: .split, after: 500)
            plan.pieces = 40...40
            let seen = try visit(plan)
            #expect(seen.bytes == Self.bytes)
            #expect(seen.end == .finished)
            #expect(seen.proxy.faults == [.split: 2])
            // A slow reader finds some of the pieces joined.
            #expect(seen.sizes.count > 10)
        }

        @Test("What is truncated ends in order, before its end")
        func truncate() throws {
            let seen = try visit(ChaosPlan(only: .truncate, after: 400), finishes: false)
            #expect(seen.bytes.count <= 400)
            #expect(seen.bytes == Array(Self.bytes.prefix(seen.bytes.count)))
            #expect(seen.end == .finished)
            #expect(seen.server == [.finished])
            #expect(seen.proxy.faults == [.truncate: 1])
            #expect(seen.proxy.bytesUp == 400)
        }

        @Test("While it refuses, no client can connect; after that, or when calm, every one can")
        func refuse() throws {
            var plan = ChaosPlan(only: .refuse, after: 1)
            plan.refusals = .seconds(600) ... .seconds(600)
            let server = try EchoServer()
            let proxy = try ChaosProxy(to: server.port, seed: 1, plan: plan)
            proxy.rage()
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                client.send([1, 2])
                #expect(client.receive().end == .reset)
            }
            #expect(throws: RawSocket.Failure.self) { _ = try RawSocket(connectedTo: proxy.port) }
            proxy.calm()
            var answer: [UInt8]?
            while answer == nil {
                guard let client = try? RawSocket(connectedTo: proxy.port) else { continue }
                client.send([1, 2])
                answer = client.receiveAll(2).bytes
            }
            #expect(answer == [1, 2])
            proxy.close()
            server.stop()
        }

        @Test("A fault may come by the time alone")
        func byTime() throws {
            var plan = ChaosPlan(only: .reset, after: 1_000_000)
            plan.timeBetweenFaults = .milliseconds(5) ... .milliseconds(10)
            let server = try EchoServer()
            let proxy = try ChaosProxy(to: server.port, seed: 1, plan: plan)
            proxy.rage()
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                #expect(client.receive().end == .reset)
            }
            #expect(proxy.counts.faults == [.reset: 1])
            proxy.close()
            server.stop()
        }

        @Test("The same seed decides the same for the same bytes; another seed decides otherwise")
        func repeats() throws {
            // Only faults that do not depend on which direction moves first.
            func faults(_ seed: UInt64) throws -> [Int] {
                var plan = ChaosPlan()
                plan.kinds = [.reset]
                plan.bytesBetweenFaults = 1...500
                let server = try EchoServer()
                let proxy = try ChaosProxy(to: server.port, seed: seed, plan: plan)
                proxy.rage()
                var passed: [Int] = []
                for _ in 0..<10 {
                    let before = proxy.counts.bytesUp
                    let client = try RawSocket(connectedTo: proxy.port)
                    // The next byte is sent after the echo of the last one, so there is one order of events.
                    for byte in Self.bytes {
                        client.send([byte])
                        if client.receiveAll(1).end != nil { break }
                    }
                    passed.append(proxy.counts.bytesUp - before)
                }
                proxy.close()
                server.stop()
                return passed
            }
            let first = try faults(7)
            #expect(try faults(7) == first)
            #expect(try faults(8) != first)
            #expect(Set(first).count > 3)
        }

        @Test("Calm, 10 MB go both ways untouched")
        func calm() throws {
            let server = try EchoServer()
            let proxy = try ChaosProxy(to: server.port, seed: 1)
            let bytes = (0..<10 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            let client = try RawSocket(connectedTo: proxy.port)
            // At most 256 KiB are in transit, so that one thread can both write and read.
            var heard: [UInt8] = []
            var start = 0
            while heard.count < bytes.count {
                while start < bytes.count, start - heard.count < 256 << 10 {
                    let end = min(start + 65_536, bytes.count)
                    client.send(Array(bytes[start..<end]))
                    start = end
                }
                let (more, end) = client.receive()
                heard += more
                guard end == nil else { break }
            }
            #expect(heard == bytes)
            client.finish()
            #expect(client.receive().end == .finished)
            #expect(proxy.faultCount == 0)
            #expect(proxy.counts.bytesUp == bytes.count)
            #expect(proxy.counts.bytesDown == bytes.count)
            #expect(proxy.counts.mostHeld <= 16_384)
            server.waitForEnd()
            proxy.close()
            server.stop()
            #expect(server.ends == [.finished])
        }

        @Test("Frozen, nothing moves; thawed, everything goes on, but for what was dropped")
        func freeze() throws {
            let server = try EchoServer()
            let proxy = try ChaosProxy(to: server.port, seed: 1)
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                client.send([1])
                #expect(client.receiveAll(1).bytes == [1])
                proxy.freeze()
                client.send([2])
                let before = proxy.counts.bytesUp
                #expect(before == 1)
                proxy.thaw()
                #expect(client.receiveAll(1).bytes == [2])
                proxy.freeze()
                client.send([3])
                proxy.dropConnections()
                #expect(client.receive().end == .reset)
                proxy.thaw()
            }
            proxy.close()
            server.stop()
            #expect(server.received == 2)
        }

        @Test("A side that does not read holds back the other")
        func backPressure() throws {
            let listener = try SilentListener(backlog: 1)
            let proxy = try ChaosProxy(to: listener.port, seed: 1)
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                client.makeNonBlocking()
                // The server does not read, so only the sockets and the proxy hold bytes.
                while client.send([UInt8](repeating: 1, count: 65_536)) {}
            }
            #expect(proxy.counts.mostHeld <= 16_384)
            proxy.close()
            listener.close()
        }

        @Test("When no server listens behind it, connections are reset")
        func unreachable() throws {
            let listener = try SilentListener(backlog: nil)
            let proxy = try ChaosProxy(to: listener.port, seed: 1)
            do {
                let client = try RawSocket(connectedTo: proxy.port)
                #expect(client.receive().end == .reset)
            }
            #expect(proxy.counts.unreachable == 1)
            #expect(proxy.faultCount == 0)
            proxy.close()
            listener.close()
        }

        @Test("Closed, it leaves neither descriptors nor threads nor memory")
        func nothingLeft() async {
            await #expect(processExitsWith: .success) {
                try ragingRound(1)
                let before = OpenResources(loop: "nothing")
                for seed in 2...15 as ClosedRange<UInt64> { try ragingRound(seed) }
                let after = OpenResources(loop: "nothing")
                #expect(after.descriptors == before.descriptors, "\(before) became \(after)")
                // Threads of the runtime come and go.
                #expect(after.threads < before.threads + 10, "\(before) became \(after)")
                // The allocator keeps some memory for each thread.
                #expect(before.allocatedBytes > 0)
                #expect(
                    after.allocatedBytes < before.allocatedBytes + 2 << 20,
                    "\(before) became \(after)"
                )
            }
        }
    }

    /// Fifteen connections through a proxy that breaks most of them. One is open when the proxy closes.
    private func ragingRound(_ seed: UInt64) throws {
        let server = try EchoServer()
        var plan = ChaosPlan()
        plan.bytesBetweenFaults = 1...2_000
        plan.stalls = .milliseconds(1) ... .milliseconds(3)
        plan.delays = .milliseconds(1) ... .milliseconds(3)
        plan.refusals = .milliseconds(1) ... .milliseconds(3)
        plan.farewell = .milliseconds(10)
        let proxy = try ChaosProxy(to: server.port, seed: seed, plan: plan)
        proxy.rage()
        var count = 0
        while count < 15 {
            guard let client = try? RawSocket(connectedTo: proxy.port) else { continue }
            count += 1
            client.send([UInt8](repeating: 7, count: 5_000))
            client.finish()
            _ = client.receiveAll()
        }
        #expect(proxy.faultCount > 0)
        proxy.calm()
        var open = try? RawSocket(connectedTo: proxy.port)
        while open == nil { open = try? RawSocket(connectedTo: proxy.port) }
        proxy.close()
        _ = consume open
        server.stop()
    }
#endif
