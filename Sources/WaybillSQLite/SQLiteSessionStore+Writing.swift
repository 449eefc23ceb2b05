import Dispatch
import Waybill
import WireCore

/// The queue that writes.
extension SQLiteSessionStore {
    /// Writes what was accepted, then runs `body` with the file.
    ///
    /// What cannot be written stays with its callers or waits for the next attempt: it does not hinder reading.
    func onQueue<Result>(
        _ body: () throws(SQLiteStoreError) -> Result
    ) throws(SQLiteStoreError) -> Result {
        let result = queue.sync { () -> Swift.Result<Result, SQLiteStoreError> in
            _ = writeBatch()
            do throws(SQLiteStoreError) { return .success(try body()) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// As ``SQLiteFile/synchronousLevel()``; for tests.
    package func synchronousLevel() throws(SQLiteStoreError) -> Int64 {
        try onQueue { () throws(SQLiteStoreError) in try file.synchronousLevel() }
    }

    /// Has the queue write what waits: at once if a caller waits for it, else after a delay.
    func plan() {
        enum Plan { case now, later, none }
        let plan = state.withLock { state -> Plan in
            guard !state.backlog.isEmpty || state.backlog.isAwaited else { return .none }
            if state.backlog.isAwaited {
                guard !state.isDue else { return .none }
                state.isDue = true
                return .now
            }
            guard !state.isDue, !state.isPlanned else { return .none }
            state.isPlanned = true
            return .later
        }
        // The work keeps the store until it is written.
        switch plan {
        case .none: break
        case .now: queue.async { self.writeNext() }
        case .later: queue.asyncAfter(deadline: .now() + delay) { self.writeNext() }
        }
    }

    private var delay: DispatchTimeInterval {
        guard case .batched(let interval) = options.synchronization else {
            return Self.removalDelay
        }
        return .nanoseconds(Int(clamping: Int64(max(0, min(interval / .nanoseconds(1), 1e18)))))
    }

    private func writeNext() {
        if writeBatch() == nil {
            plan()
        } else {
            state.withLock { $0.isPlanned = true }
            queue.asyncAfter(deadline: .now() + Self.retryDelay) { self.writeNext() }
        }
    }

    /// Writes one transaction with everything that was accepted; on the queue.
    ///
    /// Ends by itself under any load: what comes meanwhile waits for the next one.
    ///
    /// - Returns: The error, if something has to be tried again.
    func writeBatch() -> SQLiteStoreError? {
        let batch = state.withLock { state in
            (state.isDue, state.isPlanned) = (false, false)
            let batch = state.backlog.takeBatch()
            state.writingCount = batch.count
            return batch
        }
        var calls: [@Sendable () -> Void] = []
        var failure: SQLiteStoreError?
        do throws(SQLiteStoreError) {
            try write(batch.insertions, batch)
            for insertion in batch.insertions {
                guard let completion = insertion.completion else { continue }
                calls.append { completion(.success(insertion.message.id)) }
            }
        } catch {
            failure = error
            // Removals free the room that the messages lack.
            let areChangesWritten = (try? write([], batch)) != nil
            calls += state.withLock { state in
                if !areChangesWritten { state.backlog.putBack(batch.changes) }
                return state.backlog.fail(batch.insertions, error)
            }
            report(.writeFailed(error))
            if error.reason == .gone { replaceFile() }
        }
        calls += state.withLock { state in
            state.writingCount = 0
            return state.backlog.acceptWaiting()
        }
        let result: Result<Void, SQLiteStoreError> = failure.map { .failure($0) } ?? .success(())
        // These resume tasks and threads; they do not run the code of an app.
        for call in calls { call() }
        for flush in batch.flushes { flush(result) }
        let completions = batch.changes.completions
        if !completions.isEmpty { callbacks.async { for done in completions { done() } } }
        return failure
    }

    /// Begins another file, if the options say so; on the queue.
    private func replaceFile() {
        guard options.whenCorrupt == .setAside, !state.withLock({ $0.backlog.isClosed }) else {
            return
        }
        do throws(SQLiteStoreError) {
            let (loss, events) = try file.replace(options)
            if let loss { state.withLock { $0.backlog.beginAnew(loss.session) } }
            for event in events { report(event) }
        } catch {
            report(.writeFailed(error))
        }
    }

    /// Reports what has happened in the background, where the app may call the store.
    private func report(_ event: Event) {
        guard let onEvent = options.onEvent else { return }
        reports.async { onEvent(event) }
    }

    private func write(
        _ insertions: [SQLiteBacklog.Insertion],
        _ batch: SQLiteBacklog.Batch
    ) throws(SQLiteStoreError) {
        try file.write(insertions, batch.changes, last: batch.last, at: clock())
    }
}

extension SQLiteSessionStore: ImmediateSessionStore {
    package var unwrittenCount: Int {
        state.withLock { $0.writingCount + $0.backlog.unwrittenCount }
    }

    package func add(
        _ message: StoredMessage,
        done: @escaping @Sendable (Result<StoredMessage.ID, any Error>) -> Void
    ) -> @Sendable () -> Void {
        let caller = submit(message) { result in
            switch result {
            case .success(let id): done(.success(id))
            case .failure(let error): done(.failure(error))
            case nil: done(.failure(CancellationError()))
            }
        }
        return { self.withdraw(caller) }
    }
}
