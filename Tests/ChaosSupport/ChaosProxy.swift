#if os(Linux)
    import Glibc
    import WireCore
    import WireTestSupport

    /// A TCP proxy on 127.0.0.1 that breaks connections in every way that a network can. The faults depend on a seed.
    ///
    /// The proxy is calm until ``rage()``. It reads no more than it can forward, so it holds at most 16 KiB for each
    /// direction of a connection. ``close()`` releases its sockets and its thread.
    package final class ChaosProxy: Sendable {
        struct State: Sendable {
            var counts = ChaosCounts()
            var isCalm = true
            var mustDrop = false
            /// `isFrozen` asks the thread to move nothing. The thread sets `hasFrozen` when it has stopped.
            var isFrozen = false
            var hasFrozen = false
            var isClosing = false
        }

        /// The state that the thread and the proxy share.
        final class Shared: Sendable {
            let state = Locked(State())
        }

        /// The argument of the thread.
        private final class Start: Sendable {
            let run: @Sendable () -> Void

            init(_ run: @escaping @Sendable () -> Void) {
                self.run = run
            }
        }

        private struct Handle: Sendable {
            var thread: pthread_t
            /// A bound socket that keeps the port while the listener is closed.
            var keeper: Int32
            var wakeUp: [Int32]
        }

        /// The port on which the proxy listens.
        package let port: UInt16
        /// The seed of the random decisions.
        package let seed: UInt64
        private let shared: Shared
        private let handle: Locked<Handle?>

        /// Listens on a free port and forwards connections to another port.
        ///
        /// - Parameters:
        ///   - target: The port to forward to.
        ///   - seed: The seed of the random decisions.
        ///   - plan: The faults and how often they come.
        package init(
            to target: UInt16,
            seed: UInt64,
            plan: ChaosPlan = ChaosPlan()
        ) throws {
            let keeper = try ChaosSocket.bound(to: 0)
            let port = LoopbackAddress.port(of: keeper)
            var wakeUp: [Int32] = [-1, -1]
            let listener: Int32
            do {
                listener = try ChaosSocket.listening(at: port)
            } catch {
                Glibc.close(keeper)
                throw error
            }
            guard pipe(&wakeUp) == 0 else {
                let number = errno
                for descriptor in [keeper, listener] { Glibc.close(descriptor) }
                throw ChaosSocket.Failure(call: "pipe", number: number)
            }
            for descriptor in wakeUp {
                _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            }
            let shared = Shared()
            let end = wakeUp[0]
            let start = Start {
                let relay = ChaosRelay(
                    shared,
                    plan,
                    seed: seed,
                    target: target,
                    listener: listener,
                    wakeUp: end
                )
                relay.run()
            }
            var thread = pthread_t()
            let context = Unmanaged.passRetained(start)
            let result = pthread_create(
                &thread,
                nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Start>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                },
                context.toOpaque()
            )
            guard result == 0 else {
                context.release()
                for descriptor in [keeper, listener] + wakeUp { Glibc.close(descriptor) }
                throw ChaosSocket.Failure(call: "pthread_create", number: result)
            }
            self.port = port
            self.seed = seed
            self.shared = shared
            handle = Locked(Handle(thread: thread, keeper: keeper, wakeUp: wakeUp))
        }

        deinit {
            close()
        }

        /// The counts so far.
        package var counts: ChaosCounts { shared.state.withLock { $0.counts } }

        /// The number of faults so far.
        package var faultCount: Int { counts.faultCount }

        /// Starts the faults.
        package func rage() {
            change { $0.isCalm = false }
        }

        /// Stops the faults. Bytes that are held back move on at once, and all others pass unchanged.
        package func calm() {
            change { $0.isCalm = true }
        }

        /// Resets every connection, calm or not. These resets are not counted as faults.
        package func dropConnections() {
            change { $0.mustDrop = true }
        }

        /// Stops all movement and all faults until ``thaw()``. Returns when the thread has stopped.
        ///
        /// This separates what the server sent before from what it sends later, which can then be discarded.
        package func freeze() {
            change { $0.isFrozen = true }
            while !shared.state.withLock({ $0.hasFrozen || $0.isClosing }) { sched_yield() }
        }

        package func thaw() {
            change { $0.isFrozen = false }
        }

        /// Resets every connection, stops listening and waits for the thread to be gone.
        package func close() {
            guard let handle = handle.withLock({ $0.take() }) else { return }
            shared.state.withLock { $0.isClosing = true }
            Self.wake(handle)
            pthread_join(handle.thread, nil)
            for descriptor in [handle.keeper] + handle.wakeUp { Glibc.close(descriptor) }
        }

        private func change(_ body: (inout State) -> Void) {
            shared.state.withLock { body(&$0) }
            handle.withLock { handle in
                if let handle { Self.wake(handle) }
            }
        }

        private static func wake(_ handle: Handle) {
            var byte: UInt8 = 0
            _ = write(handle.wakeUp[1], &byte, 1)
        }
    }
#endif
