#if os(Linux)
    import CWaybillLinux
    import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// A thread that waits for many sockets (epoll), wakes the clock and gathers writes.
    ///
    /// Handlers, the clock's timers and jobs run on the loop's thread, one after another, and must not block.
    package final class EventLoop: Sendable {
        /// The receiver of a descriptor's events, which are epoll's bits.
        protocol Handler: AnyObject, Sendable {
            func descriptorIsReady(_ events: UInt32)
        }

        /// A writer of gathered data.
        protocol Flushable: AnyObject, Sendable {
            func flushGathered()
        }

        package static let threadName = "waybill-loop"

        private struct State {
            var handlers: [UInt64: any Handler] = [:]
            var lastHandler: UInt64 = 0
            /// The time at which the clock wants to be woken.
            var alarm = WireInstant(nanoseconds: .max)
            var jobs: [@Sendable () -> Void] = []
            var flushes: [any Flushable] = []
            var flushDeadline = WireInstant.zero
            /// The end of the thread's sleep; zero while it runs and will look for work by itself.
            var sleepsUntil = WireInstant.zero
            var isStopping = false
            var isOver = false
        }

        private let state = Locked(State())
        private let epoll: Int32
        private let wakeUp: Int32
        private let thread = Locked(pthread_t())

        /// Starts a separate loop.
        ///
        /// - Throws: `LinkError.system` if the system has no descriptor or thread left.
        init() throws(LinkError) {
            epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
            guard epoll >= 0 else { throw .system(errorNumber: errno, call: "epoll_create1") }
            wakeUp = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
            guard wakeUp >= 0 else {
                close(epoll)
                throw .system(errorNumber: errno, call: "eventfd")
            }
            var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
            epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event)

            do throws(LinkError) {
                let created = try SystemThread.start { self.run() }
                thread.withLock { $0 = created }
            } catch {
                close(wakeUp)
                close(epoll)
                throw error
            }
        }

        // MARK: Work

        /// Wakes the clock on the loop's thread, at or soon after the deadline; an earlier alarm stays.
        func setAlarm(at deadline: WireInstant) {
            update { state in
                state.alarm = min(state.alarm, deadline)
                return deadline
            }
        }

        /// Runs a job on the loop's thread as soon as possible.
        func execute(_ job: @escaping @Sendable () -> Void) {
            update { state in
                state.jobs.append(job)
                return .zero
            }
        }

        /// Calls the writer once, at the end of the gathering time.
        func scheduleFlush(_ flushable: any Flushable) {
            update { state in
                if state.flushes.isEmpty {
                    state.flushDeadline = SystemTime.now.advanced(by: FlushPacer.gatheringTime)
                }
                state.flushes.append(flushable)
                return state.flushDeadline
            }
        }

        /// Adds work, and wakes the thread if it sleeps longer than the work can wait.
        ///
        /// - Parameter add: Adds the work, and returns its deadline.
        private func update(_ add: (inout State) -> WireInstant) {
            let mustWake = state.withLock { state in
                guard add(&state) < state.sleepsUntil else { return false }
                // From now on it counts as woken.
                state.sleepsUntil = .zero
                return true
            }
            guard mustWake else { return }
            var one: UInt64 = 1
            _ = write(wakeUp, &one, 8)
        }

        // MARK: Descriptors

        /// Watches a descriptor.
        ///
        /// - Returns: The registration for ``setInterest(_:of:descriptor:)`` and ``remove(_:descriptor:)``.
        func add(_ handler: any Handler, descriptor: Int32, interest: UInt32) throws(LinkError)
            -> UInt64
        {
            let identifier = state.withLock { state in
                state.lastHandler += 1
                state.handlers[state.lastHandler] = handler
                return state.lastHandler
            }
            var event = epoll_event(events: interest, data: epoll_data_t(u64: identifier))
            guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
                let number = errno
                state.withLock { _ = $0.handlers.removeValue(forKey: identifier) }
                throw .system(errorNumber: number, call: "epoll_ctl")
            }
            return identifier
        }

        /// Changes the events of a registration.
        func setInterest(_ interest: UInt32, of registration: UInt64, descriptor: Int32) {
            var event = epoll_event(events: interest, data: epoll_data_t(u64: registration))
            epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event)
        }

        /// Stops watching a descriptor; call it before the descriptor is closed.
        func remove(_ registration: UInt64, descriptor: Int32) {
            var event = epoll_event()
            epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, &event)
            state.withLock { _ = $0.handlers.removeValue(forKey: registration) }
        }

        // MARK: The thread

        /// Ends the thread as soon as no job is left; ``join()`` must follow.
        func stop() {
            update { state in
                state.isStopping = true
                return .zero
            }
        }

        /// Waits for the end of the thread after ``stop()``.
        func join() {
            let identifier = thread.withLock { $0 }
            pthread_join(identifier, nil)
        }

        /// Whether the caller runs on the loop's thread.
        var isCurrent: Bool {
            thread.withLock { pthread_equal($0, pthread_self()) != 0 }
        }

        private func run() {
            waybill_prepare_thread(Self.threadName, 5_000)
            var events = [epoll_event](repeating: epoll_event(), count: 256)
            var staysAlert = false
            while let sleep = prepareToSleep(staysAlert: staysAlert) {
                let capacity = Int32(events.count)
                let count = waybill_epoll_wait(epoll, &events, capacity, sleep)
                state.withLock { $0.sleepsUntil = .zero }
                for index in 0..<max(Int(count), 0) {
                    let event = events[index]
                    if event.data.u64 == 0 {
                        var counter: UInt64 = 0
                        _ = read(wakeUp, &counter, 8)
                    } else {
                        let handler = state.withLock { $0.handlers[event.data.u64] }
                        handler?.descriptorIsReady(event.events)
                    }
                }
                runJobsAndTimers()
                staysAlert = runFlushes()
            }
            close(wakeUp)
            close(epoll)
            state.withLock { $0.isOver = true }
        }

        /// Whether the thread has done all its work and is about to be gone.
        var isOver: Bool { state.withLock { $0.isOver } }

        /// The time that the thread may sleep in nanoseconds (negative for no limit); nil to end it.
        ///
        /// - Parameter staysAlert: Whether writes come in bursts. The thread then wakes after the gathering time by
        ///   itself, which is cheaper than being woken for each burst.
        /// - Returns: The time.
        private func prepareToSleep(staysAlert: Bool) -> Int64? {
            state.withLock { state in
                if !state.jobs.isEmpty { return 0 }
                if state.isStopping { return nil }
                var deadline = state.alarm
                if !state.flushes.isEmpty { deadline = min(deadline, state.flushDeadline) }
                guard deadline.nanoseconds < .max || staysAlert else {
                    state.sleepsUntil = WireInstant(nanoseconds: .max)
                    return -1
                }
                let now = SystemTime.now
                if staysAlert {
                    deadline = min(deadline, now.advanced(by: FlushPacer.gatheringTime))
                }
                state.sleepsUntil = deadline
                return max(0, deadline.nanoseconds - now.nanoseconds)
            }
        }

        private func runJobsAndTimers() {
            let jobs = state.withLock { state in
                let jobs = state.jobs
                state.jobs.removeAll(keepingCapacity: true)
                return jobs
            }
            for job in jobs { job() }
            let now = SystemTime.now
            let isClockDue = state.withLock { state in
                guard state.alarm <= now else { return false }
                state.alarm = WireInstant(nanoseconds: .max)
                return true
            }
            if isClockDue { SystemClock.shared.fire() }
        }

        private func runFlushes() -> Bool {
            let now = SystemTime.now
            let flushes: [any Flushable] = state.withLock { state in
                guard !state.flushes.isEmpty, state.flushDeadline <= now else { return [] }
                let flushes = state.flushes
                state.flushes.removeAll(keepingCapacity: true)
                return flushes
            }
            for flushable in flushes { flushable.flushGathered() }
            return !flushes.isEmpty
        }
    }
#endif
