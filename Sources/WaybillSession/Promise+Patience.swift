package import WaybillLink
import WireCore

extension Promise {
    /// Waits until the value is there, also in a task that is cancelled.
    package func settled() async {
        // A task of its own: what follows relies on the value being there.
        await Task { @concurrent in _ = try? await self.value() }.value
    }

    /// Waits as ``settled()`` does, and loses patience after a time.
    ///
    /// - Parameters:
    ///   - timeout: The time.
    ///   - timers: What it is measured by.
    ///   - force: Called after it; has to see to it that the value comes.
    package func settled(
        within timeout: Duration,
        by timers: any TimerSource,
        orElse force: @escaping @Sendable () -> Void
    ) async {
        let timer = timers.scheduleTimer(at: timers.now.advanced(by: timeout), force)
        await settled()
        timers.cancelTimer(timer)
    }

    /// Waits for the result for a time.
    ///
    /// - Parameters:
    ///   - timeout: The time.
    ///   - timers: What it is measured by.
    /// - Returns: The result; nil when time is up.
    /// - Throws: The result's error, or `CancellationError`.
    package func value(within timeout: Duration, by timers: any TimerSource) async throws -> Value?
    {
        let first = Promise<Value?>()
        let timer = timers.scheduleTimer(at: timers.now.advanced(by: timeout)) {
            first.resolve(.success(nil))
        }
        defer { timers.cancelTimer(timer) }
        let waiting = Task { @concurrent in
            do {
                first.resolve(.success(try await self.value()))
            } catch {
                first.resolve(.failure(error))
            }
        }
        defer { waiting.cancel() }
        return try await first.value()
    }
}
