#if os(Linux)
    package import WireCore

    /// The shared loop's clock; it keeps the loop running until it is invalidated.
    package final class SharedTimers: TimerSource {
        private let loop: EventLoop
        private let isValid = Locked(true)

        package init() throws(LinkError) {
            loop = try SharedEventLoop.acquire(for: "a real clock")
        }

        deinit {
            invalidate()
        }

        package var now: WireInstant { loop.now }

        package var preciseNow: WireInstant { SystemTime.now }

        package func scheduleTimer(
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) -> UInt64 {
            loop.scheduleTimer(at: deadline, action)
        }

        package func cancelTimer(_ token: UInt64) {
            loop.cancelTimer(token)
        }

        package func invalidate() {
            let wasValid = isValid.withLock { isValid in
                defer { isValid = false }
                return isValid
            }
            if wasValid { SharedEventLoop.release() }
        }
    }
#endif
