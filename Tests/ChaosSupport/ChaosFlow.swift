#if os(Linux)
    import WireTestSupport

    /// One direction of a connection through the proxy.
    ///
    /// The faults and the bytes before which they come depend only on the seed, the connection's number and the
    /// direction.
    struct ChaosFlow {
        /// The number of bytes that are read before they are forwarded. The rest stays with the sender.
        static let capacity = 16_384

        let source: Int32
        let sink: Int32
        private(set) var random: SeededGenerator
        private var buffer: [UInt8] = []
        private var start = 0
        /// The number of bytes that may pass before the next fault.
        private(set) var untilFault: Int
        /// The time at which the next fault comes, whether bytes pass or not.
        private(set) var faultTime: UInt64
        /// Before this time nothing is read or forwarded.
        var heldUntil: UInt64 = 0
        /// The number of pieces of one to three bytes that are still to be sent.
        var pieces = 0
        /// True when the source has ended.
        private(set) var isOver = false
        /// True when the end was forwarded to the sink. Bytes that arrive later are discarded.
        private(set) var isFinished = false

        init(source: Int32, sink: Int32, seed: UInt64, plan: ChaosPlan, now: UInt64) {
            self.source = source
            self.sink = sink
            random = SeededGenerator(seed: seed)
            untilFault = 0
            faultTime = .max
            expectFault(plan, now)
        }

        var isEmpty: Bool { start == buffer.count }

        /// Draws the place and the time of the next fault.
        mutating func expectFault(_ plan: ChaosPlan, _ now: UInt64) {
            untilFault = Int.random(in: plan.bytesBetweenFaults, using: &random)
            guard let times = plan.timeBetweenFaults else { return }
            faultTime = now + draw(times)
        }

        /// Draws a duration, in nanoseconds.
        mutating func draw(_ times: ClosedRange<Duration>) -> UInt64 {
            let least = times.lowerBound.nanoseconds
            return UInt64.random(
                in: least...max(least, times.upperBound.nanoseconds),
                using: &random
            )
        }

        mutating func draw(_ kinds: [ChaosFault]) -> ChaosFault {
            kinds.randomElement(using: &random) ?? .reset
        }

        mutating func drawPieces(_ range: ClosedRange<Int>) {
            pieces = Int.random(in: range, using: &random)
        }

        mutating func drawCoin() -> Bool { Bool.random(using: &random) }

        // MARK: Moving bytes

        func wantsToRead(at now: UInt64) -> Bool {
            !isOver && now >= heldUntil && (isFinished || buffer.count - start < Self.capacity)
        }

        func wantsToWrite(at now: UInt64) -> Bool {
            !isFinished && now >= heldUntil && (!isEmpty || isOver)
        }

        /// - Returns: False when the source is broken.
        mutating func read() -> Bool {
            if start > 0 {
                buffer.removeFirst(start)
                start = 0
            }
            let room = isFinished ? Self.capacity : Self.capacity - buffer.count
            guard room > 0 else { return true }
            var outcome = ChaosSocket.Outcome.nothing
            let source = source
            let new = [UInt8](unsafeUninitializedCapacity: room) { space, count in
                outcome = ChaosSocket.receive(into: .init(space), from: source)
                if case .bytes(let read) = outcome { count = read }
            }
            switch outcome {
            case .bytes: if !isFinished { buffer += new }
            case .end: isOver = true
            case .nothing: break
            case .failure: return false
            }
            return true
        }

        /// Forwards what may pass, and the end of the source after the last byte.
        ///
        /// - Returns: The number of bytes that were forwarded; nil when the sink is broken.
        mutating func write(isCalm: Bool, _ now: UInt64) -> Int? {
            var count = buffer.count - start
            if !isCalm { count = min(count, untilFault) }
            if pieces > 0 { count = min(count, Int.random(in: 1...3, using: &random)) }
            if count > 0 {
                let outcome = buffer.withUnsafeBytes { bytes in
                    ChaosSocket.send(.init(rebasing: bytes[start..<start + count]), to: sink)
                }
                switch outcome {
                case .bytes(let sent): count = sent
                case .nothing, .end: count = 0
                case .failure: return nil
                }
                start += count
                if !isCalm { untilFault -= count }
                if pieces > 0 {
                    pieces -= 1
                    // Gives the receiver time to read the piece by itself.
                    heldUntil = now + 200_000
                }
            }
            if isOver, isEmpty { finish() }
            return count
        }

        /// Ends this direction. Bytes that were not forwarded, and bytes that arrive later, are lost.
        mutating func finish() {
            guard !isFinished else { return }
            isFinished = true
            buffer = []
            start = 0
            heldUntil = 0
            pieces = 0
            ChaosSocket.finish(sink)
        }

        /// True when a fault is due: its time has come, or the next byte in the buffer is the one it precedes.
        func isFaultDue(at now: UInt64) -> Bool {
            !isFinished && now >= heldUntil && (untilFault == 0 && !isEmpty || now >= faultTime)
        }

        var heldCount: Int { buffer.count - start }
    }

    extension Duration {
        /// The duration in nanoseconds; 0 for a negative one.
        var nanoseconds: UInt64 {
            let (seconds, attoseconds) = components
            return UInt64(max(0, seconds * 1_000_000_000 + attoseconds / 1_000_000_000))
        }
    }
#endif
