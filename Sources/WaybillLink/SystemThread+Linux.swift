#if os(Linux)
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// Starts threads of the system.
    package enum SystemThread {
        private final class Job: Sendable {
            let run: @Sendable () -> Void

            init(_ run: @escaping @Sendable () -> Void) {
                self.run = run
            }
        }

        /// Runs a closure on a thread of its own, which the caller joins or detaches.
        ///
        /// - Throws: `LinkError.system` if the system has no thread left.
        static func start(_ run: @escaping @Sendable () -> Void) throws(LinkError) -> pthread_t {
            var thread = pthread_t()
            // The thread owns the job.
            let job = Unmanaged.passRetained(Job(run))
            let result = pthread_create(
                &thread,
                nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Job>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                },
                job.toOpaque()
            )
            guard result == 0 else {
                job.release()
                throw .system(errorNumber: result, call: "pthread_create")
            }
            return thread
        }

        /// Runs a closure on a thread of its own, which nothing waits for.
        ///
        /// - Throws: `LinkError.system` if the system has no thread left.
        package static func detach(_ run: @escaping @Sendable () -> Void) throws(LinkError) {
            pthread_detach(try start(run))
        }

        /// Lets other threads run before this one goes on.
        package static func giveWay() {
            sched_yield()
        }
    }
#endif
