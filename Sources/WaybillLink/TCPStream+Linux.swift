#if os(Linux)
    import CWaybillLinux
    import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// A connected, non-blocking TCP socket on the event loop.
    final class TCPStream: ByteStream, EventLoop.Handler, EventLoop.Flushable, Sendable {
        private struct State {
            /// The socket; -1 after it was closed.
            ///
            /// It is closed only on the loop's thread with the lock held. The number is therefore valid for a thread
            /// that holds the lock, and always on the loop's thread.
            var descriptor: Int32
            var registration: UInt64 = 0
            var receiver: (any ByteStreamReceiver)?
            var isReading = true
            var wantsToWrite = false
            /// Whether the connection broke while reading is stopped, and is no longer watched: the kernel would report
            /// it endlessly.
            var isUnwatched = false
            var hasScheduledFlush = false
            var isClosing = false
            var acknowledgements = QuickAcknowledgements()
            var writtenByteCount: UInt64 = 0

            var interest: UInt32 {
                (isReading ? EPOLLIN.rawValue : 0) | (wantsToWrite ? EPOLLOUT.rawValue : 0)
            }
        }

        private let state: Locked<State>
        private let loop: EventLoop

        /// Takes over a connected socket and one use of the loop.
        init(descriptor: Int32, loop: EventLoop) {
            state = Locked(State(descriptor: descriptor))
            self.loop = loop
        }

        deinit {
            // A stream that was never started has no other references.
            let descriptor = state.withLock { $0.descriptor }
            guard descriptor >= 0 else { return }
            Socket.release(descriptor)
            SharedEventLoop.release()
        }

        func start(_ receiver: any ByteStreamReceiver) {
            state.withLock { state in
                state.receiver = receiver
                watch(&state)
            }
        }

        private func watch(_ state: inout State) {
            do throws(LinkError) {
                state.registration = try loop.add(
                    self,
                    descriptor: state.descriptor,
                    interest: state.interest
                )
            } catch {
                loop.execute { self.end(error) }
            }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try state.withLock { state throws(LinkError) in
                guard state.descriptor >= 0, !state.isClosing else { throw .closed }
                let written = try Socket.write(bytes, to: state.descriptor)
                state.acknowledgements.noteWrite()
                state.writtenByteCount += UInt64(written)
                if written < bytes.count, !state.wantsToWrite {
                    state.wantsToWrite = true
                    update(state)
                }
                return written
            }
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            let (descriptor, mustAcknowledge) = state.withLock { state in
                (state.isClosing ? -1 : state.descriptor, state.acknowledgements.noteRead())
            }
            guard descriptor >= 0 else { throw .closed }
            if mustAcknowledge { Socket.acknowledgeQuickly(descriptor) }
            return try Socket.receive(into: space, from: descriptor)
        }

        var hasInput: Bool {
            state.withLock { state in
                guard state.descriptor >= 0, !state.isClosing else { return true }
                return Socket.isReadable(state.descriptor)
            }
        }

        var sendQueue: SendQueue? {
            state.withLock { state in
                guard state.descriptor >= 0, !state.isClosing,
                    let waiting = Socket.unacknowledgedByteCount(state.descriptor)
                else { return nil }
                let taken = state.writtenByteCount - min(UInt64(waiting), state.writtenByteCount)
                return SendQueue(taken: taken, waiting: waiting)
            }
        }

        func scheduleFlush() -> Bool {
            let isNew = state.withLock { state in
                guard state.descriptor >= 0, !state.hasScheduledFlush else { return false }
                state.hasScheduledFlush = true
                return true
            }
            if isNew { loop.scheduleFlush(self) }
            return true
        }

        func flushGathered() {
            let receiver = state.withLock { state in
                state.hasScheduledFlush = false
                return state.receiver
            }
            receiver?.streamShouldFlush()
        }

        func setReading(_ isReading: Bool) {
            state.withLock { state in
                guard state.isReading != isReading else { return }
                state.isReading = isReading
                guard isReading, state.isUnwatched else { return update(state) }
                // The loop reports a broken connection again, because it is now read to its end.
                state.isUnwatched = false
                if state.descriptor >= 0, !state.isClosing { watch(&state) }
            }
        }

        func readAgain() {
            loop.execute { [self] in
                let receiver = state.withLock { state in
                    state.isReading && !state.isClosing ? state.receiver : nil
                }
                receiver?.streamIsReadable()
            }
        }

        func finishWriting() {
            state.withLock { state in
                guard state.descriptor >= 0 else { return }
                shutdown(state.descriptor, Int32(SHUT_WR))
            }
        }

        func close() {
            let mustEnd = state.withLock { state in
                guard state.descriptor >= 0, !state.isClosing else { return false }
                state.isClosing = true
                return true
            }
            if mustEnd { loop.execute { self.end(nil) } }
        }

        func abandon() {
            state.withLock { state in
                guard state.descriptor >= 0 else { return }
                Socket.resetWhenClosed(state.descriptor)
            }
            close()
        }

        func descriptorIsReady(_ events: UInt32) {
            let (receiver, isWritable) = state.withLock { state in
                let isWritable = state.wantsToWrite && events & ~EPOLLIN.rawValue != 0
                if isWritable {
                    state.wantsToWrite = false
                    update(state)
                }
                return (state.isClosing ? nil : state.receiver, isWritable)
            }
            if isWritable { receiver?.streamIsWritable() }
            // The next read reports errors and hang-ups.
            if events & ~EPOLLOUT.rawValue != 0 { receiver?.streamIsReadable() }
            if events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { stopWatching() }
        }

        /// Stops watching a broken connection while reading is stopped; a later read or write reports the error.
        private func stopWatching() {
            state.withLock { state in
                guard !state.isReading, !state.isClosing, state.registration != 0 else { return }
                loop.remove(state.registration, descriptor: state.descriptor)
                state.registration = 0
                state.isUnwatched = true
            }
        }

        private func update(_ state: State) {
            guard state.registration != 0, state.descriptor >= 0 else { return }
            loop.setInterest(
                state.interest,
                of: state.registration,
                descriptor: state.descriptor
            )
        }

        /// Ends the stream, on the loop's thread.
        private func end(_ error: LinkError?) {
            let (isFirst, receiver) = state.withLock { state -> (Bool, (any ByteStreamReceiver)?) in
                guard state.descriptor >= 0 else { return (false, nil) }
                if state.registration != 0 {
                    loop.remove(state.registration, descriptor: state.descriptor)
                }
                Socket.release(state.descriptor)
                state.descriptor = -1
                state.isClosing = true
                defer { state.receiver = nil }
                return (true, state.receiver)
            }
            guard isFirst else { return }
            // Also for a stream that was never started and has no receiver.
            SharedEventLoop.release()
            receiver?.streamDidEnd(error)
        }
    }
#endif
