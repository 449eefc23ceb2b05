#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    #if canImport(FoundationEssentials)
        import FoundationEssentials
    #else
        import Foundation
    #endif

    /// A connection of Network.framework as a byte stream.
    ///
    /// The framework pushes and completes; a byte stream is asked whether it is ready. So one receive at a time is
    /// under way, its bytes wait here until they are read, and the next begins when they are and reading is on: that
    /// holds the peer back. One chunk at a time is being sent; more is taken when the framework has it.
    ///
    /// Everything that is told is told on the connection's queue, one call at a time.
    final class NetworkStream: ByteStream, Sendable {
        /// How much one receive may bring: 64 KiB.
        private static let receiveByteCount = 1 << 16
        /// How much is handed over in one send: 128 KiB.
        private static let sendByteCount = 1 << 17
        /// How long what was written before ``close()`` may take to leave: 5 seconds.
        private static let lingering = DispatchTimeInterval.seconds(5)

        private let state = Locked(NetworkStreamState())
        private let connection: NWConnection
        private let host: String
        private let queue: DispatchQueue

        /// Takes over a connection that is ready; to be called on its queue.
        init(_ connection: NWConnection, to host: String, queue: DispatchQueue) {
            self.connection = connection
            self.host = host
            self.queue = queue
            // Weakly, so that a stream that is never started goes when nobody has it.
            connection.stateUpdateHandler = { [weak self] in self?.stateDidChange($0) }
        }

        deinit {
            connection.cancel()
        }

        func start(_ receiver: any ByteStreamReceiver) {
            state.withLock { $0.receiver = receiver }
            queue.async { [self] in
                if state.withLock({ $0.isOver }) { return }
                // From here on the stream is kept until its end, as its receiver is.
                connection.stateUpdateHandler = { [self] in stateDidChange($0) }
                pump()
            }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try state.withLock { state throws(LinkError) in
                let count = try state.takeForSending(bytes.count, atMost: Self.sendByteCount)
                guard count > 0 else { return 0 }
                // The completion comes later, on the queue; with the lock held, the order is that of the calls.
                connection.send(
                    content: Data(bytes.prefix(count)),
                    contentContext: .defaultMessage,
                    isComplete: true,
                    completion: .contentProcessed { [self] in sendDidComplete($0, isChunk: true) }
                )
                return count
            }
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            try state.withLock { state throws(LinkError) in try state.read(into: space) }
        }

        func scheduleFlush() -> Bool {
            let isNew = state.withLock { state in
                guard !state.isClosing, !state.hasScheduledFlush else { return false }
                state.hasScheduledFlush = true
                return true
            }
            if isNew { queue.async { [self] in flushGathered() } }
            return true
        }

        private func flushGathered() {
            let receiver = state.withLock { state in
                state.hasScheduledFlush = false
                return state.listener
            }
            receiver?.streamShouldFlush()
        }

        func setReading(_ isReading: Bool) {
            let resumes = state.withLock { state in
                defer { state.isReading = isReading }
                return isReading && !state.isReading
            }
            if resumes { queue.async { [self] in pump() } }
        }

        func finishWriting() {
            state.withLock { state in
                guard !state.isClosing, !state.isFinished, state.failure == nil else { return }
                state.isFinished = true
                state.sends += 1
                connection.send(
                    content: nil,
                    contentContext: .finalMessage,
                    isComplete: true,
                    completion: .contentProcessed { [self] in sendDidComplete($0, isChunk: false) }
                )
            }
        }

        func close() {
            let mustEnd = state.withLock { state in
                defer { state.isClosing = true }
                return !state.isClosing
            }
            if mustEnd { queue.async { [self] in end() } }
        }

        // MARK: On the queue

        private func stateDidChange(_ new: NWConnection.State) {
            guard case .failed(let error) = new else { return }
            state.withLock { $0.fail(LinkError(error, host: host)) }
            pump()
        }

        /// Tells the receiver what there is to read, or asks for more.
        private func pump() {
            switch state.withLock({ $0.nextStep() }) {
            case .nothing: break
            case .receive: receive()
            case .tell(let receiver):
                receiver.streamIsReadable()
                // Again and again as long as something is read, but not in a row: others use the queue.
                if state.withLock({ $0.wasRead }) { queue.async { [self] in pump() } }
            }
        }

        private func receive() {
            connection.receive(
                minimumIncompleteLength: 1,
                maximumLength: Self.receiveByteCount
            ) { [self] content, _, isComplete, error in
                state.withLock { state in
                    let failure = error.map { LinkError($0, host: host) }
                    state.noteReceived(content, isComplete: isComplete, failure: failure)
                }
                pump()
            }
        }

        private func sendDidComplete(_ error: NWError?, isChunk: Bool) {
            let (receiver, mustCancel) = state.withLock { state in
                if let error { state.fail(LinkError(error, host: host)) }
                return state.noteSent(isChunk: isChunk)
            }
            if mustCancel { return cancel() }
            receiver?.streamIsWritable()
            if error != nil { pump() }
        }

        private func end() {
            let (receiver, isIdle) = state.withLock { state in
                defer { state.receiver = nil }
                state.isOver = true
                return (state.receiver, state.sends == 0)
            }
            if isIdle {
                cancel()
            } else {
                // Cancelling would drop what the framework has not taken yet.
                queue.asyncAfter(deadline: .now() + Self.lingering) { [self] in cancel() }
            }
            receiver?.streamDidEnd(nil)
        }

        private func cancel() {
            connection.stateUpdateHandler = nil
            connection.cancel()
        }
    }
#endif
