#if os(Linux)
    import WireCore

    /// A byte stream that is secured by TLS, over another one.
    ///
    /// Either side: which one is the connection's affair. ``open()`` shakes hands; nothing is taken from above
    /// before that is done and the peer verified. A write is reported as taken only once the stream below has
    /// taken the last of its records, so that whoever closes after the last write loses nothing.
    package final class TLSStream: ByteStream, ByteStreamReceiver {
        private struct State: Sendable {
            let connection: TLSConnection
            var receiver: (any ByteStreamReceiver)?
            var isReading = true
            /// Whether something was left unread when the reader above stopped.
            var hasLeftover = false
            /// Whether the reader above has read since it was last told.
            var hasRead = false
            /// Whether anything has come from the peer, and anything behind TLS.
            var hasReceived = false
            var hasReceivedData = false

            var opening: Result<Void, LinkError>?
            var opener: Suspension.Continuation?
            /// What has broken the stream, whatever is heard of its end.
            var failure: LinkError?
            /// How it ended, once it did.
            var end: LinkError??

            var isFlushing = false
            var isBlocked = false
            /// Whether the stream below drained while the flusher was still about to learn that it was full.
            var hasDrained = false
            /// How many bytes of the next write are encrypted already.
            var ahead = 0
            /// What broke the stream below while it was written to.
            var writeFailure: LinkError?
            /// Whether the writer above waits.
            var wantsToWrite = false
        }

        /// Ciphertext that has been read and not decrypted.
        ///
        /// Touched by the calls of the stream below and by whoever reads.
        private struct Input: Sendable {
            var bytes: [UInt8] = []
            var unread = 0..<0
            /// How often the stream below may still be read in this turn.
            var allowance = 0
            /// Whether the end has been seen behind what was read, and waits to be told.
            var hasEnd = false

            mutating func consume(_ count: Int) {
                unread = count < unread.count ? unread.dropFirst(count) : 0..<0
            }
        }

        /// How much is read from below at once, and how much ciphertext may wait to leave: 64 KiB, four records.
        private static let batchSize = 65_536
        /// How often the stream below is read in a turn, so that a flood on one stream cannot keep the others
        /// waiting.
        private static let readsInTurn = 4

        private let state: Locked<State>
        private let input = Locked(Input())
        private let base: any ByteStream

        /// - Parameters:
        ///   - base: What carries the records; connected and not started.
        ///   - connection: What makes them.
        init(over base: any ByteStream, _ connection: TLSConnection) {
            self.base = base
            state = Locked(State(connection: connection))
        }

        /// One side over a stream, by a context.
        ///
        /// - Parameters:
        ///   - base: What carries the records; connected and not started.
        ///   - context: Which side this is, and how it behaves.
        ///   - host: Whom a client asks for.
        /// - Throws: `LinkError.tls` with `invalidSettings` for a host that cannot be asked for.
        package convenience init(
            over base: any ByteStream,
            _ context: TLSContext,
            host: String
        ) throws(LinkError) {
            self.init(over: base, try TLSConnection(context, host: host))
        }

        // MARK: Opening

        /// Begins to shake hands; the stream keeps itself until its end.
        package func open() {
            base.start(self)
            // Begins; what is read comes in turns of the stream below.
            advance(reads: 0)
        }

        /// Waits until the stream is secure and the peer verified.
        /// - Throws: `LinkError`; `cancelled` when the task was cancelled.
        package func opening() async throws(LinkError) {
            await Suspension.wait { continuation in
                let mustWait = state.withLock { state in
                    guard state.opening == nil, !Task.isCancelled else { return false }
                    state.opener = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            } onCancel: {
                state.withLock { $0.opener.take() }?.resume()
            }
            guard let opening = state.withLock({ $0.opening }) else {
                fail(.cancelled)
                throw .cancelled
            }
            try opening.get()
        }

        /// Breaks the stream off, unless it has ended.
        func fail(_ error: LinkError) {
            let opener = state.withLock { state in
                if state.failure == nil { state.failure = error }
                if state.opening == nil { state.opening = .failure(error) }
                return state.opener.take()
            }
            // What the connection has to say to the peer: an alert.
            flush()
            base.close()
            opener?.resume()
        }

        /// Goes on with the handshake as far as what has come allows.
        private func advance(reads allowance: Int = TLSStream.readsInTurn) {
            let outcome = input.withLock { input in
                input.allowance = allowance
                return shakeHands(&input)
            }
            flush()
            switch outcome {
            case .success(false): return
            case .failure(let error): fail(error)
            case .success(true):
                // What follows waits in the stream below for the reader, if there is none yet.
                base.setReading(false)
                let (opener, receiver) = state.withLock { state in
                    if state.opening == nil { state.opening = .success(()) }
                    return (state.opener.take(), state.receiver)
                }
                opener?.resume()
                guard let receiver else { return }
                beginReading()
                receiver.streamIsWritable()
            }
        }

        private func shakeHands(_ input: inout Input) -> Result<Bool, LinkError> {
            while true {
                let step = state.withLock { state in
                    input.bytes.withUnsafeBytes { bytes in
                        state.connection.handshake(
                            UnsafeRawBufferPointer(rebasing: bytes[input.unread])
                        )
                    }
                }
                input.consume(step.consumed)
                switch step.outcome {
                case .failed(let fault): return .failure(.tls(fault))
                case .closed: return .failure(.tls(.closed))
                case .fine: if step.isDone { return .success(true) }
                }
                guard input.allowance > 0 else { return .success(false) }
                do throws(LinkError) {
                    switch try refill(&input) {
                    case .bytes:
                        // Any record begins so (RFC 8446, 5.1).
                        guard
                            (20...23).contains(input.bytes[0]) || state.withLock({ $0.hasReceived })
                        else {
                            return .failure(.tls(.notTLS))
                        }
                        state.withLock { $0.hasReceived = true }
                    case .nothing: return .success(false)
                    case .endOfStream: return .failure(cause(of: nil))
                    }
                } catch {
                    return .failure(cause(of: error))
                }
            }
        }

        /// Reads from below what the connection will be given next.
        private func refill(_ input: inout Input) throws(LinkError) -> ReadOutcome {
            input.allowance -= 1
            if input.bytes.isEmpty { input.bytes = [UInt8](repeating: 0, count: Self.batchSize) }
            let outcome = try input.bytes.withUnsafeMutableBytes { space in
                Result { () throws(LinkError) in try base.read(into: space) }
            }.get()
            if case .bytes(let count) = outcome { input.unread = 0..<count }
            return outcome
        }

        // MARK: ByteStreamReceiver

        package func streamIsReadable() {
            // Told also to a receiver that holds back: from below comes what cannot wait then, a broken connection.
            let (isOpen, receiver) = state.withLock { ($0.opening != nil, $0.receiver) }
            guard isOpen else { return advance() }
            guard let receiver else { return }
            input.withLock { $0.allowance = Self.readsInTurn }
            receiver.streamIsReadable()
            let isLeft = input.withLock { input in
                // An idle connection keeps no buffer.
                if input.unread.isEmpty { input.bytes = [] }
                return !input.unread.isEmpty || input.hasEnd
            }
            let goesOn = state.withLock { state in
                state.hasLeftover = isLeft || state.connection.hasMore
                defer { state.hasRead = false }
                return state.hasLeftover && state.isReading && state.hasRead
            }
            if goesOn { base.readAgain() }
            // What reading has made: answers that the peer asked for.
            flush()
        }

        package func streamIsWritable() {
            state.withLock { state in
                if state.isFlushing { state.hasDrained = true } else { state.isBlocked = false }
            }
            flush()
        }

        package func streamShouldFlush() {
            state.withLock { $0.receiver }?.streamShouldFlush()
        }

        package func streamDidEnd(_ error: LinkError?) {
            let cause = error.map { self.cause(of: $0) }
            let (opener, receiver, end) = state.withLock { state in
                if state.opening == nil { state.opening = .failure(cause ?? .tls(.closed)) }
                let end = state.failure ?? cause
                if state.end == nil { state.end = .some(end) }
                return (state.opener.take(), state.receiver.take(), end)
            }
            opener?.resume()
            receiver?.streamDidEnd(end)
        }

        /// What an end below means; nil is one without the peer's word behind TLS.
        private func cause(of error: LinkError?) -> LinkError {
            state.withLock { state in
                if let failure = state.failure { return failure }
                switch error {
                case nil, .endOfStream, .reset:
                    // Of a server that wants a certificate and shuts the door, nothing more may be heard: its
                    // alert is lost when it closes with bytes unread.
                    if !state.hasReceivedData, state.connection.lacksIdentity {
                        return .tls(.certificateRequired)
                    }
                    guard case .success = state.opening else { return .tls(.closed) }
                    return error == .reset ? .reset : .truncated
                case let error?: return error
                }
            }
        }

        // MARK: ByteStream

        package var tls: TLSAgreement? { state.withLock { $0.connection.agreement } }

        /// Records count that bring no bytes, such as a ticket: whether they do shows only when they are read.
        package var hasInput: Bool { base.hasInput }

        package func start(_ receiver: any ByteStreamReceiver) {
            let (end, isOpen) = state.withLock { state in
                if state.end == nil { state.receiver = receiver }
                return (state.end, state.opening != nil)
            }
            if case .some(let end) = end { return receiver.streamDidEnd(end) }
            if isOpen { beginReading() }
        }

        /// Lets the reader have what comes behind the handshake, some of which may be here already.
        private func beginReading() {
            guard state.withLock({ $0.isReading }) else { return }
            base.setReading(true)
            base.readAgain()
        }

        package func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError)
            -> ReadOutcome
        {
            try input.withLock { input throws(LinkError) in try read(into: space, &input) }
        }

        private func read(
            into space: UnsafeMutableRawBufferPointer,
            _ input: inout Input
        ) throws(LinkError) -> ReadOutcome {
            var filled = 0
            var isDrained = false
            while filled < space.count {
                let step = state.withLock { state in
                    state.hasRead = true
                    let step = input.bytes.withUnsafeBytes { bytes in
                        state.connection.read(
                            UnsafeRawBufferPointer(rebasing: bytes[input.unread]),
                            into: UnsafeMutableRawBufferPointer(rebasing: space[filled...])
                        )
                    }
                    if step.produced > 0 { state.hasReceivedData = true }
                    return step
                }
                input.consume(step.consumed)
                filled += step.produced
                switch step.outcome {
                case .fine: break
                // What came before is told first; the connection says the same at the next call.
                case .closed, .failed:
                    input.hasEnd = filled > 0
                    if filled > 0 { return .bytes(filled) }
                    guard case .failed(let fault) = step.outcome else { return .endOfStream }
                    throw broken(by: .tls(fault))
                }
                guard filled < space.count, !isDrained, input.allowance > 0 else { break }
                switch try outcomeBelow(&input, filled) {
                case .bytes(let count): isDrained = count < Self.batchSize
                case .nothing: return filled > 0 ? .bytes(filled) : .nothing
                case .endOfStream:
                    input.hasEnd = filled > 0
                    if filled > 0 { return .bytes(filled) }
                    throw broken(by: cause(of: nil))
                }
            }
            return filled > 0 ? .bytes(filled) : .nothing
        }

        /// Reads from below; what breaks there is told once what came before has been taken.
        private func outcomeBelow(_ input: inout Input, _ filled: Int) throws(LinkError)
            -> ReadOutcome
        {
            do throws(LinkError) { return try refill(&input) } catch {
                input.hasEnd = filled > 0
                if filled > 0 { return .nothing }
                throw broken(by: cause(of: error))
            }
        }

        /// Notes what has broken the stream, and tells the peer what there is to tell: an alert.
        ///
        /// A writer that waits hears of it by the end.
        private func broken(by error: LinkError) -> LinkError {
            let first = state.withLock { state in
                if state.failure == nil { state.failure = error }
                return state.failure ?? error
            }
            send()
            return first
        }

        package func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            guard let opening = state.withLock({ $0.opening }) else { return 0 }
            try opening.get()
            var taken = 0
            while taken < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[taken...])
                let offered = try state.withLock { state throws(LinkError) in
                    try encrypt(rest, &state)
                }
                flush()
                let isSent = state.withLock { state in
                    if let failure = state.writeFailure {
                        return Result<Bool, LinkError>.failure(failure)
                    }
                    guard state.isFlushing || !state.connection.outbound().bytes.isEmpty else {
                        state.ahead = 0
                        return .success(true)
                    }
                    state.ahead = offered
                    state.wantsToWrite = true
                    return .success(false)
                }
                guard try isSent.get() else { return taken }
                taken += offered
            }
            return taken
        }

        /// Encrypts what of the bytes is not yet, as far as a batch goes.
        /// - Returns: How many of them are encrypted now.
        private func encrypt(
            _ bytes: UnsafeRawBufferPointer,
            _ state: inout State
        ) throws(LinkError) -> Int {
            if let failure = state.failure { throw failure }
            let ahead = min(state.ahead, bytes.count)
            guard !state.isBlocked else { return ahead }
            let fresh = UnsafeRawBufferPointer(rebasing: bytes[ahead...])
            let step = state.connection.write(fresh, limit: Self.batchSize)
            switch step.outcome {
            case .fine: return ahead + step.consumed
            case .closed: throw .closed
            case .failed(let fault): throw .tls(fault)
            }
        }

        /// Hands over what waits to leave, and tells the writer above once all has left that it waits for.
        ///
        /// Never with the lock of the input held, under which no call leads upwards.
        private func flush() {
            send()
            let writer = state.withLock { state -> (any ByteStreamReceiver)? in
                guard state.wantsToWrite, !state.isFlushing,
                    state.connection.outbound().bytes.isEmpty
                else { return nil }
                state.wantsToWrite = false
                return state.receiver
            }
            writer?.streamIsWritable()
        }

        /// Hands over to the stream below what waits to leave; one caller at a time.
        private func send() {
            while true {
                let outbound: TLSConnection.Outbound? = state.withLock { state in
                    guard !state.isFlushing, !state.isBlocked else { return nil }
                    let outbound = state.connection.outbound()
                    guard !outbound.bytes.isEmpty else { return nil }
                    state.isFlushing = true
                    return outbound
                }
                guard let outbound else { break }
                let written = Result { () throws(LinkError) in try base.write(outbound.bytes) }
                state.withLock { state in
                    state.isFlushing = false
                    switch written {
                    case .success(let count):
                        state.connection.noteSent(count)
                        if count < outbound.bytes.count, !state.hasDrained {
                            state.isBlocked = true
                        }
                        state.hasDrained = false
                    case .failure(let error):
                        state.writeFailure = error
                        state.isBlocked = true
                    }
                }
            }
        }

        package func scheduleFlush() -> Bool { base.scheduleFlush() }

        package func setReading(_ isReading: Bool) {
            let (isOpen, hasLeftover) = state.withLock { state in
                state.isReading = isReading
                return (state.opening != nil, state.hasLeftover)
            }
            guard isOpen else { return }
            base.setReading(isReading)
            if isReading, hasLeftover { base.readAgain() }
        }

        package func readAgain() {
            base.readAgain()
        }

        package func finishWriting() {
            state.withLock { $0.connection.finish() }
            flush()
            base.finishWriting()
        }

        package func close() {
            base.close()
        }

        package func abandon() {
            base.abandon()
        }
    }
#endif
