#if os(Linux)
    import WireCore

    /// The loop that all links of the process share, alive as long as one of them is open.
    ///
    /// The first link starts the thread, the last one ends it: a program that has shut its transports
    /// down has no thread and no descriptor of ours left.
    package enum SharedEventLoop {
        private struct State {
            var loop: EventLoop?
            var users = 0
            /// Loops that were told to stop from their own thread, which cannot wait for itself.
            var ended: [EventLoop] = []
        }

        private static let state = Locked(State())

        /// Takes part in the loop; every call is matched by one of ``release()``.
        /// - Parameter what: What needs the loop, with its article.
        /// - Returns: The loop.
        /// - Throws: `LinkError.unsupported` on a thread that is simulated; `LinkError.system`.
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

        /// Leaves the loop; when the last one leaves, its thread ends.
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

        /// Waits for the threads of stopped loops to be gone; returns at once when there are none.
        ///
        /// Blocks for the microseconds that an ending thread takes. Does nothing on a loop's own thread, nor on a thread
        /// that is simulated: which loops of the process have ended would decide what the simulation does.
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
