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
    /// The framework pushes data and calls completions, while a byte stream is asked whether it is ready. Therefore one
    /// receive is pending at a time, and its bytes wait here until they are read. The next receive starts when they are
    /// read and reading is not stopped, which limits the peer. One chunk is sent at a time; the next is taken when the
    /// framework has completed it.
    ///
    /// All calls to the receiver come from the connection's queue, one at a time.
    final class NetworkStream: ByteStream, Sendable {
        /// The size of a receive: 64 KiB.
        private static let receiveByteCount = 1 << 16
        /// The size of a send: 128 KiB.
        private static let sendByteCount = 1 << 17
        /// The time for sending the rest after ``close()``: 5 seconds.
        private static let lingering = DispatchTimeInterval.seconds(5)

        /// ``NetworkViability/grace`` as a dispatch interval.
        private static let grace = DispatchTimeInterval.seconds(
            Int(NetworkViability.grace.components.seconds)
        )

        let tls: TLSAgreement?
        private let state = Locked(NetworkStreamState<Data>())
        private let connection: NWConnection
        private let peer: NetworkPeer
        private let queue: DispatchQueue

        /// Takes over a connection that is ready; call it on the connection's queue.
        ///
        /// - Parameters:
        ///   - connection: The connection.
        ///   - peer: The peer of the connection.
        ///   - tls: The TLS properties of the connection.
        ///   - queue: The queue of the connection.
        init(
            _ connection: NWConnection,
            to peer: NetworkPeer,
            tls: TLSAgreement?,
            queue: DispatchQueue
        ) {
            self.connection = connection
            self.peer = peer
            self.tls = tls
            self.queue = queue
            // A weak reference, so that a stream that is never started is released with its last reference.
            connection.stateUpdateHandler = { [weak self] in self?.stateDidChange($0) }
            connection.viabilityUpdateHandler = { [weak self] isViable in
                self?.pathDidChange { $0.note(isViable: isViable) }
            }
            connection.betterPathUpdateHandler = { [weak self] hasBetterPath in
                self?.pathDidChange { $0.note(hasBetterPath: hasBetterPath) }
            }
        }

        deinit {
            connection.cancel()
        }

        func start(_ receiver: any ByteStreamReceiver) {
            state.withLock { $0.start(receiver) }
            queue.async { [self] in
                let (isOver, late) = state.withLock { state in
                    state.isOver ? (true, state.end().receiver) : (false, nil)
                }
                // Closed before the start.
                if isOver { return late?.streamDidEnd(nil) ?? () }
                // From now on the stream is kept until its end, as its receiver is.
                connection.stateUpdateHandler = { [self] in stateDidChange($0) }
                pump()
            }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try state.withLock { state throws(LinkError) in
                let count = try state.takeForSending(bytes.count, atMost: Self.sendByteCount)
                guard count > 0 else { return 0 }
                // The completion comes later on the queue; under the lock the order is that of the calls.
                connection.send(
                    content: Data(UnsafeRawBufferPointer(rebasing: bytes.prefix(count))),
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
            if state.withLock({ $0.scheduleFlush() }) {
                queue.async { [self] in state.withLock { $0.beginFlush() }?.streamShouldFlush() }
            }
            return true
        }

        func setReading(_ isReading: Bool) {
            let resumes = state.withLock { $0.setReading(isReading) }
            if resumes { queue.async { [self] in pump() } }
        }

        func readAgain() {
            queue.async { [self] in
                if let receiver = state.withLock({ $0.readAgain() }) { tell(receiver) }
            }
        }

        func finishWriting() {
            state.withLock { state in
                guard state.finish() else { return }
                // Ends the write direction: close_notify if there is TLS, then TCP's end.
                connection.send(
                    content: nil,
                    contentContext: .finalMessage,
                    isComplete: true,
                    completion: .contentProcessed { [self] in sendDidComplete($0, isChunk: false) }
                )
            }
        }

        func close() {
            let mustEnd = state.withLock { $0.close() }
            if mustEnd { queue.async { [self] in end() } }
        }

        func abandon() {
            let mustEnd = state.withLock { $0.close() }
            if mustEnd { queue.async { [self] in reset() } }
        }

        // MARK: On the queue

        private func stateDidChange(_ new: NWConnection.State) {
            guard case .failed(let error) = new else { return }
            state.withLock { $0.fail(LinkError(error, of: peer)) }
            pump()
        }

        /// Carries out the consequence of a path change.
        private func pathDidChange(
            _ change: (inout NetworkViability) -> NetworkViability.Step
        ) {
            switch state.withLock({ $0.notePath(change) }) {
            case .nothing: break
            case .wait(let number):
                queue.asyncAfter(deadline: .now() + Self.grace) { [weak self] in
                    self?.pathDidChange { $0.graceDidEnd(number) }
                }
            case .fail: pump()
            }
        }

        /// Tells the receiver of data to read, or requests more.
        private func pump() {
            switch state.withLock({ $0.nextStep() }) {
            case .nothing: break
            case .receive: receive()
            case .tell(let receiver): tell(receiver)
            }
        }

        private func tell(_ receiver: any ByteStreamReceiver) {
            receiver.streamIsReadable()
            // Repeated as long as data is read, but not in a loop: other connections use the queue, too.
            if state.withLock({ $0.wasRead }) { queue.async { [self] in pump() } }
        }

        private func receive() {
            connection.receive(
                minimumIncompleteLength: 1,
                maximumLength: Self.receiveByteCount
            ) { [self] content, _, isComplete, error in
                let failure = error.map { LinkError($0, of: peer) }
                state.withLock { state in
                    state.noteReceived(content, isComplete: isComplete, failure: failure)
                }
                pump()
            }
        }

        private func sendDidComplete(_ error: NWError?, isChunk: Bool) {
            let failure = error.map { LinkError($0, of: peer) }
            let outcome = state.withLock { state in
                if let failure { state.fail(failure) }
                return state.noteSent(isChunk: isChunk)
            }
            switch outcome {
            case .nothing: break
            case .cancel: return cancel()
            case .tell(let receiver): receiver.streamIsWritable()
            }
            if failure != nil { pump() }
        }

        private func end() {
            let (receiver, isIdle) = state.withLock { $0.end() }
            if isIdle {
                cancel()
            } else {
                // Cancelling would discard data that the framework has not taken yet.
                queue.asyncAfter(deadline: .now() + Self.lingering) { [self] in
                    removeHandlers()
                    // The peer does not read; on a cancelled connection this does nothing.
                    connection.forceCancel()
                }
            }
            receiver?.streamDidEnd(nil)
        }

        /// Ends the connection without waiting for pending sends.
        private func reset() {
            let (receiver, _) = state.withLock { $0.end() }
            connection.stateUpdateHandler = nil
            connection.forceCancel()
            receiver?.streamDidEnd(nil)
        }

        /// Ends the connection in an orderly way.
        private func cancel() {
            removeHandlers()
            connection.cancel()
        }

        private func removeHandlers() {
            connection.stateUpdateHandler = nil
            connection.viabilityUpdateHandler = nil
            connection.betterPathUpdateHandler = nil
        }
    }
#endif
