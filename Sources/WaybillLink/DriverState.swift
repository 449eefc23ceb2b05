public import WireCore

/// The actions to carry out after the lock is released.
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

/// How far a driver's stream is from its end.
@usableFromInline
package enum DriverStage: Comparable, Sendable {
    case open
    /// The core has ended, all bytes were written, and the stream is being closed.
    case closing
    /// This side has closed the stream at once; its end is not delayed, and no timer follows.
    case closed
    /// The same, after the time of ``closing`` had passed.
    case cut
    case over
}

/// The pause of a sender that waits for no answer.
@usableFromInline
package enum SendPause: Sendable {
    case none
    /// Yields to other tasks: a task that is never suspended keeps its thread, and on one processor no other task would
    /// run.
    case turn
    /// Waits until enough of the unsent bytes were sent.
    case drain
}

/// The state of a ``Driver`` behind its lock.
@usableFromInline
package struct DriverState<Core: ProtocolCore>: Sendable {
    /// The next delivery to the handler.
    enum Delivery: Sendable {
        case events([Core.Event], Driver<Core>.Handler)
        case end(LinkError?, Driver<Core>.Handler)
        /// No message waits any more for which reading was stopped.
        case goOnReading
    }

    /// The reasons why reading from the peer is stopped.
    struct Holds: OptionSet, Sendable {
        let rawValue: UInt8

        /// The consumer wants no more messages.
        static var consumer: Self { Self(rawValue: 1) }
        /// Another thread still delivers earlier events.
        static var delivery: Self { Self(rawValue: 2) }
        /// The peer does not read, and unsent answers fill the account.
        static var unsent: Self { Self(rawValue: 4) }
        /// The account is full.
        static var account: Self { Self(rawValue: 8) }
    }

    @usableFromInline package var core: Core
    /// The receiver of events; nil before the start and after the end.
    var handler: Driver<Core>.Handler?
    @usableFromInline package var pacer = FlushPacer()
    /// The bytes that are being written; the core's outbound buffer fills meanwhile.
    @usableFromInline package var writing = ByteWriter()
    @usableFromInline package var writeTurn = WriteTurn.free
    @usableFromInline package var messagesWaiting = 0
    @usableFromInline package var isGathering = false
    /// The place of the system's send queue at the last look; 0 if no bytes waited in it.
    ///
    /// Here it fills a gap between two fields.
    private var queuePlace: UInt32 = 0
    @usableFromInline package var turn = Turn()

    /// The senders that wait for room, by number.
    ///
    /// At the end of the connection their places stay, empty: a sender that finds its place has lost its bytes.
    var drainWaiters: [UInt64: Suspension.Continuation?] = [:]
    private var lastWaiter: UInt64 = 0
    var wantsDrainNotice = false

    @usableFromInline package var isDelivering = false
    @usableFromInline package var stage = DriverStage.open
    /// Whether the peer ended its write direction before this side began to close.
    private var peerHasFinished = false
    private var holds: Holds = []
    private var hold = ReadingHold()
    /// The number of unsent bytes that answer the peer; at most all of them.
    private var answerByteCount = 0
    /// The driver's registration as an observer of the account.
    var observation: UInt64?
    /// The number of bytes that the account may exceed its capacity by while the connection is opened.
    var accountReserve = 0
    /// Whether the core has not decoded all read bytes yet.
    var isUndecoded = false
    /// The end of the stream that came while such bytes were left.
    private var delayedEnd: LinkError??
    private var pendingEnd: LinkError??
    /// The error of a failed write, while the peer's last data is read.
    private(set) var unwritable: LinkError?

    /// The time at which the stream is closed although bytes are left, after the core has ended.
    private var cutDeadline: WireInstant?
    @usableFromInline package var timer = DriverTimer()

    init(core: Core) {
        self.core = core
    }

    /// Whether the stream has ended.
    @inlinable package var isOver: Bool {
        if case .over = stage { true } else { false }
    }

    /// Whether this side has closed the stream after the core's end.
    private var hasClosed: Bool { stage == .closing || stage == .cut }

    /// The number of unsent bytes.
    @inlinable package var byteCount: Int { core.outboundByteCount + writing.count }

    /// Whether there are bytes that the caller may write.
    var hasMore: Bool { byteCount > 0 && writeTurn.isFree }

    // MARK: Stopping to read

    /// Whether the peer is being read from.
    var isReading: Bool { holds.isEmpty }

    mutating func setHold(_ reason: Holds, _ isHeld: Bool) {
        if isHeld { holds.insert(reason) } else { holds.remove(reason) }
        hold.isHeld = !holds.isEmpty
    }

    /// Starts to tell the stream whether to read; the core is told here.
    ///
    /// Nil if the stream already knows, or while another thread tells it.
    mutating func beginTelling(at now: WireInstant) -> Bool? {
        guard let isHeld = hold.beginTelling() else { return nil }
        core.holdReading(isHeld, at: now)
        return isHeld
    }

    /// Notes that the stream was told.
    ///
    /// - Returns: Whether bytes are left that may be decoded now, and whether the stream they came from has ended.
    mutating func endTelling() -> (readsAgain: Bool, isStreamOver: Bool) {
        hold.endTelling()
        return (isReading && isUndecoded, isStreamOver)
    }

    /// Stops reading while the account is full.
    ///
    /// - Returns: Whether the account is full.
    mutating func noteAccount(_ account: MemoryAccount?) -> Bool {
        guard let account else { return false }
        let isFull =
            accountReserve > 0
            ? account.byteCount >= account.capacity + accountReserve : account.isFull
        if isFull != holds.contains(.account) { setHold(.account, isFull) }
        return isFull
    }

    /// Decodes the bytes that were read.
    ///
    /// While another thread still delivers earlier events, it stops reading instead.
    ///
    /// - Returns: The actions to carry out.
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
        var next = stepsAfterCall(.immediate, grewFrom: 0, by: timers)
        // In a fast conversation both sides have bytes in flight; only a far larger number means that the peer does not
        // read.
        if answerByteCount > DriverLimits.highWaterMark, areAnswersTooMany(account) {
            setHold(.unsent, true)
            next.insert(.tellReading)
        }
        return next
    }

    /// Counts unsent bytes that answer the peer.
    mutating func noteAnswers(_ count: Int) {
        answerByteCount = min(answerByteCount + max(count, 0), byteCount)
    }

    /// Whether unsent answers and the account's bytes reach the account's capacity.
    ///
    /// Answers count twice, because their buffer is copied while it grows.
    private func areAnswersTooMany(_ account: MemoryAccount?) -> Bool {
        let capacity = account?.capacity ?? MemoryAccount.defaultLimit
        return (account?.byteCount ?? 0) + 2 * answerByteCount >= capacity
    }

    /// Ends the stop of reading for unsent answers when they were sent.
    ///
    /// - Returns: Whether it has ended.
    mutating func endUnsentHold() -> Bool {
        answerByteCount = min(answerByteCount, byteCount)
        guard holds.contains(.unsent), answerByteCount <= DriverLimits.lowWaterMark else {
            return false
        }
        setHold(.unsent, false)
        return true
    }

    /// Keeps the end of the stream while bytes are left to decode.
    ///
    /// - Returns: Whether there are such bytes.
    mutating func delayEnd(_ error: LinkError?) -> Bool {
        guard isUndecoded, stage < .closed, !core.isFinished, delayedEnd == nil else {
            return false
        }
        delayedEnd = .some(error)
        return true
    }

    /// The error of a failed write, after the peer's last data was read.
    ///
    /// Nil while another thread still delivers events.
    var writeErrorAfterLastRead: LinkError? { holds.contains(.delivery) ? nil : unwritable }

    /// Whether the stream has ended and bytes are left to decode.
    var isStreamOver: Bool { delayedEnd != nil }

    /// Takes the end of the stream, if it only waited for the decoding.
    mutating func takeDelayedEnd(evenIfUndecoded: Bool = false) -> LinkError?? {
        guard evenIfUndecoded || !isUndecoded else { return nil }
        return delayedEnd.take()
    }

    // MARK: After a call into the core

    /// The pause for the thread that has sent.
    @inlinable
    package mutating func takePause() -> SendPause {
        if byteCount > DriverLimits.highWaterMark {
            turn = Turn()
            return .drain
        }
        turn.advance()
        return turn.endIfOver() ? .turn : .none
    }

    /// Determines the actions after a call into the core.
    ///
    /// - Parameters:
    ///   - urgency: When bytes are to be sent.
    ///   - waiting: The number of outbound bytes before the call.
    ///   - timers: The clock, which is read only if the pacer must decide.
    /// - Returns: The actions to carry out.
    @inlinable
    package mutating func stepsAfterCall(
        _ urgency: SendUrgency,
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
        } else if let wanted = core.deadline, !timer.covers(wanted) {
            next.insert(.rearm)
        }
        return next
    }

    @inlinable
    package mutating func stepToWrite(
        _ urgency: SendUrgency,
        by timers: any TimerSource
    ) -> DriverSteps {
        // The present writer, a flush that it has scheduled, or the call when the socket drains will send these bytes.
        if !writeTurn.isFree { return [] }
        if case .immediate = urgency { return .flush }
        if core.isFinished || core.outboundByteCount >= FlushPacer.fullBatch { return .flush }
        if isGathering { return [] }
        guard pacer.shouldGatherNow(calls: core.openCallCount, by: timers) else { return .flush }
        isGathering = true
        return .gather
    }

    // MARK: Writing

    /// Makes the caller the writer and returns the bytes; nil if there are none, if another thread writes, or if the
    /// socket is full.
    mutating func takeBytesToWrite(at now: WireInstant) -> ByteWriter? {
        guard writeTurn.isFree, !isOver, unwritable == nil else { return nil }
        isGathering = false
        let isRest = !writing.isEmpty
        if !isRest {
            guard !core.outbound.isEmpty else { return nil }
            swap(&writing, &core.outbound)
            pacer.noteFlush(messages: messagesWaiting, at: now)
            messagesWaiting = 0
        }
        core.noteGiven(isRest: isRest, at: now)
        _ = writeTurn.begin()
        return writing
    }

    /// Whether the core has a new deadline since its bytes were given to the stream.
    var wantsTimer: Bool {
        guard !core.isFinished, let wanted = core.deadline else { return false }
        return !timer.covers(wanted)
    }

    /// Notes that a write has failed.
    ///
    /// - Returns: Whether the peer's last data is to be read first, which requires that reading is not stopped.
    mutating func noteUnwritable(_ error: LinkError) -> Bool {
        guard isReading, !isOver, !isStreamOver else { return false }
        unwritable = unwritable ?? error
        return true
    }

    /// Notes the number of written bytes.
    ///
    /// - Returns: The senders that can continue, in order.
    mutating func noteWritten(_ count: Int, of total: Int) -> [Suspension.Continuation] {
        writeTurn.end(isFull: count < total)
        writing.consume(count)
        if writing.isEmpty {
            writing.releaseExcess(above: DriverLimits.lowWaterMark)
            // No bytes were added meanwhile: the memory is reused, so that a quiet connection needs it only once.
            if !core.outbound.hasMemory { swap(&writing, &core.outbound) }
        }
        guard !drainWaiters.isEmpty, !isOver, byteCount <= DriverLimits.lowWaterMark else {
            return []
        }
        defer { drainWaiters.removeAll() }
        return drainWaiters.valuesInKeyOrder.compactMap(\.self)
    }

    /// Takes the closure to call once when enough was written.
    mutating func takeDrainNotice() -> (@Sendable () -> Void)? {
        guard wantsDrainNotice, byteCount <= DriverLimits.lowWaterMark else { return nil }
        wantsDrainNotice = false
        return handler?.drained
    }

    /// Makes the caller close the stream after the core has ended and all bytes were written.
    mutating func takeClosing() -> Bool {
        guard core.isFinished, byteCount == 0, stage == .open else { return false }
        stage = .closing
        return true
    }

    /// Notes that the peer has ended its write direction, unless this side was about to close anyway.
    mutating func noteEndOfStream() { peerHasFinished = !hasClosed }

    mutating func makeWaiterIdentifier() -> UInt64 {
        lastWaiter += 1
        return lastWaiter
    }

    // MARK: Delivering

    /// Makes the caller the deliverer and returns the first delivery; nil if there is none, or if another thread
    /// delivers.
    mutating func beginDelivery() -> Delivery? {
        isDelivering ? nil : nextDelivery()
    }

    /// The next delivery; with nil the caller is no longer the deliverer.
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

    /// Looks whether the peer takes bytes; the core is told before its time goes on.
    mutating func look(at queue: SendQueue?, _ now: WireInstant) {
        // Only what waited before counts: the system of a program that hangs takes the bytes of a ping, too.
        if let queue, queuePlace != 0, queue.place != queuePlace { core.noteProgress(at: now) }
        queuePlace = queue.map { $0.waiting > 0 ? $0.place : 0 } ?? 0
    }

    /// The deadline to arm now, unless an earlier one is armed.
    mutating func deadlineToArm(at now: WireInstant) -> WireInstant? {
        guard stage < .closed else { return nil }
        if core.isFinished, cutDeadline == nil {
            cutDeadline = now.advanced(by: DriverLimits.closingTimeout)
        }
        guard let wanted = cutDeadline ?? core.deadline, timer.begin(wanted) else { return nil }
        return wanted
    }

    /// Whether the time of a peer that does not read has passed; true once.
    mutating func takeCut(at now: WireInstant) -> Bool {
        guard stage < .closed, core.isFinished, let cutDeadline, cutDeadline <= now else {
            return false
        }
        noteClose()
        return true
    }

    // MARK: The end

    /// Notes that this side closes the stream at once.
    mutating func noteClose() {
        switch stage {
        case .open: stage = .closed
        case .closing: stage = .cut
        case .closed, .cut, .over: break
        }
    }

    /// Notes that the stream has ended.
    ///
    /// - Returns: The senders to resume, the timer to cancel, and the observation of the account to end.
    mutating func end(
        _ error: LinkError?,
        at now: WireInstant
    ) -> ([Suspension.Continuation], timer: UInt64?, observation: UInt64?) {
        guard !isOver else { return ([], nil, nil) }
        // The core emits its terminal event in any case, so that no caller waits forever.
        if !core.isFinished { core.receiveLoss(at: now) }
        // After a close by this side, an error of the stream is not reported.
        let isOurs = hasClosed || error == .closed
        stage = .over
        pendingEnd = .some(peerHasFinished ? .endOfStream : isOurs ? nil : error)
        defer { drainWaiters = drainWaiters.mapValues { _ in nil } }
        let senders = drainWaiters.valuesInKeyOrder.compactMap(\.self)
        return (senders, timer.end(), observation.take())
    }
}
