public import WireCore

/// What is to be done once the lock is open again.
@usableFromInline
package struct DriverSteps: OptionSet, Sendable {
    @usableFromInline package let rawValue: UInt8

    @inlinable
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    @inlinable package static var flush: Self { Self(rawValue: 1) }
    @inlinable package static var gather: Self { Self(rawValue: 2) }
    @inlinable package static var deliver: Self { Self(rawValue: 4) }
    @inlinable package static var rearm: Self { Self(rawValue: 8) }
    @inlinable package static var tellReading: Self { Self(rawValue: 16) }
}

/// What a sender that waits for no answer should wait for.
@usableFromInline
package enum SendPause: Sendable {
    case none
    /// For others to have had their turn: a task that is never suspended keeps its thread, and on one processor
    /// nobody else would run.
    case turn
    /// Until enough of the bytes that wait has left.
    case drain
}

/// What a ``Driver`` keeps behind its lock.
@usableFromInline
package struct DriverState<Core: ProtocolCore>: Sendable {
    /// What is handed to the handler next.
    enum Delivery: Sendable {
        case events([Core.Event], Driver<Core>.Handler)
        case end(LinkError?, Driver<Core>.Handler)
        /// Nothing waits any more for which reading was stopped.
        case goOnReading
    }

    /// Why the peer is not read from.
    struct Holds: OptionSet, Sendable {
        let rawValue: UInt8

        /// The consumer wants no more.
        static var consumer: Self { Self(rawValue: 1) }
        /// The events before are still being handed out by another thread.
        static var delivery: Self { Self(rawValue: 2) }
        /// The peer does not read, and unsent answers fill the account.
        static var unsent: Self { Self(rawValue: 4) }
        /// The account is full.
        static var account: Self { Self(rawValue: 8) }
    }

    @usableFromInline package var core: Core
    /// Who hears of it; nil before the start and after the end.
    var handler: Driver<Core>.Handler?
    @usableFromInline package var pacer = FlushPacer()
    /// What the flusher is writing; the core's outbound buffer fills meanwhile.
    @usableFromInline package var writing = ByteWriter()
    @usableFromInline package var isFlushing = false
    @usableFromInline package var isBlocked = false
    /// Whether the socket drained while the flusher was still about to learn that it was full.
    private var hasDrained = false
    private var hasClosed = false
    private var peerHasFinished = false
    @usableFromInline package var messagesWaiting = 0
    @usableFromInline package var isGathering = false
    @usableFromInline package var turn = Turn()

    var drainWaiters: [UInt64: Suspension.Continuation] = [:]
    private var lastWaiter: UInt64 = 0
    var wantsDrainNotice = false

    @usableFromInline package var isDelivering = false
    @usableFromInline package var isOver = false
    private var holds: Holds = []
    private var hold = ReadingHold()
    /// How many of the bytes that wait to leave answer the peer; at most all of them.
    private var answerByteCount = 0
    /// The driver's place among the observers of the account.
    var observation: UInt64?
    /// How far beyond its capacity the account may be while the connection is being opened.
    var accountReserve = 0
    /// Whether this side has closed the stream: its end waits for nothing.
    var isStreamClosed = false
    /// Whether bytes were read that the core has not decoded yet.
    var isUndecoded = false
    /// How the stream ended while such bytes were left.
    private var delayedEnd: LinkError??
    private var pendingEnd: LinkError??
    /// Why nothing can be written any more, while the peer is heard out.
    private(set) var unwritable: LinkError?

    /// When the stream is closed even though bytes are left, once the core is done.
    private var cutDeadline: WireInstant?
    /// Whether that time has come: no timer follows, only the end of the stream.
    private var isCut = false
    @usableFromInline package var armedDeadline: WireInstant?
    private var armedToken: UInt64?

    init(core: Core) {
        self.core = core
    }

    /// How many bytes wait to leave.
    @inlinable package var byteCount: Int { core.outboundByteCount + writing.count }

    /// Whether there is something to write that the socket may take.
    var hasMore: Bool { byteCount > 0 && !isBlocked }

    // MARK: Holding the peer back

    /// Whether the peer is not held back.
    var isReading: Bool { holds.isEmpty }

    mutating func setHold(_ reason: Holds, _ isHeld: Bool) {
        if isHeld { holds.insert(reason) } else { holds.remove(reason) }
        hold.isHeld = !holds.isEmpty
    }

    /// Begins to tell the stream whether to read; the core is told here.
    ///
    /// Nil when the stream knows already, or while another thread tells it.
    mutating func beginTelling(at now: WireInstant) -> Bool? {
        guard let isHeld = hold.beginTelling() else { return nil }
        core.holdReading(isHeld, at: now)
        return isHeld
    }

    /// Notes that the stream has been told.
    /// - Returns: Whether bytes are left that may be decoded now, and whether the stream they came from has ended.
    mutating func endTelling() -> (readsAgain: Bool, isStreamOver: Bool) {
        hold.endTelling()
        return (isReading && isUndecoded, isStreamOver)
    }

    /// Stops reading while the account is full.
    /// - Returns: Whether it is.
    mutating func noteAccount(_ account: MemoryAccount?) -> Bool {
        guard let account else { return false }
        let isFull =
            accountReserve > 0
            ? account.byteCount >= account.capacity + accountReserve : account.isFull
        if isFull != holds.contains(.account) { setHold(.account, isFull) }
        return isFull
    }

    /// Decodes what has been read.
    ///
    /// While another thread still hands out the events before, reading stops instead.
    /// - Returns: What is to be done.
    mutating func decode(
        _ buffer: inout ReceiveBuffer,
        at now: WireInstant,
        _ account: MemoryAccount?,
        by timers: any TimerSource
    ) -> DriverSteps {
        if core.hasEvents, isDelivering {
            isUndecoded = true
            setHold(.delivery, true)
            return .tellReading
        }
        let before = core.outboundByteCount
        core.receive(&buffer, at: now)
        isUndecoded = core.hasMoreInput
        noteAnswers(core.outboundByteCount - before)
        var next = settle(.immediate, grewFrom: 0, by: timers)
        // Both sides of a fast conversation have bytes on the way; only far more than that is a peer that does not read.
        if answerByteCount > Driver<Core>.highWaterMark, areAnswersTooMany(account) {
            setHold(.unsent, true)
            next.insert(.tellReading)
        }
        return next
    }

    /// Notes bytes that answer the peer, of those that wait to leave.
    mutating func noteAnswers(_ count: Int) {
        answerByteCount = min(answerByteCount + max(count, 0), byteCount)
    }

    /// Whether unsent answers fill the account, together with what it counts.
    ///
    /// They count twice, since they lie in memory twice while their buffer grows.
    private func areAnswersTooMany(_ account: MemoryAccount?) -> Bool {
        let capacity = account?.capacity ?? MemoryAccount.defaultLimit
        return (account?.byteCount ?? 0) + 2 * answerByteCount >= capacity
    }

    /// Ends the hold for unsent answers once they have left.
    /// - Returns: Whether it has ended.
    mutating func endUnsentHold() -> Bool {
        answerByteCount = min(answerByteCount, byteCount)
        guard holds.contains(.unsent), answerByteCount <= Driver<Core>.lowWaterMark else {
            return false
        }
        setHold(.unsent, false)
        return true
    }

    /// Keeps how the stream ended while bytes are left to decode.
    /// - Returns: Whether there are such bytes.
    mutating func delayEnd(_ error: LinkError?) -> Bool {
        guard isUndecoded, !isOver, !isStreamClosed, !core.isFinished, delayedEnd == nil else {
            return false
        }
        delayedEnd = .some(error)
        return true
    }

    /// What made the stream unwritable, once the peer has been heard.
    ///
    /// Nil while another thread still hands out events.
    var lastWordsHeard: LinkError? { holds.contains(.delivery) ? nil : unwritable }

    /// Whether the stream has ended and bytes are left to decode.
    var isStreamOver: Bool { delayedEnd != nil }

    /// How the stream ended, if that waited only for what was left to decode.
    mutating func takeDelayedEnd(evenIfUndecoded: Bool = false) -> LinkError?? {
        guard evenIfUndecoded || !isUndecoded else { return nil }
        return delayedEnd.take()
    }

    // MARK: After a call into the core

    /// What whoever has sent should wait for.
    @inlinable
    package mutating func takePause() -> SendPause {
        if byteCount > Driver<Core>.highWaterMark {
            turn = Turn()
            return .drain
        }
        turn.advance()
        return turn.endIfOver() ? .turn : .none
    }

    /// What follows from a call into the core.
    /// - Parameters:
    ///   - urgency: When bytes should leave.
    ///   - waiting: How many outbound bytes there were before the call.
    ///   - timers: The clock, which is read where the pacer has to decide.
    /// - Returns: What is to be done.
    @inlinable
    package mutating func settle(
        _ urgency: Driver<Core>.Urgency,
        grewFrom waiting: Int,
        by timers: any TimerSource
    ) -> DriverSteps {
        guard !isOver else {
            core.outbound.removeAll()
            return core.hasEvents ? .deliver : []
        }
        var next = DriverSteps()
        let count = core.outboundByteCount
        if count > waiting { messagesWaiting += 1 }
        if count > 0 || core.isFinished { next.formUnion(stepToWrite(urgency, by: timers)) }
        if core.hasEvents, !isDelivering { next.insert(.deliver) }
        if core.isFinished {
            if count > 0 || !writing.isEmpty { next.insert(.rearm) }
        } else if let wanted = core.deadline, armedDeadline.map({ wanted < $0 }) ?? true {
            next.insert(.rearm)
        }
        return next
    }

    @inlinable
    package mutating func stepToWrite(
        _ urgency: Driver<Core>.Urgency,
        by timers: any TimerSource
    ) -> DriverSteps {
        // Whoever is writing, or the flush it leaves the rest to, or whoever hears that the socket drains, takes these
        // bytes along.
        if isFlushing || isBlocked { return [] }
        if case .immediate = urgency { return .flush }
        if core.isFinished || core.outboundByteCount >= FlushPacer.fullBatch { return .flush }
        if isGathering { return [] }
        guard pacer.shouldGatherNow(calls: core.openCallCount, by: timers) else { return .flush }
        isGathering = true
        return .gather
    }

    // MARK: Writing

    /// Makes the caller the flusher and gives it what to write; nil when there is nothing or
    /// somebody else writes, or the socket is full.
    mutating func takeBytesToWrite(at now: WireInstant) -> ByteWriter? {
        guard !isFlushing, !isBlocked, !isOver, unwritable == nil else { return nil }
        isGathering = false
        if writing.isEmpty {
            guard !core.outbound.isEmpty else { return nil }
            swap(&writing, &core.outbound)
            pacer.noteFlush(messages: messagesWaiting, at: now)
            messagesWaiting = 0
        }
        isFlushing = true
        hasDrained = false
        return writing
    }

    /// Notes that nothing can be written any more.
    /// - Returns: Whether the peer is to be heard out, which needs one who reads.
    mutating func noteUnwritable(_ error: LinkError) -> Bool {
        guard isReading, !isOver, !isStreamOver else { return false }
        unwritable = unwritable ?? error
        // No other flusher has a try.
        isBlocked = true
        return true
    }

    /// Notes that a write that was cut short can go on.
    mutating func noteWritable() {
        isBlocked = false
        hasDrained = true
    }

    /// Notes what the flusher wrote.
    /// - Returns: The senders that can go on, in the order in which they came.
    mutating func noteWritten(_ count: Int, of total: Int) -> [Suspension.Continuation] {
        isFlushing = false
        isBlocked = count < total && !hasDrained
        writing.consume(count)
        if writing.isEmpty {
            writing.releaseExcess(above: Driver<Core>.lowWaterMark)
            // Nothing came meanwhile: the memory serves what comes next, and a quiet connection needs it once.
            if !core.outbound.hasMemory { swap(&writing, &core.outbound) }
        }
        guard !drainWaiters.isEmpty, byteCount <= Driver<Core>.lowWaterMark else { return [] }
        defer { drainWaiters.removeAll() }
        return drainWaiters.valuesInKeyOrder
    }

    /// Who wants to hear, once, that enough has been written.
    mutating func takeDrainNotice() -> (@Sendable () -> Void)? {
        guard wantsDrainNotice, byteCount <= Driver<Core>.lowWaterMark else { return nil }
        wantsDrainNotice = false
        return handler?.drained
    }

    /// Makes the caller the one to close the stream, once the core is done and all is written.
    mutating func takeClosing() -> Bool {
        guard core.isFinished, byteCount == 0, !hasClosed else { return false }
        hasClosed = true
        return true
    }

    /// Notes that the peer has finished writing, unless this side was about to close anyway.
    mutating func noteEndOfStream() {
        peerHasFinished = !hasClosed
    }

    mutating func makeWaiterIdentifier() -> UInt64 {
        lastWaiter += 1
        return lastWaiter
    }

    // MARK: Delivering

    /// Makes the caller the deliverer and gives it what comes first; nil when there is nothing or
    /// somebody else delivers.
    mutating func beginDelivery() -> Delivery? {
        guard !isDelivering else { return nil }
        return nextDelivery()
    }

    /// What the deliverer hands out next; with nil it is the deliverer no longer.
    mutating func nextDelivery() -> Delivery? {
        isDelivering = false
        guard let handler else { return nil }
        if core.hasEvents {
            isDelivering = true
            return .events(core.takeEvents(), handler)
        }
        guard case .some(let error) = pendingEnd else {
            guard holds.contains(.delivery) else { return nil }
            setHold(.delivery, false)
            isDelivering = true
            return .goOnReading
        }
        isDelivering = true
        pendingEnd = nil
        self.handler = nil
        return .end(error, handler)
    }

    // MARK: Timers

    /// The deadline to arm now, if the armed one does not come first.
    mutating func deadlineToArm(at now: WireInstant) -> WireInstant? {
        guard !isOver, !isCut else { return nil }
        if core.isFinished, cutDeadline == nil {
            cutDeadline = now.advanced(by: Driver<Core>.closingPatience)
        }
        guard let wanted = cutDeadline ?? core.deadline else { return nil }
        if let armedDeadline, armedDeadline <= wanted { return nil }
        armedDeadline = wanted
        return wanted
    }

    /// Notes the timer for a deadline.
    /// - Returns: A timer to cancel instead.
    mutating func noteArmed(_ token: UInt64, for deadline: WireInstant) -> UInt64? {
        guard armedDeadline == deadline, !isOver else { return token }
        defer { armedToken = token }
        return armedToken
    }

    /// Whether a peer that does not read has had its time; true once.
    mutating func takeCut(at now: WireInstant) -> Bool {
        guard !isCut, core.isFinished, let cutDeadline, cutDeadline <= now else { return false }
        isCut = true
        return true
    }

    mutating func noteFired(_ deadline: WireInstant) {
        guard armedDeadline == deadline else { return }
        armedDeadline = nil
        armedToken = nil
    }

    // MARK: The end

    /// Notes that the stream is over.
    /// - Returns: The senders to wake, and the timer to cancel.
    mutating func end(
        _ error: LinkError?,
        at now: WireInstant
    ) -> ([Suspension.Continuation], UInt64?) {
        guard !isOver else { return ([], nil) }
        // However the stream broke, the core has its last word: nobody may wait for ever.
        if !core.isFinished { core.receiveLoss(at: now) }
        isOver = true
        // Whoever has decided to close does not care how the peer takes it.
        let isOurs = hasClosed || error == .closed
        pendingEnd = .some(peerHasFinished ? .endOfStream : isOurs ? nil : error)
        defer {
            drainWaiters.removeAll()
            armedToken = nil
        }
        return (drainWaiters.valuesInKeyOrder, armedToken)
    }
}
