#if os(Linux)
    import WireCore

    /// The event loop that all links of the process share, alive as long as one of them is open.
    ///
    /// The first link starts the thread, and the last one ends it. After all transports of a program are shut down, the
    /// package has no thread and no descriptor left.
    package enum SharedEventLoop {
        private struct State {
            var loop: EventLoop?
            var users = 0
            /// Loops that were stopped from their own thread, which cannot wait for its own end.
            var ended: [EventLoop] = []
        }

        private static let state = Locked(State())

        /// Registers a use of the loop; each call is balanced by a call of ``release()``.
        ///
        /// - Parameter what: The thing that needs the loop, with its article.
        /// - Returns: The loop.
        /// - Throws: `LinkError.unsupported` on a simulated thread; `LinkError.system`.
        static func acquire(for what: String = "a real socket") throws(LinkError) -> EventLoop {
            try LinkEnvironment.refuseInSimulation(what)
            reap()
            return try state.withLock { state throws(LinkError) in
                let loop: EventLoop
                if let running = state.loop {
                    loop = running
                } else {
                    loop = try EventLoop()
                    state.loop = loop
                }
                state.users += 1
                return loop
            }
        }

        /// Ends a use of the loop; the last one ends its thread.
        static func release() {
            let last: EventLoop? = state.withLock { state in
                state.users -= 1
                guard state.users == 0, let loop = state.loop else { return nil }
                state.loop = nil
                state.ended.append(loop)
                return loop
            }
            last?.stop()
        }

        /// Waits for the threads of stopped loops to end; returns at once if there are none.
        ///
        /// It blocks for the microseconds that an ending thread takes. On a loop's own thread it does nothing. On a
        /// simulated thread it does nothing either, because the loops that have ended would influence the simulation.
        package static func reap() {
            guard !LinkEnvironment.isSimulated else { return }
            let ended = state.withLock { state in
                let gone = state.ended.filter { !$0.isCurrent }
                state.ended.removeAll { !$0.isCurrent }
                return gone
            }
            for loop in ended { loop.join() }
        }
    }
#endif
