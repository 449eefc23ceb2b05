import HTTPWire
import WireCore

/// A stream through a proxy: it first carries the handshake, then all data unchanged.
///
/// Data that the proxy sent after its response is read first. Like other streams it references itself from ``open()``
/// to its end.
final class ProxyStream: StreamLayer, ByteStreamReceiver {
    private struct State: Sendable {
        var handshake: HTTPTunnelHandshake
        /// Whether the request is being written, and whether the stream below can take more of it.
        var isWriting = false
        var canWrite = true
        var writeFailure: LinkError?
        var opening = Opening<Void, Suspension.Continuation>.pending
        var receiver: (any ByteStreamReceiver)?
        var isReading = true
        /// Whether data after the response is left.
        var hasLeftover = false
        /// The end of the stream, after it has ended.
        var end: LinkError??
    }

    private let state: Locked<State>
    /// The response, and then the data after it.
    ///
    /// Used only in the calls of the stream below, which come one at a time.
    private let received = Locked(ReceiveBuffer(capacity: 4_096))
    let base: any ByteStream

    init(_ base: any ByteStream, _ handshake: HTTPTunnelHandshake) {
        self.base = base
        state = Locked(State(handshake: handshake))
    }

    // MARK: Opening

    /// Requests the tunnel and waits until it is open.
    ///
    /// - Throws: `LinkError`; the stream is closed then.
    func open() async throws(LinkError) {
        base.start(self)
        writeRequest()
        try await state.opened(\.opening) { fail(.cancelled) }
    }

    /// Ends the wait, unless the outcome was decided.
    func timeOut() {
        let outcome = state.withLock { state in
            state.handshake.giveUp()
            return state.handshake.outcome
        }
        if case .open? = outcome { return }
        fail(outcome.flatMap(Self.error) ?? .timedOut)
    }

    /// Decides the opening, unless it was decided.
    ///
    /// - Returns: Whether this call decided.
    private func decide(_ outcome: Result<Void, LinkError>) -> Bool {
        let (isFirst, waiter) = state.withLock { $0.opening.decide(outcome) }
        waiter?.resume()
        return isFirst
    }

    private func fail(_ error: LinkError) {
        if decide(.failure(error)) { base.close() }
    }

    private static func error(_ outcome: HTTPTunnelHandshake.Outcome) -> LinkError? {
        switch outcome {
        case .open: nil
        case .refused(let head, let body): .proxyRefused(head, body: body)
        case .violation(let violation): .proxyViolation(violation)
        case .endOfStream: .endOfStream
        }
    }

    /// Writes the rest of the request, one thread at a time and without a lock: a stream in memory answers before
    /// `write` returns.
    private func writeRequest() {
        while true {
            let bytes: ByteWriter? = state.withLock { state in
                guard state.canWrite, !state.isWriting, !state.handshake.outbound.isEmpty else {
                    return nil
                }
                state.isWriting = true
                state.canWrite = false
                return state.handshake.outbound
            }
            guard let bytes else { return }
            do throws(LinkError) {
                let written = try bytes.withUnsafeBytes { all throws(LinkError) in
                    try base.write(all)
                }
                state.withLock { state in
                    state.handshake.outbound.consume(written)
                    // Another thread that learned meanwhile of new room relies on this one.
                    state.isWriting = false
                }
            } catch {
                // A proxy that closes has usually sent a reason; only a call of the stream below may read it.
                state.withLock { $0.writeFailure = error }
                return base.readAgain()
            }
        }
    }

    /// Reads the available part of the response, and no more than belongs to it or arrived in one piece with it.
    private func readAnswer() {
        while state.withLock({ !$0.opening.isDecided }) {
            let (found, outcome, writeFailure) = received.withLock { buffer in
                let found = fill(&buffer)
                let (outcome, writeFailure) = state.withLock { state in
                    switch found {
                    case .success(.bytes): state.handshake.receive(&buffer)
                    case .success(.endOfStream): state.handshake.receiveEndOfStream()
                    default: break
                    }
                    state.hasLeftover = buffer.count > 0
                    return (state.handshake.outcome, state.writeFailure)
                }
                if case .open? = outcome, buffer.count == 0 { buffer = ReceiveBuffer(capacity: 16) }
                return (found, outcome, writeFailure)
            }
            switch (outcome, found) {
            case (.open?, _):
                // Further data waits in the stream below for the reader.
                base.setReading(false)
                _ = decide(.success(()))
            case (let outcome?, _): fail(Self.error(outcome) ?? .endOfStream)
            case (nil, .failure(let error)): fail(writeFailure ?? error)
            case (nil, .success(.bytes)): break
            case (nil, .success):
                if let writeFailure { fail(writeFailure) }
                return
            }
        }
    }

    private func fill(_ buffer: inout ReceiveBuffer) -> Result<ReadOutcome, LinkError> {
        var outcome = Result<ReadOutcome, LinkError>.success(.nothing)
        _ = buffer.fill { space in
            do throws(LinkError) {
                let found = try base.read(into: space)
                outcome = .success(found)
                guard case .bytes(let count) = found else { return nil }
                return count
            } catch {
                outcome = .failure(error)
                return nil
            }
        }
        return outcome
    }

    // MARK: ByteStreamReceiver

    func streamIsReadable() {
        // Called even while reading is stopped: the stream below then reports a broken connection.
        let (isOpen, receiver) = state.withLock { ($0.opening.isDecided, $0.receiver) }
        guard isOpen else { return readAnswer() }
        guard let receiver else { return }
        let waiting = received.withLock { $0.count }
        receiver.streamIsReadable()
        // The reader assumes that it has read everything, and the stream below that its data was not wanted.
        let hasRead = waiting > received.withLock { $0.count }
        if hasRead, state.withLock({ $0.isReading }) { base.readAgain() }
    }

    func streamIsWritable() {
        let (isOpen, receiver) = state.withLock { state in
            state.canWrite = true
            return (state.opening.isDecided, state.receiver)
        }
        if isOpen { receiver?.streamIsWritable() } else { writeRequest() }
    }

    func streamShouldFlush() {
        state.withLock { $0.receiver }?.streamShouldFlush()
    }

    func streamDidEnd(_ error: LinkError?) {
        _ = decide(.failure(error ?? .closed))
        let receiver = state.withLock { state in
            state.end = .some(error)
            return state.receiver.take()
        }
        receiver?.streamDidEnd(error)
    }

    // MARK: ByteStream

    func start(_ receiver: any ByteStreamReceiver) {
        let (end, isReading) = state.withLock { state in
            if state.end == nil { state.receiver = receiver }
            return (state.end, state.isReading)
        }
        if case .some(let end) = end { return receiver.streamDidEnd(end) }
        guard isReading else { return }
        base.setReading(true)
        base.readAgain()
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        try base.write(bytes)
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        if state.withLock({ $0.hasLeftover }) {
            let count = received.withLock { takeLeftover(&$0, into: space) }
            if count > 0 { return .bytes(count) }
        }
        return try base.read(into: space)
    }

    private func takeLeftover(
        _ buffer: inout ReceiveBuffer,
        into space: UnsafeMutableRawBufferPointer
    ) -> Int {
        let count = min(buffer.count, space.count)
        buffer.withUnsafeBytes { bytes in
            space.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        buffer.consume(count)
        guard buffer.count == 0 else { return count }
        state.withLock { $0.hasLeftover = false }
        // An idle connection keeps no buffer.
        buffer = ReceiveBuffer(capacity: 16)
        return count
    }

    func setReading(_ isReading: Bool) {
        let hasLeftover = state.withLock { state in
            state.isReading = isReading
            return state.hasLeftover
        }
        base.setReading(isReading)
        if isReading, hasLeftover { base.readAgain() }
    }
}
