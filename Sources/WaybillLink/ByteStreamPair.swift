import WireCore

/// Two streams joined in memory without threads: one side reads what the other writes.
///
/// A call that affects either side runs its effects completely, on the caller's thread, one after another, before it
/// returns. A nested call waits for its turn. Tests are therefore deterministic and can stop time.
package final class ByteStreamPair: Sendable {
    /// An event of a side.
    private enum Signal: Sendable {
        case readable
        case writable
        case ended
    }

    private enum Life: Equatable, Sendable {
        case open
        case broken(LinkError)
        /// Closed by its own user.
        case closed
    }

    private struct Side: Sendable {
        var receiver: (any ByteStreamReceiver)?
        var life = Life.open
        var inbox: [UInt8] = []
        /// The number of bytes that the other side has written.
        var arrivedByteCount: UInt64 = 0
        /// Whether the other side writes no more.
        var inboxIsComplete = false
        var isReading = true
        var writerIsBlocked = false
        var isReadableSignalled = false

        /// Throws the reason why the side cannot be used.
        func check() throws(LinkError) {
            switch life {
            case .open: break
            case .broken(let failure): throw failure
            case .closed: throw .closed
            }
        }
    }

    private struct State: Sendable {
        var sides = [Side(), Side()]
        var signals: [(signal: Signal, index: Int)] = []
        var isDraining = false

        mutating func signalReadable(_ index: Int) {
            guard !sides[index].isReadableSignalled else { return }
            sides[index].isReadableSignalled = true
            signals.append((.readable, index))
        }

        /// Takes the next signal and the receiver to tell, unless a call is processing one.
        mutating func takeSignal() -> (Signal, (any ByteStreamReceiver)?)? {
            guard !isDraining, !signals.isEmpty else { return nil }
            isDraining = true
            let (signal, index) = signals.removeFirst()
            switch signal {
            case .readable:
                sides[index].isReadableSignalled = false
                return (signal, sides[index].isReading ? sides[index].receiver : nil)
            case .writable: return (signal, sides[index].receiver)
            case .ended: return (signal, sides[index].receiver.take())
            }
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    /// Makes a pair.
    ///
    /// - Parameter capacity: The number of bytes that each direction holds before writes become partial.
    package init(capacity: Int = 1 << 20) {
        self.capacity = max(capacity, 1)
    }

    /// One side.
    package var first: any ByteStream { End(pair: self, index: 0) }

    /// The other side.
    package var second: any ByteStream { End(pair: self, index: 1) }

    /// Whether all written data was read, and no call is processing effects.
    package var isQuiet: Bool {
        state.withLock { state in
            !state.isDraining && state.signals.isEmpty && state.sides.allSatisfy(\.inbox.isEmpty)
        }
    }

    /// Breaks the connection as a reset does, for both sides.
    package func reset() {
        state.withLock { state in
            for index in 0...1 where state.sides[index].life != .closed {
                state.sides[index].life = .broken(.reset)
                state.signalReadable(index)
            }
        }
        drain()
    }

    private func drain() {
        while let (signal, receiver) = state.withLock({ $0.takeSignal() }) {
            switch signal {
            case .readable: receiver?.streamIsReadable()
            case .writable: receiver?.streamIsWritable()
            case .ended: receiver?.streamDidEnd(nil)
            }
            state.withLock { $0.isDraining = false }
        }
    }

    private final class End: ByteStream {
        let pair: ByteStreamPair
        let index: Int

        init(pair: ByteStreamPair, index: Int) {
            self.pair = pair
            self.index = index
        }

        private var peer: Int { 1 - index }

        /// Changes the state, and runs the effects.
        private func change<Result: Sendable, Failure: Error>(
            _ body: (inout State) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            let result = try pair.state.withLock { state throws(Failure) in try body(&state) }
            pair.drain()
            return result
        }

        func start(_ receiver: any ByteStreamReceiver) {
            change { state in
                state.sides[index].receiver = receiver
                state.signalReadable(index)
            }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try change { state throws(LinkError) in
                try state.sides[index].check()
                guard state.sides[peer].life != .closed else { throw .reset }
                let count = min(bytes.count, pair.capacity - state.sides[peer].inbox.count)
                if count < bytes.count { state.sides[index].writerIsBlocked = true }
                state.sides[peer].inbox.append(
                    contentsOf: UnsafeRawBufferPointer(rebasing: bytes.prefix(count))
                )
                state.sides[peer].arrivedByteCount += UInt64(count)
                state.signalReadable(peer)
                return count
            }
        }

        /// What the other side has not read waits: there is no system between them.
        var sendQueue: SendQueue? {
            pair.state.withLock { state in
                let waiting = state.sides[peer].inbox.count
                return SendQueue(
                    taken: state.sides[peer].arrivedByteCount - UInt64(waiting),
                    waiting: waiting
                )
            }
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            try pair.state.withLock { state throws(LinkError) in
                try state.sides[index].check()
                let count = min(space.count, state.sides[index].inbox.count)
                guard count > 0 else {
                    return state.sides[index].inboxIsComplete ? .endOfStream : .nothing
                }
                space.copyBytes(from: state.sides[index].inbox.prefix(count))
                state.sides[index].inbox.removeFirst(count)
                // As with a socket, only remaining data is signalled again.
                if !state.sides[index].inbox.isEmpty || state.sides[index].inboxIsComplete {
                    state.signalReadable(index)
                }
                if state.sides[peer].writerIsBlocked {
                    state.sides[peer].writerIsBlocked = false
                    state.signals.append((.writable, peer))
                }
                return .bytes(count)
            }
        }

        var hasInput: Bool {
            pair.state.withLock { state in
                let side = state.sides[index]
                return !side.inbox.isEmpty || side.inboxIsComplete || side.life != .open
            }
        }

        func scheduleFlush() -> Bool { false }

        func setReading(_ isReading: Bool) {
            change { state in
                state.sides[index].isReading = isReading
                state.signalReadable(index)
            }
        }

        func readAgain() {
            change { $0.signalReadable(index) }
        }

        func finishWriting() {
            change { state in
                state.sides[peer].inboxIsComplete = true
                state.signalReadable(peer)
            }
        }

        func abandon() {
            pair.state.withLock { state in
                guard !state.sides.contains(where: { $0.life == .closed }) else { return }
                state.sides[peer].life = .broken(.reset)
            }
            close()
        }

        func close() {
            change { state in
                guard state.sides[index].life != .closed else { return }
                state.sides[index].life = .closed
                state.sides[peer].inboxIsComplete = true
                state.signals.append((.ended, index))
                state.signalReadable(peer)
            }
        }
    }
}
