import WireCore

/// The stream's calls to a driver.
extension Driver {
    package func streamIsReadable() {
        // Limited, so that a flood on one stream does not delay the others.
        for _ in 0..<Self.roundsInTurn {
            // Checked here, too: on a broken connection a stream calls although reading is stopped.
            let (isFull, isOver) = state.withLock { ($0.noteAccount(account), $0.isStreamOver) }
            guard !isFull else { return tellReading() }
            let (outcome, next, hasMore) = received.withLock { read(&$0, isOver: isOver) }
            carryOut(next)
            let (mayGoOn, delayedEnd, unwritable) = state.withLock { state in
                (state.isReading, state.takeDelayedEnd(), state.writeErrorAfterLastRead)
            }
            switch outcome {
            case .success(.bytes):
                if case .some(let error) = delayedEnd { return end(error) }
                // The events may have stopped reading.
                if hasMore, mayGoOn { continue }
            case .success(.nothing): if case .some(let error) = delayedEnd { return end(error) }
            case .success(.endOfStream): return end(endError(.endOfStream))
            case .failure(let error): return end(endError(error))
            }
            received.withLock { $0.buffer.release() }
            // All of the peer's data was read.
            if let unwritable { end(unwritable) }
            return
        }
        let (isUnwritable, isUndecoded, isOver) = state.withLock { state in
            (state.unwritable != nil, state.isUndecoded, state.isStreamOver)
        }
        if isOver {
            // The stream itself calls no more.
            _ = timers.scheduleTimer(at: timers.now) { self.streamIsReadable() }
        } else if isUnwritable || isUndecoded {
            stream.readAgain()
        }
    }

    /// The error that a failed read reports as the end.
    ///
    /// An alert of TLS says more than an earlier failed write; any other error says less.
    private func endError(_ error: LinkError) -> LinkError {
        if case .tls = error { return error }
        return state.withLock { $0.unwritable } ?? error
    }

    /// Reads and decodes, or continues decoding earlier data.
    private func read(
        _ received: inout Received,
        isOver: Bool
    ) -> (Result<ReadOutcome, LinkError>, DriverSteps, hasMore: Bool) {
        if isOver, !received.isUndecoded { return (.success(.nothing), [], false) }
        let (outcome, wasFilled) =
            received.isUndecoded ? (.success(.bytes(0)), true) : fill(&received)
        let now = timers.now
        switch outcome {
        case .success(.bytes):
            received.isFirst = false
            let next = state.withLock { state in
                state.pacer.noteReceived()
                defer { received.isUndecoded = state.isUndecoded }
                return state.decode(&received.buffer, at: now, account, by: timers)
            }
            return (outcome, next, wasFilled || received.isUndecoded)
        case .success(.endOfStream):
            let next = state.withLock { state in
                state.noteEndOfStream()
                state.core.receiveEndOfStream(at: now)
                return state.stepsAfterCall(.immediate, grewFrom: 0, by: timers)
            }
            return (outcome, next, false)
        default: return (outcome, [], false)
        }
    }

    /// Reads from the stream.
    private func fill(
        _ received: inout Received
    ) -> (Result<ReadOutcome, LinkError>, wasFilled: Bool) {
        var outcome = Result<ReadOutcome, LinkError>.success(.nothing)
        var wasFilled = false
        let isFirst = received.isFirst
        _ = received.buffer.fill { space in
            do throws(LinkError) {
                let found = try stream.read(into: space)
                outcome = .success(found)
                guard case .bytes(let count) = found else { return nil }
                if isFirst, stream.tls == nil, Self.isAlert(space[..<count]) {
                    throw .tls(.required)
                }
                wasFilled = count == space.count
                return count
            } catch {
                outcome = .failure(error)
                return nil
            }
        }
        return (outcome, wasFilled)
    }

    /// Whether bytes begin like an alert of TLS (RFC 8446, 5.1).
    ///
    /// No protocol here begins that way. A server that requires TLS answers a client without TLS so.
    private static func isAlert(_ bytes: Slice<UnsafeMutableRawBufferPointer>) -> Bool {
        bytes.starts(with: [21, 3])
    }

    package func streamIsWritable() {
        state.withLock { $0.noteWritable() }
        flush()
    }

    package func streamShouldFlush() {
        flush()
    }

    package func streamDidEnd(_ error: LinkError?) {
        guard state.withLock({ $0.delayEnd(error) }) else { return end(error) }
        if state.withLock({ $0.isReading }) { streamIsReadable() }
    }
}
