/// A test has waited in vain.
package struct WaitedInVain: Error, CustomStringConvertible {
    let fileID: String
    let line: UInt

    package var description: String { "\(fileID):\(line): not so in time" }
}

/// Waits until the condition is true.
///
/// An endless wait would hang the whole run: a time limit only cancels a test, and a test may ignore that.
///
/// - Parameters:
///   - move: Moves a clock on between two checks. The step must be small beside all times that the clock limits,
///     since other tasks may need several steps for their work.
///   - isSo: The condition.
/// - Throws: ``WaitedInVain`` after two minutes and a thousand rounds, or when the test is out of time. On a busy
///   machine a test may have the processor only a few times in two minutes.
package func waitUntil(
    moving move: () -> Void = {},
    fileID: String = #fileID,
    line: UInt = #line,
    _ isSo: () throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(120)
    var rounds = 0
    while true {
        for _ in 0..<50 {
            if try isSo() { return }
            await Task.yield()
        }
        // Leaves the processor to the tasks that make the condition true.
        try? await Task.sleep(for: .milliseconds(1))
        rounds += 1
        guard !Task.isCancelled, rounds < 1_000 || ContinuousClock.now < end else {
            throw WaitedInVain(fileID: fileID, line: line)
        }
        if try !isSo() { move() }
    }
}
