#if os(Linux)
    import Glibc
    import WireCore
    import WireTestSupport

    /// The thread of a ``ChaosProxy``: one loop over `poll`.
    final class ChaosRelay {
        private struct Connection {
            var up: ChaosFlow
            var down: ChaosFlow
            var isConnecting = true
            /// The time at which the connection is reset in any case.
            var resetTime = UInt64.max

            var client: Int32 { up.source }
            var server: Int32 { up.sink }

            /// True when both sides have ended and the proxy has forwarded both ends.
            var isOver: Bool {
                up.isFinished && down.isFinished && up.isOver && down.isOver
            }
        }

        private let shared: ChaosProxy.Shared
        private let plan: ChaosPlan
        private let seed: UInt64
        private let target: UInt16
        private let port: UInt16
        private let wakeUp: Int32
        private var listener: Int32
        /// The time at which the listener opens again.
        private var listenTime: UInt64 = 0
        private var connections: [UInt64: Connection] = [:]
        private var lastConnection: UInt64 = 0
        private var isCalm = true
        private var isFrozen = false

        init(
            _ shared: ChaosProxy.Shared,
            _ plan: ChaosPlan,
            seed: UInt64,
            target: UInt16,
            listener: Int32,
            wakeUp: Int32
        ) {
            self.shared = shared
            self.plan = plan
            self.seed = seed
            self.target = target
            self.listener = listener
            self.wakeUp = wakeUp
            port = LoopbackAddress.port(of: listener)
        }

        private var now: UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        }

        // MARK: The loop

        func run() {
            while heedsOrders() { wait() }
            for number in connections.keys { reset(number) }
            if listener >= 0 { close(listener) }
        }

        /// Takes over the orders in the shared state.
        ///
        /// - Returns: False when the proxy is closing.
        private func heedsOrders() -> Bool {
            let (isClosing, isCalm, isFrozen, mustDrop) = shared.state.withLock { state in
                defer { state.mustDrop = false }
                state.hasFrozen = state.isFrozen
                return (state.isClosing, state.isCalm, state.isFrozen, state.mustDrop)
            }
            self.isFrozen = isFrozen
            if isCalm, !self.isCalm { calmDown() }
            self.isCalm = isCalm
            if mustDrop { for number in connections.keys { reset(number) } }
            return !isClosing
        }

        /// Lets all held bytes move and opens the listener.
        private func calmDown() {
            for number in connections.keys {
                guard var connection = connections[number] else { continue }
                connection.up.heldUntil = 0
                connection.down.heldUntil = 0
                if !connection.up.isFinished, !connection.down.isFinished {
                    connection.resetTime = .max
                }
                connections[number] = connection
            }
            listenTime = 0
        }

        private func wait() {
            guard !isFrozen else {
                var polled = pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)
                poll(&polled, 1, -1)
                return drainWakeUp()
            }
            var now = now
            if listener < 0, now >= listenTime {
                listener = (try? ChaosSocket.listening(at: port)) ?? -1
                if listener < 0 { listenTime = now + 1_000_000 }
            }
            var polled = [pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)]
            if listener >= 0 {
                polled.append(pollfd(fd: listener, events: Int16(POLLIN), revents: 0))
            }
            // Descriptors that wait for nothing are left out. Otherwise `poll` would report their end again and
            // again.
            for connection in connections.values {
                for (descriptor, events) in interests(of: connection, now) where events != 0 {
                    polled.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
                }
            }
            let deadline = deadline(after: now)
            // In whole milliseconds, rounded up; -1 waits without a limit.
            let left = deadline > now ? deadline - now : 0
            let time = deadline < .max ? Int32(clamping: left / 1_000_000 + (left > 0 ? 1 : 0)) : -1
            poll(&polled, nfds_t(polled.count), time)
            if polled[0].revents != 0 { drainWakeUp() }
            // Orders are taken over before bytes are moved, so that an order holds for all bytes after it.
            guard heedsOrders(), !isFrozen else { return }
            now = self.now
            if listener >= 0, polled.count > 1, polled[1].fd == listener, polled[1].revents != 0 {
                acceptAll(now)
            }
            for number in connections.keys.sorted() { serve(number, now) }
            let open = connections.count
            shared.state.withLock { $0.counts.open = open }
        }

        private func drainWakeUp() {
            var bytes = [UInt8](repeating: 0, count: 64)
            _ = read(wakeUp, &bytes, bytes.count)
        }

        private func interests(of connection: Connection, _ now: UInt64) -> [(Int32, Int32)] {
            if connection.isConnecting { return [(connection.server, POLLOUT)] }
            let (up, down) = (connection.up, connection.down)
            return [
                (
                    connection.client,
                    (up.wantsToRead(at: now) ? POLLIN : 0)
                        | (down.wantsToWrite(at: now) ? POLLOUT : 0)
                ),
                (
                    connection.server,
                    (down.wantsToRead(at: now) ? POLLIN : 0)
                        | (up.wantsToWrite(at: now) ? POLLOUT : 0)
                ),
            ]
        }

        private func deadline(after now: UInt64) -> UInt64 {
            var deadline = listener < 0 ? listenTime : .max
            for connection in connections.values {
                deadline = min(deadline, connection.resetTime)
                for flow in [connection.up, connection.down] {
                    if flow.heldUntil > now { deadline = min(deadline, flow.heldUntil) }
                    if !isCalm, !flow.isFinished {
                        deadline = min(deadline, max(flow.faultTime, flow.heldUntil))
                    }
                }
            }
            return deadline
        }

        // MARK: Connections

        private func acceptAll(_ now: UInt64) {
            while let client = ChaosSocket.accepted(from: listener) {
                lastConnection += 1
                guard let server = try? ChaosSocket.connecting(to: target) else {
                    ChaosSocket.reset(client)
                    shared.state.withLock { $0.counts.unreachable += 1 }
                    continue
                }
                let base = seed &+ lastConnection &* 0x9E37_79B9_7F4A_7C15
                connections[lastConnection] = Connection(
                    up: .init(source: client, sink: server, seed: base, plan: plan, now: now),
                    down: .init(source: server, sink: client, seed: ~base, plan: plan, now: now)
                )
                shared.state.withLock { $0.counts.connections += 1 }
            }
        }

        private func reset(_ number: UInt64) {
            guard let connection = connections.removeValue(forKey: number) else { return }
            ChaosSocket.reset(connection.client)
            ChaosSocket.reset(connection.server)
        }

        private func serve(_ number: UInt64, _ now: UInt64) {
            guard var connection = connections.removeValue(forKey: number) else { return }
            guard now < connection.resetTime else { return end(connection) }
            if connection.isConnecting {
                guard connect(&connection) else {
                    shared.state.withLock { $0.counts.unreachable += 1 }
                    return end(connection)
                }
            }
            guard connection.isConnecting || move(&connection, now) else { return end(connection) }
            if connection.isOver {
                close(connection.client)
                close(connection.server)
            } else {
                connections[number] = connection
            }
        }

        private func end(_ connection: Connection) {
            ChaosSocket.reset(connection.client)
            ChaosSocket.reset(connection.server)
        }

        /// - Returns: False when the server's port refuses the connection.
        private func connect(_ connection: inout Connection) -> Bool {
            var polled = pollfd(fd: connection.server, events: Int16(POLLOUT), revents: 0)
            guard poll(&polled, 1, 0) > 0 else { return true }
            guard ChaosSocket.error(of: connection.server) == 0 else { return false }
            connection.isConnecting = false
            return true
        }

        /// Moves the bytes that can be moved.
        ///
        /// - Returns: False when the connection is to be reset.
        private func move(_ connection: inout Connection, _ now: UInt64) -> Bool {
            for path in [\Connection.up, \.down] {
                if connection[keyPath: path].wantsToRead(at: now) {
                    guard connection[keyPath: path].read() else { return false }
                }
                let held = connection[keyPath: path].heldCount
                if !isCalm, connection[keyPath: path].isFaultDue(at: now) {
                    guard fault(&connection, path, now) else { return false }
                }
                guard connection[keyPath: path].wantsToWrite(at: now) else { continue }
                guard let count = connection[keyPath: path].write(isCalm: isCalm, now) else {
                    return false
                }
                shared.state.withLock { state in
                    state.counts.mostHeld = max(state.counts.mostHeld, held)
                    if path == \.up {
                        state.counts.bytesUp += count
                    } else {
                        state.counts.bytesDown += count
                    }
                }
                // The bytes just forwarded may have made a fault due.
                if !isCalm, connection[keyPath: path].isFaultDue(at: now) {
                    guard fault(&connection, path, now) else { return false }
                }
            }
            return true
        }

        // MARK: Faults

        /// - Returns: False when the connection is to be reset.
        private func fault(
            _ connection: inout Connection,
            _ path: WritableKeyPath<Connection, ChaosFlow>,
            _ now: UInt64
        ) -> Bool {
            var flow = connection[keyPath: path]
            let kind = flow.draw(plan.kinds)
            // Counts the fault before a client can see it.
            shared.state.withLock { $0.counts.faults[kind, default: 0] += 1 }
            switch kind {
            case .reset: return false
            case .stall:
                let until = now + flow.draw(plan.stalls)
                if flow.drawCoin() { connection.resetTime = until }
                flow.heldUntil = until
                flow.expectFault(plan, until)
                connection[keyPath: path] = flow
                let other = path == \.up ? \Connection.down : \.up
                connection[keyPath: other].heldUntil = until
            case .halfClose:
                flow.finish()
                connection[keyPath: path] = flow
                connection.resetTime = now + plan.farewell.nanoseconds
            case .delay:
                flow.heldUntil = now + flow.draw(plan.delays)
                flow.expectFault(plan, flow.heldUntil)
                connection[keyPath: path] = flow
            case .split:
                flow.drawPieces(plan.pieces)
                flow.expectFault(plan, now)
                connection[keyPath: path] = flow
            case .truncate:
                connection.up.finish()
                connection.down.finish()
                connection.resetTime = now + plan.farewell.nanoseconds
            case .refuse:
                if listener >= 0 { close(listener) }
                listener = -1
                listenTime = now + flow.draw(plan.refusals)
                return false
            }
            return true
        }
    }
#endif
