#if os(Linux)
    import WireCore

    /// A byte stream with TLS over another stream.
    ///
    /// It works for both sides; the connection determines which. ``open()`` runs the handshake; no data from above is
    /// accepted before it is complete and the peer is verified. A write is reported as done only after the stream below
    /// has taken the last of its records, so that closing after the last write loses nothing.
    package final class TLSStream: StreamLayer, ByteStreamReceiver {
        private struct State: Sendable {
            let connection: TLSConnection
            var receiver: (any ByteStreamReceiver)?
            var isReading = true
            /// Whether data was left unread when the reader above stopped.
            var hasLeftover = false
            /// Whether the reader above has read since it was last told.
            var hasRead = false
            /// Whether data, and decrypted data, has arrived from the peer.
            var hasReceived = false
            var hasReceivedData = false

            var opening = Opening<Void, Suspension.Continuation>.pending
            /// The error that broke the stream, which counts more than its later end.
            var failure: LinkError?
            /// The end of the stream, after it has ended.
            var end: LinkError??

            var isFlushing = false
            var isBlocked = false
            /// Whether the stream below drained before the writing thread noted that it was full.
            var hasDrained = false
            /// The number of bytes of the next write that are already encrypted.
            var ahead = 0
            /// The error of the stream below during a write.
            var writeFailure: LinkError?
            /// Whether the writer above waits.
            var wantsToWrite = false
        }

        /// Ciphertext that was read and not decrypted yet.
        ///
        /// Used by the calls of the stream below and by the reading thread.
        private struct Input: Sendable {
            var bytes: [UInt8] = []
            var unread = 0..<0
            /// The number of reads from the stream below that are left in this turn.
            var allowance = 0
            /// Whether the end follows the data read so far, and was not reported yet.
            var hasEnd = false

            mutating func consume(_ count: Int) {
                unread = count < unread.count ? unread.dropFirst(count) : 0..<0
            }
        }

        /// The size of a read from below, and the limit of unsent ciphertext: 64 KiB, four records.
        private static let batchSize = 65_536
        /// The number of reads from the stream below per turn, so that a flood on one stream does not delay the others.
        private static let readsInTurn = 4

        private let state: Locked<State>
        private let input = Locked(Input())
        package let base: any ByteStream

        /// - Parameters:
        ///   - base: The stream of the records; connected and not started.
        ///   - connection: The TLS connection that encrypts and decrypts.
        init(over base: any ByteStream, _ connection: TLSConnection) {
            self.base = base
            state = Locked(State(connection: connection))
        }

        /// Makes one side over a stream, with a context.
        ///
        /// - Parameters:
        ///   - base: The stream of the records; connected and not started.
        ///   - context: The context, which determines the side and the settings.
        ///   - host: The name or address that a client requests.
        /// - Throws: `LinkError.tls` with `invalidSettings` for an invalid host.
        package convenience init(
            over base: any ByteStream,
            _ context: TLSContext,
            host: String
        ) throws(LinkError) {
            self.init(over: base, try TLSConnection(context, host: host))
        }

        // MARK: Opening

        /// Starts the handshake; the stream references itself until its end.
        package func open() {
            base.start(self)
            // Only starts it; reads come in turns of the stream below.
            advance(reads: 0)
        }

        /// Waits until the stream is secure and the peer verified.
        ///
        /// - Throws: `LinkError`; `cancelled` if the task was cancelled.
        package func opening() async throws(LinkError) {
            try await state.opened(\.opening) { fail(.cancelled) }
        }

        /// Ends the stream with an error, unless it has ended.
        func fail(_ error: LinkError) {
            let opener = state.withLock { state in
                if state.failure == nil { state.failure = error }
                return state.opening.decide(.failure(error)).waiter
            }
            // Sends an alert, if the connection has one for the peer.
            flush()
            base.close()
            opener?.resume()
        }

        /// Continues the handshake as far as the received data allows.
        private func advance(reads allowance: Int = TLSStream.readsInTurn) {
            let outcome = input.withLock { input in
                input.allowance = allowance
                return continueHandshake(&input)
            }
            flush()
            switch outcome {
            case .success(false): return
            case .failure(let error): fail(error)
            case .success(true):
                // Further data waits in the stream below for the reader, if there is none yet.
                base.setReading(false)
                let (opener, receiver) = state.withLock { state in
                    (state.opening.decide(.success(())).waiter, state.receiver)
                }
                opener?.resume()
                guard let receiver else { return }
                beginReading()
                receiver.streamIsWritable()
            }
        }

        private func continueHandshake(_ input: inout Input) -> Result<Bool, LinkError> {
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
                        // Every record begins so (RFC 8446, 5.1).
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

        /// Reads the next input of the connection from below.
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
            // Called even while reading is stopped: the stream below then reports a broken connection.
            let (isOpen, receiver) = state.withLock { ($0.opening.isDecided, $0.receiver) }
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
            // Sends the answers that reading has produced for the peer.
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
                let opener = state.opening.decide(.failure(cause ?? .tls(.closed))).waiter
                let end = state.failure ?? cause
                if state.end == nil { state.end = .some(end) }
                return (opener, state.receiver.take(), end)
            }
            opener?.resume()
            receiver?.streamDidEnd(end)
        }

        /// The error for an end below; nil means an end without close_notify.
        private func cause(of error: LinkError?) -> LinkError {
            state.withLock { state in
                if let failure = state.failure { return failure }
                switch error {
                case nil, .endOfStream, .reset:
                    // A server that requires a certificate may close at once. Its alert is lost if it closes with
                    // unread bytes.
                    if !state.hasReceivedData, state.connection.lacksIdentity {
                        return .tls(.certificateRequired)
                    }
                    guard case .success = state.opening.outcome else { return .tls(.closed) }
                    return error == .reset ? .reset : .truncated
                case let error?: return error
                }
            }
        }

        // MARK: ByteStream

        package var tls: TLSAgreement? { state.withLock { $0.connection.agreement } }

        package func start(_ receiver: any ByteStreamReceiver) {
            let (end, isOpen) = state.withLock { state in
                if state.end == nil { state.receiver = receiver }
                return (state.end, state.opening.isDecided)
            }
            if case .some(let end) = end { return receiver.streamDidEnd(end) }
            if isOpen { beginReading() }
        }

        /// Gives the reader the data after the handshake, some of which may already be here.
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
                // Earlier data is returned first; the connection reports the same at the next call.
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

        /// Reads from below; an error there is reported after earlier data was taken.
        private func outcomeBelow(_ input: inout Input, _ filled: Int) throws(LinkError)
            -> ReadOutcome
        {
            do throws(LinkError) { return try refill(&input) } catch {
                input.hasEnd = filled > 0
                if filled > 0 { return .nothing }
                throw broken(by: cause(of: error))
            }
        }

        /// Notes the error that broke the stream, and sends the peer an alert if there is one.
        ///
        /// A waiting writer learns of it by the end.
        private func broken(by error: LinkError) -> LinkError {
            let first = state.withLock { state in
                if state.failure == nil { state.failure = error }
                return state.failure ?? error
            }
            send()
            return first
        }

        package func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            guard let opening = state.withLock({ $0.opening.outcome }) else { return 0 }
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

        /// Encrypts the rest of the bytes, up to a batch.
        ///
        /// - Returns: The number of bytes that are now encrypted.
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

        /// Sends ciphertext, and tells the writer above when all that it waits for was sent.
        ///
        /// Never called under the lock of the input, under which no call goes upwards.
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

        /// Passes ciphertext to the stream below; one thread at a time.
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

        package func setReading(_ isReading: Bool) {
            let (isOpen, hasLeftover) = state.withLock { state in
                state.isReading = isReading
                return (state.opening.isDecided, state.hasLeftover)
            }
            guard isOpen else { return }
            base.setReading(isReading)
            if isReading, hasLeftover { base.readAgain() }
        }

        package func finishWriting() {
            state.withLock { $0.connection.finish() }
            flush()
            base.finishWriting()
        }
    }
#endif
