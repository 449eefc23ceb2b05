public import WireCore

/// Joins a protocol core to a byte stream and a clock; the only driver, for every protocol.
///
/// One lock protects the core, and is held only while bytes are encoded or decoded. The thread that calls into the core
/// also carries out the consequences, outside of the lock. One thread at a time writes and one at a time delivers
/// events, so both keep their order on any number of threads.
@usableFromInline
package final class Driver<Core: ProtocolCore>: ByteStreamReceiver, Sendable {
    package typealias Handler = DriverHandler<Core.Event>
    @usableFromInline package typealias Urgency = SendUrgency

    @usableFromInline package let state: Locked<DriverState<Core>>
    /// Used only in the receiver's calls, which come one at a time.
    let received = Locked(StreamReader())
    let stream: any ByteStream
    @usableFromInline package let timers: any TimerSource
    /// The memory account of the connection; nothing is read while it is full.
    let account: MemoryAccount?

    /// Joins core, stream and clock; ``start(_:)`` starts them.
    ///
    /// - Parameters:
    ///   - core: The protocol core.
    ///   - stream: The stream, not started yet.
    ///   - timers: The clock.
    ///   - account: The account of waiting messages. Nothing is read while it is full.
    ///   - isOpening: Whether a handshake follows. Until ``endOpening()`` the account's reserve may be used, so that a
    ///     connection can be opened while messages of an earlier connection still wait.
    package init(
        core: Core,
        stream: any ByteStream,
        timers: any TimerSource,
        account: MemoryAccount? = nil,
        isOpening: Bool = false
    ) {
        var initial = DriverState(core: core)
        if isOpening { initial.accountReserve = account?.reserve ?? 0 }
        state = Locked(initial)
        self.stream = stream
        self.timers = timers
        self.account = account
    }

    /// Starts to read, and sends the core's first bytes; call it once.
    ///
    /// - Parameter handler: Kept until it was told of the end.
    package func start(_ handler: Handler) {
        // Until the end, which the stream reports in any case.
        let observation = account?.observe { self.accountDidChange() }
        state.withLock { state in
            state.handler = handler
            state.observation = observation
        }
        stream.start(self)
        withCore(.immediate) { _, _ in }
    }

    // MARK: Calling into the core

    // Both are specialised at the call: with a core that is unknown at compile time, each call would look up types at
    // run time, which takes longer than encoding a message.

    /// Runs `body` with the core and the current time, then carries out the core's requests.
    @inlinable @discardableResult
    package func withCore<Result: Sendable, Failure: Error>(
        _ urgency: Urgency = .paced,
        _ body: (inout Core, WireInstant) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let now = timers.now
        var next = DriverSteps()
        let result = try state.withLock { state throws(Failure) in
            let waiting = state.core.outboundByteCount
            let result = try body(&state.core, now)
            next = state.stepsAfterCall(urgency, grewFrom: waiting, by: timers)
            return result
        }
        if !next.isEmpty { carryOut(next) }
        return result
    }

    /// Does the same as ``withCore(_:_:)``, and returns the pause for ``wait(for:)`` of a caller that waits for no
    /// answer.
    ///
    /// The body is repeated here: a shared one with a closure makes a publish of QoS 0 a twelfth slower.
    @inlinable
    package func send<Result: Sendable, Failure: Error>(
        _ urgency: Urgency = .paced,
        _ body: (inout Core, WireInstant) throws(Failure) -> Result
    ) throws(Failure) -> (result: Result, pause: SendPause) {
        let now = timers.now
        var next = DriverSteps()
        var pause = SendPause.none
        let result = try state.withLock { state throws(Failure) in
            let waiting = state.core.outboundByteCount
            let result = try body(&state.core, now)
            next = state.stepsAfterCall(urgency, grewFrom: waiting, by: timers)
            pause = state.takePause()
            return result
        }
        if !next.isEmpty { carryOut(next) }
        return (result, pause)
    }

    /// Suspends for the pause of a send.
    ///
    /// - Throws: `LinkError.endOfStream` if the connection ended before enough unsent bytes had left, those of the send
    ///   possibly among them; `CancellationError` if the task is cancelled while it waits; the send itself stays.
    package func wait(for pause: SendPause) async throws {
        switch pause {
        case .none: break
        case .turn: await Turn.giveWay()
        case .drain: try await waitUntilDrained()
        }
    }

    /// Suspends while many bytes are unsent.
    package func waitUntilDrained() async throws {
        let identifier = state.withLock { $0.makeWaiterIdentifier() }
        await Suspension.wait(for: "room among the unsent bytes") { continuation in
            let mustWait = state.withLock { state in
                if Task.isCancelled { return false }
                if !state.isOver, state.byteCount <= DriverLimits.lowWaterMark { return false }
                state.drainWaiters[identifier] = .some(state.isOver ? nil : continuation)
                return !state.isOver
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            let waiter = state.withLock { $0.drainWaiters.removeValue(forKey: identifier) }
            if let waiter { waiter?.resume() }
        }
        try Task.checkCancellation()
        let place = state.withLock { $0.drainWaiters.removeValue(forKey: identifier) }
        if place != nil { throw LinkError.endOfStream }
    }

    package var unsentByteCount: Int { state.withLock { $0.byteCount } }

    /// Whether the unsent bytes exceed the high-water mark; if so, the handler is told when they have drained.
    package func requestDrainNotice() -> Bool {
        state.withLock { state in
            guard !state.isOver, state.byteCount > DriverLimits.highWaterMark else { return false }
            state.wantsDrainNotice = true
            return true
        }
    }

    /// Stops or resumes reading from the peer, and informs the core.
    ///
    /// Calls from several threads must be ordered, as ``ReadingHold`` does.
    package func setReading(_ isReading: Bool) {
        let unwritable = state.withLock { state in
            state.setHold(.consumer, !isReading)
            return isReading ? nil : state.unwritable
        }
        tellReading()
        // While reading is stopped, the peer's last data cannot be read.
        if let unwritable { return end(unwritable) }
        // A write that failed meanwhile has requested reading while the stream did not read yet.
        if isReading, state.withLock({ $0.unwritable }) != nil { stream.readAgain() }
    }

    /// Notes that the connection is open: from now on reading stops when the account is full.
    package func endOpening() {
        state.withLock { $0.accountReserve = 0 }
        accountDidChange()
    }

    private func accountDidChange() {
        state.withLock { _ = $0.noteAccount(account) }
        tellReading()
    }

    /// Does the same as ``withCore(_:_:)`` for answers to the peer, whose bytes count towards the account's limit.
    package func answer<Failure: Error>(
        _ body: (inout Core, WireInstant) throws(Failure) -> Void
    ) throws(Failure) {
        let count = try withCore { (core, now) throws(Failure) in
            let before = core.outboundByteCount
            try body(&core, now)
            return core.outboundByteCount - before
        }
        state.withLock { $0.noteAnswers(count) }
    }

    /// Tells the stream whether to read, by the last decision; one thread at a time.
    func tellReading() {
        while let isHeld = state.withLock({ $0.beginTelling(at: timers.now) }) {
            stream.setReading(!isHeld)
            let (readsAgain, isStreamOver) = state.withLock { $0.endTelling() }
            // The core's deadlines depend on reading.
            rearm()
            guard readsAgain else { continue }
            if isStreamOver { streamIsReadable() } else { stream.readAgain() }
        }
    }

    /// Closes the stream at once, without sending the rest; aborts it if the peer has not answered.
    package func close() {
        close(abandons: state.withLock { $0.core.isUnanswered })
    }

    /// Aborts the stream at once.
    package func abandon() { close(abandons: true) }

    private func close(abandons: Bool) {
        state.withLock { $0.noteClose() }
        if abandons { stream.abandon() } else { stream.close() }
        // An end may have waited until earlier data was decoded.
        if case .some(let error) = state.withLock({ $0.takeDelayedEnd(evenIfUndecoded: true) }) {
            end(error)
        }
    }

    // MARK: Carrying out

    @usableFromInline
    package func carryOut(_ next: DriverSteps) {
        if next.contains(.rearm) { rearm() }
        if next.contains(.tellReading) { tellReading() }
        if next.contains(.flush) || next.contains(.gather) && !stream.scheduleFlush() { flush() }
        if next.contains(.deliver) { deliver() }
    }

    /// Writes until the socket is full or nothing is left; one thread at a time.
    ///
    /// When other threads add bytes as fast as it writes, these bytes are left to the next flush: the caller must
    /// continue, and the loop's thread must read. Only for a stream without gathering there is no next flush, so all is
    /// written here.
    func flush() {
        var rounds = 0
        while let (written, total) = writeOnce() {
            rounds += 1
            switch written {
            case .success(let count):
                let (waiters, drained, hasMore, mayRead, wantsTimer) = state.withLock { state in
                    (
                        state.noteWritten(count, of: total), state.takeDrainNotice(), state.hasMore,
                        state.endUnsentHold(), state.wantsTimer
                    )
                }
                for waiter in waiters { waiter.resume() }
                drained?()
                if mayRead { tellReading() }
                if wantsTimer { rearm() }
                if rounds >= DriverLimits.roundsInTurn, hasMore, stream.scheduleFlush() { return }
            case .failure(let error):
                // A failed write shows that the peer has closed, and usually the peer has sent a reason. The stream
                // requests the read of that reason, on its own thread.
                let mayRead = state.withLock { $0.noteUnwritable(error) }
                return mayRead ? stream.readAgain() : end(error)
            }
        }
        switch state.withLock({ ($0.takeClosing(), $0.core.isUnanswered) }) {
        case (true, true): stream.abandon()
        case (true, false):
            stream.finishWriting()
            stream.close()
        case (false, _): break
        }
    }

    /// Writes available bytes; nil if there are none, or if another thread writes.
    ///
    /// It is a separate function so that only the state references the bytes when their number is reported.
    private func writeOnce() -> (Result<Int, LinkError>, total: Int)? {
        guard let bytes = state.withLock({ $0.takeBytesToWrite(at: timers.preciseNow) }) else {
            return nil
        }
        let written = Result { () throws(LinkError) in
            try bytes.withUnsafeBytes { all throws(LinkError) in try stream.write(all) }
        }
        return (written, bytes.count)
    }

    /// Delivers events until none is left, then the end; one thread at a time.
    private func deliver() {
        guard var delivery = state.withLock({ $0.beginDelivery() }) else { return }
        while true {
            switch consume delivery {
            case .events(let events, let handler): handler.receive(events)
            case .end(let error, let handler): handler.end(error)
            case .goOnReading: tellReading()
            }
            guard let next = state.withLock({ $0.nextDelivery() }) else { return }
            delivery = next
        }
    }

    private func rearm() {
        let now = timers.now
        guard let deadline = state.withLock({ $0.deadlineToArm(at: now) }) else { return }
        // A strong reference: a weak one would slow down every reference count of this object. The end cancels the
        // timer, and until then the stream references the driver, too.
        let token = timers.scheduleTimer(at: deadline) { self.timerFired(deadline) }
        let stale = state.withLock { $0.timer.note(token, for: deadline) }
        if let stale { timers.cancelTimer(stale) }
    }

    private func timerFired(_ deadline: WireInstant) {
        // The coarse clock may be behind the deadline that has just passed.
        let now = max(timers.now, deadline)
        var mustCut = false
        let queue = stream.sendQueue
        let next = state.withLock { state in
            state.timer.noteFired(deadline)
            guard !state.isOver else { return DriverSteps() }
            state.look(at: queue, now)
            state.core.advance(to: now)
            mustCut = state.takeCut(at: now)
            return state.stepsAfterCall(.immediate, grewFrom: 0, by: timers)
        }
        carryOut(next)
        if mustCut { close() }
    }

    func end(_ error: LinkError?) {
        let (waiters, token, observation) = state.withLock { $0.end(error, at: timers.now) }
        if let observation { account?.stopObserving(observation) }
        stream.close()
        if let token { timers.cancelTimer(token) }
        for waiter in waiters { waiter.resume() }
        deliver()
    }
}
