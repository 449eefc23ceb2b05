import WireCore

/// The stream's calls to a driver.
extension Driver {
    package func streamIsReadable() {
        // Limited, so that a flood on one stream does not delay the others.
        for _ in 0..<DriverLimits.roundsInTurn {
            // Checked here, too: on a broken connection a stream calls although reading is stopped.
            let (isFull, isOver, isUndecoded) = state.withLock { state in
                (state.noteAccount(account), state.isStreamOver, state.isUndecoded)
            }
            guard !isFull else { return tellReading() }
            let (outcome, next, hasMore) = received.withLock { received in
                if isUndecoded { return decode(&received, .success(.bytes(0)), wasFilled: true) }
                if isOver { return (.success(.nothing), [], false) }
                let (outcome, wasFilled) = received.read(from: stream)
                return decode(&received, outcome, wasFilled: wasFilled)
            }
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

    /// Decodes what was read, or continues with earlier data.
    private func decode(
        _ received: inout StreamReader,
        _ outcome: Result<ReadOutcome, LinkError>,
        wasFilled: Bool
    ) -> (Result<ReadOutcome, LinkError>, DriverSteps, hasMore: Bool) {
        let now = timers.now
        switch outcome {
        case .success(.bytes):
            return state.withLock { state in
                state.pacer.noteReceived()
                let next = state.decode(&received.buffer, at: now, account, by: timers)
                return (outcome, next, wasFilled || state.isUndecoded)
            }
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

    package func streamIsWritable() {
        state.withLock { $0.writeTurn.noteWritable() }
        flush()
    }

    package func streamShouldFlush() { flush() }

    package func streamDidEnd(_ error: LinkError?) {
        guard state.withLock({ $0.delayEnd(error) }) else { return end(error) }
        if state.withLock({ $0.isReading }) { streamIsReadable() }
    }
}
