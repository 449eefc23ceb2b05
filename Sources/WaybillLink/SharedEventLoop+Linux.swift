#if os(Linux)
    import WireCore

    /// The loop that all links of the process and the timers of its clock share.
    ///
    /// The first user starts the thread, the last one ends it. A program that has shut its transports down has no thread and
    /// no descriptor of the package left.
    enum SharedEventLoop {
        private struct State {
            var loop: EventLoop?
            var users = 0
            /// Loops that were stopped from their own thread, which cannot wait for its own end.
            var ended: [EventLoop] = []
        }

        private static let state = Locked(State())

        /// Adds a user, for which ``release()`` must follow.
        /// - Returns: The loop.
        /// - Throws: `LinkError.unsupported` on a thread that is simulated; `LinkError.system`.
        static func acquire() throws(LinkError) -> EventLoop {
            try LinkEnvironment.refuseInSimulation("a real socket")
            reap()
            return try join()
        }

        /// Adds a user whose caller may hold a lock, for which a thread that ends may still wait.
        /// - Returns: The loop.
        /// - Throws: `LinkError.system`.
        static func acquireWithoutWaiting() throws(LinkError) -> EventLoop {
            joinEnded { $0.isOver }
            return try join()
        }

        private static func join() throws(LinkError) -> EventLoop {
            try state.withLock { state throws(LinkError) in
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

        /// Removes a user; after the last one the thread ends.
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
        /// Blocks for the microseconds that an ending thread takes. Does nothing on a loop's own thread, nor on a thread
        /// that is simulated: which loops of the process have ended would decide what the simulation does.
        static func reap() { joinEnded { !$0.isCurrent } }

        private static func joinEnded(_ isWanted: (EventLoop) -> Bool) {
            guard !LinkEnvironment.isSimulated else { return }
            let ended = state.withLock { state in
                let ended = state.ended.filter(isWanted)
                state.ended.removeAll { loop in ended.contains { $0 === loop } }
                return ended
            }
            for loop in ended { loop.join() }
        }
    }
#endif
