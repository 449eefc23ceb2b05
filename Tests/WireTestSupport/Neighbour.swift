import WireCore

/// Counts the calls that a task on the main actor makes before another task runs there, up to the limit.
///
/// The call must not suspend by itself. Then another task runs only when the call yields on purpose.
@MainActor
package func callsBeforeNeighbour(
    atMost limit: Int,
    _ body: (Int) async throws -> Void
) async rethrows -> Int {
    let hasRun = Locked(false)
    let neighbour = Task { @MainActor in hasRun.withLock { $0 = true } }
    var count = 0
    while count < limit, !hasRun.withLock({ $0 }) {
        try await body(count)
        count += 1
    }
    await neighbour.value
    return count
}
