import HTTPWire
import WireCore

/// A stream through a proxy: first the handshake runs on it, then everything passes through.
///
/// What the proxy sent behind its answer is read first. As other streams it keeps itself from ``open()`` to
/// its end.
final class ProxyStream: ByteStream, ByteStreamReceiver {
    private struct State: Sendable {
        var handshake: HTTPTunnelHandshake
        /// The answer, and then what came behind it.
        var received = ReceiveBuffer(capacity: 4_096)
        /// Whether the request is being written, and whether the stream below can take more of it.
        var isWriting = false
        var canWrite = true
        var opening: Result<Void, LinkError>?
        var opener: CheckedContinuation<Void, Never>?
        var receiver: (any ByteStreamReceiver)?
        var isReading = true
        /// Whether the receiver is being told something, and whether there is more to read for it.
        var isTelling = false
        var hasNews = false
        /// How the stream ended, once it did.
        var end: LinkError??
    }

    private let state: Locked<State>
    private let base: any ByteStream

    init(_ base: any ByteStream, _ handshake: HTTPTunnelHandshake) {
        self.base = base
        state = Locked(State(handshake: handshake))
    }

    // MARK: Opening

    /// Asks for the tunnel and waits until it is there.
    /// - Throws: `LinkError`; the stream is closed then.
    func open() async throws(LinkError) {
        base.start(self)
        writeRequest()
        await Suspension.wait { continuation in
            let mustWait = state.withLock { state in
                if state.opening == nil { state.opener = continuation }
                return state.opening == nil
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            fail(.cancelled)
        }
        // Read with the lock, so that whoever is resumed sees all that was written before.
        guard let opening = state.withLock({ $0.opening }) else { throw .cancelled }
        try opening.get()
    }

    /// Gives up waiting, unless it is decided.
    func timeIsUp() {
        let outcome = state.withLock { state in
            state.handshake.giveUp()
            return state.handshake.outcome
        }
        fail(outcome.flatMap(Self.error) ?? .timedOut)
    }

    /// The first to decide wins: the answer, the end, a timer or a cancelled task.
    private func decide(_ opening: Result<Void, LinkError>) {
        let opener = state.withLock { state in
            if state.opening == nil { state.opening = opening }
            return state.opener.take()
        }
        opener?.resume()
    }

    private func fail(_ error: LinkError) {
        let isFirst = state.withLock { $0.opening == nil }
        guard isFirst else { return }
        decide(.failure(error))
        // Unless the tunnel was there a moment before: then it is the caller's.
        if case .failure? = state.withLock({ $0.opening }) { base.close() }
    }

    private static func error(_ outcome: HTTPTunnelHandshake.Outcome) -> LinkError? {
        switch outcome {
        case .open: nil
        case .refused(let head, let body): .proxyRefused(head, body: body)
        case .violation(let violation): .proxyViolation(violation)
        case .endOfStream: .endOfStream
        }
    }

    /// Writes what is left of the request, one caller at a time and with no lock held: a stream in memory
    /// answers before `write` returns.
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
                    // Whoever heard meanwhile that there is room again has left it to this one.
                    state.isWriting = false
                }
            } catch {
                return fail(error)
            }
        }
    }

    private func readAnswer() {
        while true {
            var found = ReadOutcome.nothing
            var failure: LinkError?
            let outcome = state.withLock { state in
                guard state.opening == nil else { return HTTPTunnelHandshake.Outcome?.none }
                do throws(LinkError) {
                    _ = try state.received.fill { space throws(LinkError) in
                        found = try base.read(into: space)
                        guard case .bytes(let count) = found else { return nil }
                        return count
                    }
                } catch { failure = error }
                if case .bytes = found { state.handshake.receive(&state.received) }
                if case .endOfStream = found { state.handshake.receiveEndOfStream() }
                return state.handshake.outcome
            }
            if let failure { return fail(failure) }
            switch outcome {
            case .open?:
                // Before it is told, so that nobody can have begun to read.
                base.setReading(false)
                return decide(.success(()))
            case let outcome?: return fail(Self.error(outcome) ?? .endOfStream)
            case nil: guard case .bytes = found else { return }
            }
        }
    }

    // MARK: ByteStreamReceiver

    func streamIsReadable() {
        let isOpen = state.withLock { state in
            state.hasNews = true
            return state.opening != nil
        }
        if isOpen { tell() } else { readAnswer() }
    }

    func streamIsWritable() {
        let (isOpen, receiver) = state.withLock { state in
            state.canWrite = true
            return (state.opening != nil, state.receiver)
        }
        if isOpen { receiver?.streamIsWritable() } else { writeRequest() }
    }

    func streamShouldFlush() {
        state.withLock { $0.receiver }?.streamShouldFlush()
    }

    func streamDidEnd(_ error: LinkError?) {
        decide(.failure(error ?? .closed))
        state.withLock { $0.end = .some(error) }
        tell()
    }

    /// What the receiver is told next.
    private enum Step: Sendable {
        case readable(any ByteStreamReceiver)
        case ended(any ByteStreamReceiver, LinkError?)
    }

    /// Tells the receiver what there is, one caller at a time.
    private func tell() {
        while true {
            let step: Step? = state.withLock { state in
                guard !state.isTelling, let receiver = state.receiver else { return nil }
                if case .some(let end) = state.end {
                    state.receiver = nil
                    return .ended(receiver, end)
                }
                guard state.hasNews, state.isReading else { return nil }
                state.hasNews = false
                state.isTelling = true
                return .readable(receiver)
            }
            switch step {
            case .readable(let receiver):
                receiver.streamIsReadable()
                // Whoever came meanwhile has left its news behind.
                state.withLock { $0.isTelling = false }
            case .ended(let receiver, let error): return receiver.streamDidEnd(error)
            case nil: return
            }
        }
    }

    // MARK: ByteStream

    func start(_ receiver: any ByteStreamReceiver) {
        let isReading = state.withLock { state in
            state.receiver = receiver
            state.hasNews = state.received.count > 0
            return state.isReading
        }
        if isReading { base.setReading(true) }
        tell()
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        try base.write(bytes)
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        let count = state.withLock { state in
            let count = min(state.received.count, space.count)
            guard count > 0 else { return 0 }
            state.received.withUnsafeBytes { bytes in
                space.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            }
            state.received.consume(count)
            if state.received.count > 0 {
                // The stream below may have nothing more to tell of.
                state.hasNews = true
            } else {
                state.received = ReceiveBuffer(capacity: 16)
            }
            return count
        }
        return count > 0 ? .bytes(count) : try base.read(into: space)
    }

    func scheduleFlush() -> Bool { base.scheduleFlush() }

    func setReading(_ isReading: Bool) {
        state.withLock { state in
            state.isReading = isReading
            if isReading, state.received.count > 0 { state.hasNews = true }
        }
        base.setReading(isReading)
        if isReading { tell() }
    }

    func finishWriting() {
        base.finishWriting()
    }

    func close() {
        base.close()
    }
}
