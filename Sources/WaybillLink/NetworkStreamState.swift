/// What a stream over Network.framework has received, sends, and was told.
///
/// Nothing in it is of the framework, so that it is tested wherever the tests run. `Bytes` is what content comes in.
///
/// | | `isClosing` | `isOver` |
/// |---|---|---|
/// | open | no | no |
/// | closed by a call, the receiver not told | yes | no |
/// | the receiver told, the last bytes leaving | yes | yes |
package struct NetworkStreamState<Bytes>: Sendable
where
    Bytes: RangeReplaceableCollection & RandomAccessCollection<UInt8> & Sendable,
    Bytes.SubSequence: Sendable
{
    /// What is to be done next about reading.
    package enum Step: Sendable {
        case nothing
        /// Ask the framework for more.
        case receive
        /// Tell that there is something to read.
        case tell(any ByteStreamReceiver)
    }

    /// What follows from the end of a send.
    package enum SendOutcome: Sendable {
        case nothing
        /// Tell that writing can go on.
        case tell(any ByteStreamReceiver)
        /// Give up the connection, which was kept for this send alone.
        case cancel
    }

    /// Who hears of what happens, from the start to the end.
    private(set) var receiver: (any ByteStreamReceiver)?
    /// Why nothing goes any longer.
    private(set) var failure: LinkError?
    /// Whether bytes were read since the receiver was told of them.
    private(set) var wasRead = false
    private(set) var isClosing = false
    private(set) var isOver = false
    private var isReading = true
    private var isReceiving = false
    private var inbox = Bytes()[...]
    private var isComplete = false
    private var endWasRead = false
    private var hasScheduledFlush = false
    private var isFinished = false
    private var isSending = false
    private var wantsToWrite = false
    /// How many sends the framework has not taken.
    private var sends = 0
    private var viability = NetworkViability()

    package init() {}

    /// Who may be told something.
    private var listener: (any ByteStreamReceiver)? { isClosing ? nil : receiver }

    /// Takes the receiver.
    package mutating func start(_ receiver: any ByteStreamReceiver) {
        self.receiver = receiver
    }

    /// Notes why nothing goes any longer; the first reason counts.
    package mutating func fail(_ error: LinkError) {
        if failure == nil { failure = error }
    }

    // MARK: The path

    /// Notes a change of the path to the peer; a loss is a failure, told as any other.
    ///
    /// - Parameter change: Tells the rules of the change.
    /// - Returns: What follows.
    package mutating func notePath(
        _ change: (inout NetworkViability) -> NetworkViability.Step
    ) -> NetworkViability.Step {
        guard !isClosing, failure == nil else { return .nothing }
        let step = change(&viability)
        if step == .fail { fail(.pathLost) }
        return step
    }

    // MARK: Reading

    /// Decides what to do about reading; to be asked whenever something has changed.
    package mutating func nextStep() -> Step {
        guard let receiver = listener else { return .nothing }
        let hasNews = !inbox.isEmpty || isComplete && !endWasRead
        // A failure is told also to a receiver that holds back, as a socket's is.
        if failure != nil || hasNews && isReading {
            wasRead = false
            return .tell(receiver)
        }
        guard isReading, inbox.isEmpty, !isComplete, !isReceiving else { return .nothing }
        isReceiving = true
        return .receive
    }

    /// Whom to tell once more, although nothing may have come.
    package mutating func readAgain() -> (any ByteStreamReceiver)? {
        guard isReading, let receiver = listener else { return nil }
        wasRead = false
        return receiver
    }

    /// Stops or resumes reading.
    /// - Returns: Whether there may be something to do now.
    package mutating func setReading(_ isReading: Bool) -> Bool {
        defer { self.isReading = isReading }
        return isReading && !self.isReading
    }

    /// Notes how a receive ended.
    ///
    /// - Parameters:
    ///   - content: What came.
    ///   - isComplete: Whether the peer has finished writing.
    ///   - failure: What broke the connection.
    package mutating func noteReceived(_ content: Bytes?, isComplete: Bool, failure: LinkError?) {
        isReceiving = false
        // Only one receive is under way, and only while nothing is left of the one before.
        if let content, !content.isEmpty { inbox = content[...] }
        // An end that is a failure, too, is no end: something may be missing.
        if let failure { fail(failure) } else if isComplete { self.isComplete = true }
    }

    /// Reads what has come; what came before the end or the failure is read before it.
    package mutating func read(
        into space: UnsafeMutableRawBufferPointer
    ) throws(LinkError) -> ReadOutcome {
        guard !isClosing else { throw .closed }
        let count = min(space.count, inbox.count)
        if count > 0 {
            space.copyBytes(from: inbox.prefix(count))
            inbox = inbox.count > count ? inbox.dropFirst(count) : Bytes()[...]
            wasRead = true
            return .bytes(count)
        }
        guard inbox.isEmpty else { return .nothing }
        if isComplete {
            endWasRead = true
            return .endOfStream
        }
        if let failure { throw failure }
        return .nothing
    }

    // MARK: Writing

    /// Decides how many of the bytes can be sent now.
    ///
    /// - Parameters:
    ///   - count: How many there are.
    ///   - limit: How many go out in one send.
    /// - Returns: How many; when fewer than there are, the receiver will hear.
    /// - Throws: `LinkError` when the stream is broken or closed.
    package mutating func takeForSending(_ count: Int, atMost limit: Int) throws(LinkError) -> Int {
        if let failure { throw failure }
        guard !isClosing, !isFinished else { throw .closed }
        guard count > 0 else { return 0 }
        let taken = isSending ? 0 : min(count, limit)
        if taken < count { wantsToWrite = true }
        if taken > 0 {
            isSending = true
            sends += 1
        }
        return taken
    }

    /// Notes that nothing more will be written.
    /// - Returns: Whether that is news, and the peer must be told by a send.
    package mutating func finish() -> Bool {
        guard !isClosing, !isFinished, failure == nil else { return false }
        isFinished = true
        sends += 1
        return true
    }

    /// Notes that a send is over: of a chunk, or of the end.
    package mutating func noteSent(isChunk: Bool) -> SendOutcome {
        sends -= 1
        if isChunk { isSending = false }
        if isOver { return sends == 0 ? .cancel : .nothing }
        guard isChunk, wantsToWrite else { return .nothing }
        wantsToWrite = false
        return listener.map(SendOutcome.tell) ?? .nothing
    }

    /// Notes that a flush is asked for.
    /// - Returns: Whether it must be scheduled, since none is.
    package mutating func scheduleFlush() -> Bool {
        guard !isClosing, !hasScheduledFlush else { return false }
        hasScheduledFlush = true
        return true
    }

    /// Whom to tell that the moment for the flush has come.
    package mutating func beginFlush() -> (any ByteStreamReceiver)? {
        hasScheduledFlush = false
        return listener
    }

    // MARK: The end

    /// Notes a call to close.
    /// - Returns: Whether it is the first.
    package mutating func close() -> Bool {
        defer { isClosing = true }
        return !isClosing
    }

    /// Carries out a call to close.
    /// - Returns: Who must be told, and whether nothing is being sent.
    package mutating func end() -> (receiver: (any ByteStreamReceiver)?, isIdle: Bool) {
        isOver = true
        return (receiver.take(), sends == 0)
    }
}
