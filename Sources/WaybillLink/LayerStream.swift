import WireCore

/// A stream with a layer over another stream.
///
/// It works for both sides of a connection. ``open()`` runs the layer's handshake; no data from above is accepted before
/// its end. A write is reported as done only after the stream below has taken the last byte of its encoding, so that
/// closing after the last write loses nothing.
package final class LayerStream<Layer: StreamLayer>: ByteStream, ByteStreamReceiver {
    private let state: Locked<LayerState<Layer>>
    /// The bytes that were read and not decoded yet.
    ///
    /// Used by the calls of the stream below and by the reading thread.
    private let input = Locked(ReceiveBuffer())
    private let base: any ByteStream
    private let timers: (any TimerSource)?

    /// - Parameters:
    ///   - base: The stream below; connected and not started.
    ///   - layer: The layer.
    ///   - timers: The clock; nil for a layer without a deadline.
    init(over base: any ByteStream, _ layer: Layer, timers: (any TimerSource)? = nil) {
        self.base = base
        self.timers = timers
        state = Locked(LayerState(layer: layer))
    }

    // MARK: Opening

    /// Starts the handshake; the stream references itself until its end.
    package func open() {
        watch()
        base.start(self)
        // Only starts it; reads come in turns of the stream below.
        advance(reads: false)
    }

    /// Opens the stream, and waits until the handshake is complete.
    ///
    /// - Throws: `LinkError`, and the stream is closed; `cancelled` if the task was cancelled.
    func opened() async throws(LinkError) -> LayerStream {
        open()
        try await state.opened(\.opening) { fail(.cancelled) }
        return self
    }

    /// Ends the stream with an error, unless it has failed.
    private func fail(_ error: LinkError) {
        let opener = state.withLock { state in
            _ = state.fail(error)
            return state.opening.decide(.failure(error)).waiter
        }
        stopTimer()
        // Sends an alert, if the layer has one for the peer.
        flush()
        base.close()
        opener?.resume()
    }

    /// Continues the handshake as far as the received data allows.
    private func advance(reads: Bool) {
        let outcome = input.withLock { continueOpening(&$0, reads: reads) }
        flush()
        switch outcome {
        case nil: break
        case .failure(let error)?: fail(error)
        case .success?:
            // Further data waits in the stream below for the reader, if there is none yet.
            base.setReading(false)
            let (opener, receiver) = state.withLock { state in
                (state.opening.decide(.success(())).waiter, state.receiver)
            }
            stopTimer()
            opener?.resume()
            guard let receiver else { return }
            beginReading()
            receiver.streamIsWritable()
        }
    }

    /// The outcome of the handshake; nil if it needs more data.
    private func continueOpening(
        _ input: inout ReceiveBuffer,
        reads: Bool
    ) -> Result<Void, LinkError>? {
        while true {
            let outcome = state.withLock { state in
                let outcome = state.layer.open(&input)
                state.hasLeftover = input.count > 0 || state.layer.holdsData
                return outcome
            }
            if outcome != nil { input.release() }
            if outcome != nil || !reads { return outcome }
            let found = input.fill(from: base).outcome
            if case .success(.bytes) = found { continue }
            return state.withLock { state in
                switch found {
                case .success(.endOfStream): return .failure(state.cause(of: nil))
                case .failure(let error):
                    return .failure(state.cause(of: state.writeFailure ?? error))
                case .success:
                    // The peer has left nothing that would say more than the failed write.
                    guard let failure = state.writeFailure else { return nil }
                    return .failure(state.cause(of: failure))
                }
            }
        }
    }

    // MARK: The layer's time

    /// Sets the timer for the layer's deadline, unless one is set.
    private func watch() {
        guard let timers else { return }
        state.withLock { state in
            guard state.timer == nil, state.failure == nil, state.end == nil,
                let deadline = state.layer.deadline
            else { return }
            state.timer = timers.scheduleTimer(at: deadline) { [weak self] in
                self?.timerFired(deadline)
            }
        }
    }

    private func timerFired(_ deadline: WireInstant) {
        guard let timers else { return }
        // The coarse clock may be behind the deadline that has just passed.
        let now = max(timers.now, deadline)
        let error = state.withLock { state in
            state.timer = nil
            return state.layer.advance(to: now)
        }
        if let error { fail(error) } else { watch() }
    }

    private func stopTimer() {
        if let timer = state.withLock({ $0.timer.take() }) { timers?.cancelTimer(timer) }
    }

    // MARK: ByteStreamReceiver

    package func streamIsReadable() {
        // Called even while reading is stopped: the stream below then reports a broken connection.
        let (isOpen, isPassing, receiver) = state.withLock { state in
            (state.opening.isDecided, state.isPassing, state.receiver)
        }
        guard isOpen else { return advance(reads: true) }
        guard let receiver else { return }
        if isPassing { return receiver.streamIsReadable() }
        receiver.streamIsReadable()
        let isLeft = input.withLock { input in
            // An idle connection keeps no memory.
            input.release()
            return input.count > 0
        }
        let goesOn = state.withLock { state in
            state.hasLeftover = isLeft || state.hasEnd || state.layer.holdsData
            defer { state.hasRead = false }
            // A reader of data that the layer held has not asked the stream below.
            return (state.hasLeftover || Layer.isTransparent) && state.isReading && state.hasRead
        }
        if goesOn { base.readAgain() }
        // Sends the answers that reading has produced for the peer.
        flush()
    }

    package func streamIsWritable() {
        let writer = state.withLock { state in
            state.turn.noteWritable()
            return Layer.isTransparent ? state.receiver : nil
        }
        if let writer { writer.streamIsWritable() } else { flush() }
    }

    package func streamShouldFlush() {
        state.withLock { $0.receiver }?.streamShouldFlush()
    }

    package func streamDidEnd(_ error: LinkError?) {
        let (opener, receiver, end) = state.withLock { state in
            let end = error.map { state.cause(of: $0) } ?? state.failure
            let opener = state.opening.decide(.failure(end ?? .closed)).waiter
            if state.end == nil { state.end = .some(end) }
            return (opener, state.receiver.take(), end)
        }
        stopTimer()
        opener?.resume()
        receiver?.streamDidEnd(end)
    }

    // MARK: ByteStream

    package var tls: TLSAgreement? { state.withLock { $0.layer.tls } ?? base.tls }
    package var hasInput: Bool { base.hasInput }
    package var sendQueue: SendQueue? { base.sendQueue }
    package func scheduleFlush() -> Bool { base.scheduleFlush() }
    package func readAgain() { base.readAgain() }
    package func close() { base.close() }
    package func abandon() { base.abandon() }
    package func keepAlive() { base.keepAlive() }

    package func start(_ receiver: any ByteStreamReceiver) {
        let (end, isOpen) = state.withLock { state in
            if state.end == nil { state.receiver = receiver }
            return (state.end, state.opening.isDecided)
        }
        if case .some(let end) = end { return receiver.streamDidEnd(end) }
        if isOpen { beginReading() }
    }

    /// Gives the reader the data after the handshake, some of which may already be here.
    private func beginReading() {
        guard state.withLock({ $0.isReading }) else { return }
        tellReading(true)
        base.readAgain()
    }

    package func setReading(_ isReading: Bool) {
        let (isOpen, hasLeftover) = state.withLock { state in
            state.isReading = isReading
            return (state.opening.isDecided, state.hasLeftover)
        }
        guard isOpen else { return }
        tellReading(isReading)
        if isReading, hasLeftover { base.readAgain() }
    }

    private func tellReading(_ isReading: Bool) {
        if Layer.isTimed, let timers {
            state.withLock { $0.layer.noteReading(isReading, at: timers.now) }
        }
        base.setReading(isReading)
        if Layer.isTimed, isReading { watch() }
    }

    package func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        guard Layer.isTransparent, state.withLock({ $0.isPassing }) else {
            return try input.withLock { input throws(LinkError) in try read(into: space, &input) }
        }
        do throws(LinkError) {
            let outcome = try base.read(into: space)
            if Layer.isTimed, let timers, case .bytes = outcome {
                let now = timers.now
                state.withLock { $0.layer.noteRead(at: now) }
            }
            return outcome
        } catch {
            throw state.withLock { $0.failure } ?? error
        }
    }

    private func read(
        into space: UnsafeMutableRawBufferPointer,
        _ input: inout ReceiveBuffer
    ) throws(LinkError) -> ReadOutcome {
        var filled = 0
        // The data below a transparent layer is read in the next turn.
        var isDrained = Layer.isTransparent
        reading: while filled < space.count {
            let step = state.withLock { state in
                state.hasRead = true
                return state.layer.decode(&input, into: .init(rebasing: space[filled...]))
            }
            filled += step.produced
            let end: LinkError?
            switch step.outcome {
            case .closed: end = nil
            case .failed(let error): end = error
            case .fine where isDrained || filled == space.count: break reading
            case .fine:
                let found = input.fill(from: base)
                isDrained = !found.wasFilled
                switch found.outcome {
                case .success(.bytes): continue reading
                case .success(.nothing): break reading
                case .success(.endOfStream): end = state.withLock { $0.cause(of: nil) }
                case .failure(let error): end = state.withLock { $0.cause(of: error) }
                }
            }
            // Earlier data is returned first; the layer or the stream below reports the same at the next call.
            state.withLock { $0.hasEnd = filled > 0 }
            if filled > 0 { break }
            guard let end else { return .endOfStream }
            // Sends the peer an alert, if the layer has one; a waiting writer learns of the error by the end.
            let cause = state.withLock { $0.fail(end) }
            send()
            throw cause
        }
        return filled > 0 ? .bytes(filled) : .nothing
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        if Layer.isTransparent {
            do throws(LinkError) { return try base.write(bytes) } catch {
                throw state.withLock { $0.failure } ?? error
            }
        }
        guard let opening = state.withLock({ $0.opening.outcome }) else { return 0 }
        try opening.get()
        var taken = 0
        while taken < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[taken...])
            let offered = try state.withLock { state throws(LinkError) in try state.encode(rest) }
            flush()
            let isSent = try state.withLock { state throws(LinkError) in
                if let failure = state.writeFailure { throw failure }
                state.wantsToWrite = state.layer.hasOutbound
                state.ahead = state.wantsToWrite ? offered : 0
                return !state.wantsToWrite
            }
            guard isSent else { return taken }
            taken += offered
        }
        return taken
    }

    /// Sends outbound bytes, and tells the writer above when all that it waits for was sent.
    ///
    /// Never called under the lock of the input, under which no call goes upwards.
    private func flush() {
        send()
        let writer = state.withLock { state -> (any ByteStreamReceiver)? in
            guard state.wantsToWrite, !state.layer.hasOutbound else { return nil }
            state.wantsToWrite = false
            return state.receiver
        }
        writer?.streamIsWritable()
    }

    /// Passes outbound bytes to the stream below; one thread at a time.
    private func send() {
        while true {
            let outbound: Layer? = state.withLock { state in
                guard state.layer.hasOutbound, state.turn.begin() else { return nil }
                return state.layer
            }
            guard let outbound else { return }
            var offered = 0
            let written = Result { () throws(LinkError) in
                try outbound.withOutbound { bytes throws(LinkError) in
                    offered = bytes.count
                    return try base.write(bytes)
                }
            }
            let mustRead = state.withLock { state in
                switch written {
                case .success(let count):
                    state.layer.noteSent(count)
                    state.turn.end(isFull: count < offered)
                    return false
                case .failure(let error):
                    state.writeFailure = error
                    state.turn = .full
                    return !state.opening.isDecided
                }
            }
            // A peer that closes has usually sent a reason; only a call of the stream below may read it.
            if mustRead { return base.readAgain() }
        }
    }

    package func finishWriting() {
        state.withLock { $0.layer.finish() }
        flush()
        base.finishWriting()
    }
}
