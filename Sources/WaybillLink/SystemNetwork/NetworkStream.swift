import WireCore

/// A connection of Network.framework as a byte stream.
///
/// ``NetworkStreamState`` decides.
///
/// The framework pushes data and calls completions, while a byte stream is asked whether it is ready. Therefore one
/// receive is pending at a time, and its bytes wait here until they are read. The next receive starts when they are
/// read and reading is not stopped, which limits the peer. One chunk is sent at a time; the next is taken when the
/// framework has completed it.
///
/// All calls to the receiver come from the connection's queue, one at a time.
package final class NetworkStream<Connection: SystemConnection>: ByteStream, Sendable {
    /// The size of a receive: 64 KiB.
    private static var receiveByteCount: Int { 1 << 16 }
    /// The size of a send: 128 KiB.
    private static var sendByteCount: Int { 1 << 17 }
    /// The time for sending the rest after ``close()``: 5 seconds.
    private static var lingering: Duration { .seconds(5) }

    package let tls: TLSAgreement?
    private let state: Locked<NetworkStreamState<Connection.Content>>
    private let connection: Connection

    /// Takes over a connection that is ready; call it on the connection's queue.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - hasBetterPath: Whether a new connection would have a better path, as reported before.
    package init(_ connection: Connection, hasBetterPath: Bool) {
        self.connection = connection
        tls = connection.tls
        state = Locked(NetworkStreamState(hasBetterPath: hasBetterPath))
        // A weak reference, so that a stream that is never started is released with its last reference.
        connection.report { [weak self] report in self?.note(report) }
    }

    deinit {
        connection.cancel()
    }

    package func start(_ receiver: any ByteStreamReceiver) {
        state.withLock { $0.start(receiver) }
        connection.perform { [self] in
            let (isOver, late) = state.withLock { state in
                state.isOver ? (true, state.end().receiver) : (false, nil)
            }
            // Closed before the start.
            if isOver { return late?.streamDidEnd(nil) ?? () }
            // From now on the stream is kept until its end, as its receiver is.
            connection.report { [self] report in note(report) }
            pump()
        }
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        try state.withLock { state throws(LinkError) in
            let count = try state.takeForSending(bytes.count, atMost: Self.sendByteCount)
            guard count > 0 else { return 0 }
            // The completion comes later on the queue; under the lock the order is that of the calls.
            connection.send(UnsafeRawBufferPointer(rebasing: bytes.prefix(count))) { [self] error in
                sendDidComplete(error, isChunk: true)
            }
            return count
        }
    }

    package func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        try state.withLock { state throws(LinkError) in try state.read(into: space) }
    }

    package func scheduleFlush() -> Bool {
        if state.withLock({ $0.scheduleFlush() }) {
            connection.perform { [self] in state.withLock { $0.beginFlush() }?.streamShouldFlush() }
        }
        return true
    }

    package func setReading(_ isReading: Bool) {
        let resumes = state.withLock { $0.setReading(isReading) }
        if resumes { connection.perform { [self] in pump() } }
    }

    package func readAgain() {
        connection.perform { [self] in
            if let receiver = state.withLock({ $0.readAgain() }) { tell(receiver) }
        }
    }

    package func finishWriting() {
        state.withLock { state in
            guard state.finish() else { return }
            connection.finish { [self] error in sendDidComplete(error, isChunk: false) }
        }
    }

    package func close() {
        let mustEnd = state.withLock { $0.close() }
        if mustEnd { connection.perform { [self] in end() } }
    }

    package func abandon() {
        let mustEnd = state.withLock { $0.close() }
        if mustEnd { connection.perform { [self] in reset() } }
    }

    // MARK: On the queue

    private func note(_ report: NetworkReport) {
        carryOut { $0.note(report) }
    }

    private func carryOut(
        _ change: (inout NetworkStreamState<Connection.Content>) -> NetworkViability.Step
    ) {
        switch state.withLock({ change(&$0) }) {
        case .nothing: break
        case .wait(let number):
            connection.perform(after: NetworkViability.grace) { [weak self] in
                self?.carryOut { $0.graceDidEnd(number) }
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
        if state.withLock({ $0.wasRead }) { connection.perform { [self] in pump() } }
    }

    private func receive() {
        connection.receive(atMost: Self.receiveByteCount) { [self] content, isComplete, failure in
            state.withLock { state in
                state.noteReceived(content, isComplete: isComplete, failure: failure)
            }
            pump()
        }
    }

    private func sendDidComplete(_ failure: LinkError?, isChunk: Bool) {
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
            connection.perform(after: Self.lingering) { [connection] in
                connection.report(to: nil)
                // The peer does not read; on a cancelled connection this does nothing.
                connection.forceCancel()
            }
        }
        receiver?.streamDidEnd(nil)
    }

    /// Ends the connection without waiting for pending sends.
    private func reset() {
        let (receiver, _) = state.withLock { $0.end() }
        connection.report(to: nil)
        connection.forceCancel()
        receiver?.streamDidEnd(nil)
    }

    /// Ends the connection in an orderly way.
    private func cancel() {
        connection.report(to: nil)
        connection.cancel()
    }
}
