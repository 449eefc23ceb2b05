public import WireCore

/// Joins a protocol core to a byte stream and a clock: the one driver for every protocol.
///
/// The core sits behind one lock, held only while bytes are encoded or decoded. Whoever calls into it
/// also carries out what follows, outside the lock: one flusher at a time writes, one deliverer at a
/// time hands out events, so both keep their order whatever threads are involved.
@usableFromInline
package final class Driver<Core: ProtocolCore>: ByteStreamReceiver, Sendable {
    /// Who hears of the core's events and of the end.
    ///
    /// Calls come one at a time, with no lock held.
    package struct Handler: Sendable {
        let receive: @Sendable ([Core.Event]) -> Void
        let end: @Sendable (LinkError?) -> Void
        let drained: @Sendable () -> Void

        /// - Parameters:
        ///   - receive: Takes events, in order.
        ///   - end: Called once, after the last event; the error is nil when this side closed.
        ///   - drained: Called once for each ``Driver/requestDrainNotice()`` that said yes, from any
        ///     thread, unless the end comes first.
        package init(
            receive: @escaping @Sendable ([Core.Event]) -> Void,
            end: @escaping @Sendable (LinkError?) -> Void,
            drained: @escaping @Sendable () -> Void = {}
        ) {
            self.receive = receive
            self.end = end
            self.drained = drained
        }
    }

    /// When bytes leave.
    @usableFromInline
    package enum Urgency: Sendable {
        /// At once.
        case immediate
        /// As the pacer finds best.
        case paced
    }

    /// Above this many bytes that wait to leave, senders are told to wait: 1 MiB.
    @inlinable package static var highWaterMark: Int { 1 << 20 }

    /// How long a peer may take to read what is left when the core is done: 5 seconds.
    package static var closingPatience: Duration { .seconds(5) }

    /// How often one call reads or writes before others have their turn: 4 times.
    static var roundsInTurn: Int { 4 }

    /// Below this many bytes, waiting senders go on: 256 KiB.
    package static var lowWaterMark: Int { 1 << 18 }

    struct Received: Sendable {
        var buffer = ReceiveBuffer()
        var isFirst = true
        /// Whether the core has more to decode, so that nothing is read before.
        var isUndecoded = false
    }

    @usableFromInline package let state: Locked<DriverState<Core>>
    /// Touched only by the receiver's calls, which come one at a time.
    let received = Locked(Received())
    let stream: any ByteStream
    @usableFromInline package let timers: any TimerSource
    /// What waits for the connection; nothing is read while it is full.
    let account: MemoryAccount?

    /// Joins the three; ``start(_:)`` sets them going.
    ///
    /// - Parameters:
    ///   - core: The protocol.
    ///   - stream: What carries its bytes; not started yet.
    ///   - timers: The clock.
    ///   - account: Counts what the events make wait. While it is full nothing is read.
    ///   - isOpening: Whether a handshake follows. Until ``endOpening()`` the account's reserve may be used, so that a
    ///     connection can be opened while messages of an earlier one still wait.
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

    /// Begins to read, and sends what the core has to say from the start.
    ///
    /// To be called once.
    ///
    /// - Parameter handler: Kept until it has been told the end.
    package func start(_ handler: Handler) {
        // Until the end, which the stream tells in any case.
        let observation = account?.observe { self.accountDidChange() }
        state.withLock { state in
            state.handler = handler
            state.observation = observation
        }
        stream.start(self)
        withCore(.immediate) { _, _ in }
    }

    // MARK: Calling into the core

    // Both are specialised where they are called: with a core that is not known when they are compiled, each call
    // would look up types at run time, which takes longer than to encode a message.

    /// Runs `body` with the core and the time, then carries out what the core wants.
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
            next = state.settle(urgency, grewFrom: waiting, by: timers)
            return result
        }
        if !next.isEmpty { carryOut(next) }
        return result
    }

    /// As ``withCore(_:_:)``, and tells what the caller should ``wait(for:)``, unless it waits for an answer anyway.
    ///
    /// Written out: with one body for both and a closure for what differs, a publish of QoS 0 costs a twelfth more.
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
            next = state.settle(urgency, grewFrom: waiting, by: timers)
            pause = state.takePause()
            return result
        }
        if !next.isEmpty { carryOut(next) }
        return (result, pause)
    }

    /// Suspends for as long as a send has said.
    /// - Throws: `CancellationError` when the task is cancelled while it waits until enough has left; what was sent stays
    ///   sent.
    package func wait(for pause: SendPause) async throws {
        switch pause {
        case .none: break
        case .turn: await Turn.giveWay()
        case .drain: try await waitUntilDrained()
        }
    }

    /// Suspends while more bytes wait to leave than the high-water mark.
    /// - Throws: `CancellationError` when the task is cancelled; what was sent stays sent.
    package func waitUntilDrained() async throws {
        let identifier = state.withLock { $0.makeWaiterIdentifier() }
        await Suspension.wait { continuation in
            let mustWait = state.withLock { state in
                guard state.byteCount > Self.lowWaterMark, !state.isOver, !Task.isCancelled
                else { return false }
                state.drainWaiters[identifier] = continuation
                return true
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            state.withLock { $0.drainWaiters.removeValue(forKey: identifier) }?.resume()
        }
        try Task.checkCancellation()
    }

    /// How many bytes wait to leave.
    package var unsentByteCount: Int { state.withLock { $0.byteCount } }

    /// Whether more bytes wait to leave than the high-water mark; if so, the handler hears when they
    /// have drained.
    package func requestDrainNotice() -> Bool {
        state.withLock { state in
            guard !state.isOver, state.byteCount > Self.highWaterMark else { return false }
            state.wantsDrainNotice = true
            return true
        }
    }

    /// Stops or resumes reading from the peer, and tells the core.
    ///
    /// Calls from several threads must be in order, as ``ReadingHold`` keeps them.
    package func setReading(_ isReading: Bool) {
        let unwritable = state.withLock { state in
            state.setHold(.consumer, !isReading)
            return isReading ? nil : state.unwritable
        }
        tellReading()
        // With reading stopped, the peer's last words cannot be heard.
        if let unwritable { return end(unwritable) }
        // A write that failed meanwhile has called for reading when the stream did not read yet.
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

    /// As ``withCore(_:_:)``, for what answers the peer: its bytes count as memory that the peer takes.
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

    /// Tells the stream whether to read, as was decided last; one caller at a time.
    func tellReading() {
        while let isHeld = state.withLock({ $0.beginTelling(at: timers.now) }) {
            stream.setReading(!isHeld)
            let (readsAgain, isStreamOver) = state.withLock { $0.endTelling() }
            // The core's deadlines depend on it.
            rearm()
            guard readsAgain else { continue }
            if isStreamOver { streamIsReadable() } else { stream.readAgain() }
        }
    }

    /// Closes the stream at once, whatever the core still wanted to send; abandons it when the peer has not answered.
    package func close() {
        let isUnanswered = state.withLock { state in
            state.isStreamClosed = true
            return state.core.isUnanswered
        }
        if isUnanswered { stream.abandon() } else { stream.close() }
        endDelayed()
    }

    /// Abandons the stream at once.
    package func abandon() {
        state.withLock { $0.isStreamClosed = true }
        stream.abandon()
        endDelayed()
    }

    /// Tells an end that has waited for what came before it to be decoded.
    private func endDelayed() {
        if case .some(let error) = state.withLock({ $0.takeDelayedEnd(evenIfUndecoded: true) }) {
            end(error)
        }
    }

    // MARK: Carrying out

    @usableFromInline
    package func carryOut(_ next: DriverSteps) {
        if next.isEmpty { return }
        if next.contains(.rearm) { rearm() }
        if next.contains(.tellReading) { tellReading() }
        if next.contains(.gather), !stream.scheduleFlush() {
            flush()
        } else if next.contains(.flush) {
            flush()
        }
        if next.contains(.deliver) { deliver() }
    }

    /// Writes until the socket takes no more or nothing is left; one caller at a time.
    ///
    /// Where others add as fast as it writes, what they add is left for the next flush: a caller wants to go on, and the
    /// loop's thread has to read. Only where the stream does not gather, nobody else would write it.
    func flush() {
        var rounds = 0
        while let (written, total) = writeOnce() {
            rounds += 1
            switch written {
            case .success(let count):
                let (waiters, drained, hasMore, mayRead) = state.withLock { state in
                    (
                        state.noteWritten(count, of: total), state.takeDrainNotice(), state.hasMore,
                        state.endUnsentHold()
                    )
                }
                for waiter in waiters { waiter.resume() }
                drained?()
                if mayRead { tellReading() }
                if rounds >= Self.roundsInTurn, hasMore, stream.scheduleFlush() { return }
            case .failure(let error):
                return endUnwritable(error)
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

    /// Writes what there is; nil when there is nothing, or somebody else writes.
    ///
    /// By itself, so that nobody but the state holds on to the bytes when it is told what was written of them.
    private func writeOnce() -> (Result<Int, LinkError>, total: Int)? {
        guard let bytes = state.withLock({ $0.takeBytesToWrite(at: timers.preciseNow) }) else {
            return nil
        }
        let written = Result { () throws(LinkError) in
            try bytes.withUnsafeBytes { all throws(LinkError) in try stream.write(all) }
        }
        return (written, bytes.count)
    }

    /// Ends the connection, but first hears what the peer said before it closed.
    ///
    /// That a write fails shows that it has closed, and mostly it said why. Reading is the stream's to call for, on
    /// its own thread.
    private func endUnwritable(_ error: LinkError) {
        if state.withLock({ $0.noteUnwritable(error) }) { stream.readAgain() } else { end(error) }
    }

    /// Hands out events until none is left, then the end; one caller at a time.
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
        // Not weakly, which would make each count of references to this object a slow one: the end cancels the timer,
        // and until then the stream holds on to the driver, too.
        let token = timers.scheduleTimer(at: deadline) { self.timerFired(deadline) }
        let stale = state.withLock { $0.noteArmed(token, for: deadline) }
        if let stale { timers.cancelTimer(stale) }
    }

    private func timerFired(_ deadline: WireInstant) {
        // The coarse clock may lag behind the deadline that has just passed.
        let now = max(timers.now, deadline)
        var mustCut = false
        let next = state.withLock { state in
            state.noteFired(deadline)
            guard !state.isOver else { return DriverSteps() }
            state.core.advance(to: now)
            mustCut = state.takeCut(at: now)
            return state.settle(.immediate, grewFrom: 0, by: timers)
        }
        carryOut(next)
        if mustCut { close() }
    }

    func end(_ error: LinkError?) {
        let (waiters, token, observation) = state.withLock { state in
            let (waiters, token) = state.end(error, at: timers.now)
            return (waiters, token, state.observation.take())
        }
        if let observation { account?.stopObserving(observation) }
        stream.close()
        if let token { timers.cancelTimer(token) }
        for waiter in waiters { waiter.resume() }
        deliver()
    }
}
