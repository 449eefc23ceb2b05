package import WaybillLink
import WireCore

extension Promise {
    /// Resolves with the result of a function that runs in a task of its own.
    ///
    /// - Returns: The task.
    @discardableResult
    package func resolve(
        by body: @escaping @Sendable () async throws -> Value
    ) -> Task<Void, Never> {
        Task { @concurrent in
            do { resolve(.success(try await body())) } catch { resolve(.failure(error)) }
        }
    }

    /// Waits until the value is there, also in a task that is cancelled.
    package func waitUntilResolved() async {
        // A separate task, because the caller relies on the value even if its own task is cancelled.
        await Task { @concurrent in _ = try? await self.value() }.value
    }

    /// Waits as ``waitUntilResolved()`` does, and forces the value after a timeout.
    ///
    /// - Parameters:
    ///   - timeout: The longest wait without force.
    ///   - timers: The clock of the timeout.
    ///   - force: Called after the timeout; has to make the value come.
    package func waitUntilResolved(
        within timeout: Duration,
        by timers: any TimerSource,
        orElse force: @escaping @Sendable () -> Void
    ) async {
        let timer = timers.scheduleTimer(at: timers.now.advanced(by: timeout), force)
        await waitUntilResolved()
        timers.cancelTimer(timer)
    }

    /// Waits for the result until a timeout.
    ///
    /// - Parameters:
    ///   - timeout: The longest wait.
    ///   - timers: The clock of the timeout.
    ///   - goesOn: Asked after the timeout: whether the wait goes on without a limit.
    /// - Returns: The result; nil after the timeout.
    /// - Throws: The result's error, or `CancellationError`.
    package func value(
        within timeout: Duration,
        by timers: any TimerSource,
        unless goesOn: @escaping @Sendable () -> Bool = { false }
    ) async throws -> Value? {
        let first = Promise<Value?>()
        let timer = timers.scheduleTimer(at: timers.now.advanced(by: timeout)) {
            if !goesOn() { first.resolve(.success(nil)) }
        }
        defer { timers.cancelTimer(timer) }
        let waiting = first.resolve { try await self.value() }
        defer { waiting.cancel() }
        return try await first.value()
    }
}
