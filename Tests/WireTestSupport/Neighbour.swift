import WireCore

/// How often a task of the main actor does something before another one runs there, or the limit if none does.
///
/// What is done must not be suspended by itself: then another task runs only if this one gives way on purpose.
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
