/// The state of a stream over Network.framework: received data, sends and reports.
///
/// It uses nothing of the framework, so it can be tested on every platform. `Bytes` is the type of received content.
///
/// | state | waiting, not viable | ready, viable | better path | failed, cancelled | preparing |
/// | --- | --- | --- | --- | --- | --- |
/// | open | waits for the grace period | ends the grace period | lost, if not viable | notes the first failure and tells the receiver | nothing |
/// | closing | nothing | nothing | nothing | notes the first failure | nothing |
/// | over | nothing | nothing | nothing | notes the first failure | nothing |
package struct NetworkStreamState<Bytes>: Sendable
where
    Bytes: RangeReplaceableCollection & RandomAccessCollection<UInt8> & Sendable,
    Bytes.SubSequence: Sendable
{
    /// The next action about reading.
    package enum Step: Sendable {
        case nothing
        /// Request more data from the framework.
        case receive
        /// Tell the receiver that data can be read.
        case tell(any ByteStreamReceiver)
    }

    /// The action after the end of a send.
    package enum SendOutcome: Sendable {
        case nothing
        /// Tell the receiver that writing can continue.
        case tell(any ByteStreamReceiver)
        /// Cancel the connection, which was kept only for this send.
        case cancel
    }

    private enum State {
        case open
        /// Closed by a call; the receiver was not told yet.
        case closing
        /// The receiver was told, and the last bytes are being sent.
        case over
    }

    /// What the framework gives next.
    ///
    /// | state | next step of an empty inbox | bytes arrive | the end arrives | read |
    /// | --- | --- | --- | --- | --- |
    /// | idle | → receiving | | | nothing |
    /// | receiving | nothing | → idle | → complete | nothing |
    /// | complete | tells the receiver | | | → ended: the end |
    /// | ended | nothing | | | the end |
    private enum Source {
        case idle
        /// A receive is pending.
        case receiving
        /// The peer has ended its write direction; the reader was not told yet.
        case complete
        case ended
    }

    /// What the framework takes next.
    ///
    /// | state | bytes within the limit | more bytes | the chunk is sent |
    /// | --- | --- | --- | --- |
    /// | free | → busy: takes all | → wanted: takes the limit | |
    /// | busy | → wanted: takes none | → wanted: takes none | → free |
    /// | wanted | takes none | takes none | → free: tells the receiver |
    private enum Sink {
        case free
        /// A chunk is being sent.
        case busy
        /// The same, and the writer waits for its end.
        case wanted
    }

    /// The receiver of events, from the start to the end.
    private(set) var receiver: (any ByteStreamReceiver)?
    /// The error that broke the stream.
    private(set) var failure: LinkError?
    /// Whether bytes were read since the receiver was last told.
    private(set) var wasRead = false
    private var state = State.open
    private var isReading = true
    private var source = Source.idle
    private var inbox = Bytes()[...]
    private var hasScheduledFlush = false
    private var sink = Sink.free
    /// Whether this side has ended its write direction.
    private var isFinished = false
    /// The number of sends that the framework has not completed.
    private var sends = 0
    private var viability = NetworkViability()

    /// - Parameter hasBetterPath: Whether a new connection would have a better path, as reported before.
    package init(hasBetterPath: Bool = false) {
        _ = viability.note(hasBetterPath: hasBetterPath)
    }

    /// The receiver while it may be called.
    private var listener: (any ByteStreamReceiver)? { isClosing ? nil : receiver }

    package var isClosing: Bool { state != .open }

    package var isOver: Bool { state == .over }

    package mutating func start(_ receiver: any ByteStreamReceiver) {
        self.receiver = receiver
    }

    /// Notes the error that broke the stream; only the first counts.
    package mutating func fail(_ error: LinkError) {
        if failure == nil { failure = error }
    }

    // MARK: Reports

    /// Notes a report of the connection; a lost path is a failure like any other.
    ///
    /// A connection that waits again after it was ready has no path.
    ///
    /// - Returns: The next action: to wait for the grace period, or to tell the receiver of the failure.
    package mutating func note(_ report: NetworkReport) -> NetworkViability.Step {
        switch report {
        case .preparing: .nothing
        case .ready, .viable(true): notePath { $0.note(isViable: true) }
        case .waiting, .viable(false): notePath { $0.note(isViable: false) }
        case .betterPath(let isThere): notePath { $0.note(hasBetterPath: isThere) }
        case .failed(let error): noteEnd(error)
        case .cancelled: noteEnd(.closed)
        }
    }

    /// Notes the end of a grace period; an outdated number has no effect.
    package mutating func graceDidEnd(_ number: Int) -> NetworkViability.Step {
        notePath { $0.graceDidEnd(number) }
    }

    private mutating func noteEnd(_ error: LinkError) -> NetworkViability.Step {
        guard failure == nil else { return .nothing }
        failure = error
        return isClosing ? .nothing : .fail
    }

    private mutating func notePath(
        _ change: (inout NetworkViability) -> NetworkViability.Step
    ) -> NetworkViability.Step {
        guard !isClosing, failure == nil else { return .nothing }
        let step = change(&viability)
        if step == .fail { fail(.pathLost) }
        return step
    }

    // MARK: Reading

    /// Determines the next action about reading; call it after every change.
    package mutating func nextStep() -> Step {
        guard let receiver = listener else { return .nothing }
        let hasNews = !inbox.isEmpty || source == .complete
        // A failure is reported even while reading is stopped, as with a socket.
        if failure != nil || hasNews && isReading {
            wasRead = false
            return .tell(receiver)
        }
        guard isReading, inbox.isEmpty, source == .idle else { return .nothing }
        source = .receiving
        return .receive
    }

    /// The receiver to call again without new data.
    package mutating func readAgain() -> (any ByteStreamReceiver)? {
        guard isReading, let receiver = listener else { return nil }
        wasRead = false
        return receiver
    }

    /// Stops or resumes reading.
    ///
    /// - Returns: Whether there may be an action now.
    package mutating func setReading(_ isReading: Bool) -> Bool {
        defer { self.isReading = isReading }
        return isReading && !self.isReading
    }

    /// Notes the result of a receive.
    ///
    /// - Parameters:
    ///   - content: The received data.
    ///   - isComplete: Whether the peer has ended its write direction.
    ///   - failure: The error that broke the connection.
    package mutating func noteReceived(_ content: Bytes?, isComplete: Bool, failure: LinkError?) {
        source = .idle
        // There is one receive at a time, and only when the data of the one before was read.
        if let content, !content.isEmpty { inbox = content[...] }
        // An end together with a failure is not an orderly end: data may be missing.
        if let failure { fail(failure) } else if isComplete { source = .complete }
    }

    /// Reads received data; data before the end or the failure is read first.
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
        if source == .complete || source == .ended {
            source = .ended
            return .endOfStream
        }
        if let failure { throw failure }
        return .nothing
    }

    // MARK: Writing

    /// Determines how many of the bytes can be sent now.
    ///
    /// - Parameters:
    ///   - count: The number of bytes.
    ///   - limit: The number of bytes in one send.
    /// - Returns: The number to send; if it is smaller than `count`, the receiver will be told when to continue.
    /// - Throws: `LinkError` if the stream is broken or closed.
    package mutating func takeForSending(_ count: Int, atMost limit: Int) throws(LinkError) -> Int {
        if let failure { throw failure }
        guard !isClosing, !isFinished else { throw .closed }
        guard count > 0 else { return 0 }
        let taken = sink == .free ? min(count, limit) : 0
        sink = taken < count ? .wanted : .busy
        if taken > 0 { sends += 1 }
        return taken
    }

    /// Ends the write direction.
    ///
    /// - Returns: Whether this is the first call, so that the peer must be told by a send.
    package mutating func finish() -> Bool {
        guard !isClosing, !isFinished, failure == nil else { return false }
        isFinished = true
        sends += 1
        return true
    }

    /// Notes the end of a send: of a chunk, or of the end of the write direction.
    package mutating func noteSent(isChunk: Bool) -> SendOutcome {
        sends -= 1
        if isOver { return sends == 0 ? .cancel : .nothing }
        guard isChunk else { return .nothing }
        defer { sink = .free }
        guard sink == .wanted else { return .nothing }
        return listener.map(SendOutcome.tell) ?? .nothing
    }

    /// Notes a request for a flush.
    ///
    /// - Returns: Whether it must be scheduled, because none is scheduled yet.
    package mutating func scheduleFlush() -> Bool {
        guard !isClosing, !hasScheduledFlush else { return false }
        hasScheduledFlush = true
        return true
    }

    /// The receiver to tell that the time of the flush has come.
    package mutating func beginFlush() -> (any ByteStreamReceiver)? {
        hasScheduledFlush = false
        return listener
    }

    // MARK: The end

    /// Notes a call to close.
    ///
    /// - Returns: Whether it is the first.
    package mutating func close() -> Bool {
        guard state == .open else { return false }
        state = .closing
        return true
    }

    /// Carries out a call to close.
    ///
    /// - Returns: The receiver to tell, and whether no send is pending.
    package mutating func end() -> (receiver: (any ByteStreamReceiver)?, isIdle: Bool) {
        state = .over
        return (receiver.take(), sends == 0)
    }
}
