#if canImport(Network)
    #if canImport(FoundationEssentials)
        import FoundationEssentials
    #else
        import Foundation
    #endif

    /// What a stream over Network.framework has received, sends, and was told.
    ///
    /// | | `isClosing` | `isOver` |
    /// |---|---|---|
    /// | open | no | no |
    /// | closed by a call, the receiver not told | yes | no |
    /// | the receiver told, the last bytes leaving | yes | yes |
    struct NetworkStreamState: Sendable {
        /// What is to be done next about reading.
        enum Step: Sendable {
            case nothing
            case receive
            case tell(any ByteStreamReceiver)
        }

        var receiver: (any ByteStreamReceiver)?
        var isReading = true
        var isClosing = false
        var isOver = false
        /// Whether the peer was told that nothing more is written.
        var isFinished = false
        var hasScheduledFlush = false
        /// How many sends the framework has not taken.
        var sends = 0
        /// Why nothing goes any longer.
        private(set) var failure: LinkError?
        /// Whether bytes were read since the receiver was told of them.
        private(set) var wasRead = false
        private var isSending = false
        private var wantsToWrite = false
        private var isReceiving = false
        private var inbox = Data()
        private var readByteCount = 0
        private var isComplete = false
        private var endWasRead = false

        /// Who may be told something.
        var listener: (any ByteStreamReceiver)? { isClosing ? nil : receiver }

        private var hasUnread: Bool { readByteCount < inbox.count }

        /// The first reason counts.
        mutating func fail(_ error: LinkError) {
            if failure == nil { failure = error }
        }

        // MARK: Reading

        mutating func nextStep() -> Step {
            guard let receiver = listener else { return .nothing }
            let hasNews = hasUnread || isComplete && !endWasRead
            // A failure is told also to a receiver that holds back: its writes fail.
            if failure != nil || hasNews && isReading {
                wasRead = false
                return .tell(receiver)
            }
            guard isReading, !hasUnread, !isComplete, !isReceiving else { return .nothing }
            isReceiving = true
            return .receive
        }

        mutating func noteReceived(_ content: Data?, isComplete: Bool, failure: LinkError?) {
            isReceiving = false
            if let content, !content.isEmpty {
                inbox = content
                readByteCount = 0
            }
            if isComplete { self.isComplete = true }
            if let failure { fail(failure) }
        }

        /// What came before the end or the failure is read before it.
        mutating func read(
            into space: UnsafeMutableRawBufferPointer
        ) throws(LinkError) -> ReadOutcome {
            guard !isClosing else { throw .closed }
            guard hasUnread else {
                if isComplete {
                    endWasRead = true
                    return .endOfStream
                }
                if let failure { throw failure }
                return .nothing
            }
            let count = min(space.count, inbox.count - readByteCount)
            guard count > 0 else { return .nothing }
            inbox.withUnsafeBytes { bytes in
                let part = bytes[readByteCount..<readByteCount + count]
                space.copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
            }
            readByteCount += count
            wasRead = true
            if !hasUnread {
                inbox = Data()
                readByteCount = 0
            }
            return .bytes(count)
        }

        // MARK: Writing

        /// How many of the bytes can be sent now; when fewer than there are, the receiver will hear.
        mutating func takeForSending(
            _ count: Int,
            atMost limit: Int
        ) throws(LinkError) -> Int {
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

        /// Whom to tell that writing can go on, and whether the connection was kept for this alone.
        mutating func noteSent(
            isChunk: Bool
        ) -> (receiver: (any ByteStreamReceiver)?, mustCancel: Bool) {
            sends -= 1
            if isChunk { isSending = false }
            if isOver { return (nil, sends == 0) }
            guard isChunk, wantsToWrite else { return (nil, false) }
            wantsToWrite = false
            return (listener, false)
        }
    }
#endif
