/// A test has waited in vain.
package struct WaitedInVain: Error, CustomStringConvertible {
    let fileID: String
    let line: UInt

    package var description: String { "\(fileID):\(line): not so in time" }
}

/// Waits until something is so.
///
/// Whoever waited for ever would hang the whole run: a time limit cancels a test, and ends it only if the test heeds that.
///
/// - Parameters:
///   - move: Moves a clock on, between looks, by a step that is small beside all that is limited by that clock: what
///     others do meanwhile may take a few of them.
///   - isSo: Whether it is so.
/// - Throws: ``WaitedInVain`` after two minutes, or when the test is out of time.
package func waitUntil(
    moving move: () -> Void = {},
    fileID: String = #fileID,
    line: UInt = #line,
    _ isSo: () throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(120)
    while true {
        for _ in 0..<50 {
            if try isSo() { return }
            await Task.yield()
        }
        // Leaves the processor to those that are to make it so.
        try? await Task.sleep(for: .milliseconds(1))
        guard !Task.isCancelled, ContinuousClock.now < end else {
            throw WaitedInVain(fileID: fileID, line: line)
        }
        if try !isSo() { move() }
    }
}

/// Gives other tasks, and other threads, time to do what they would do.
package func letOthersRun() async {
    for _ in 0..<5 {
        for _ in 0..<20 { await Task.yield() }
        try? await Task.sleep(for: .milliseconds(1))
    }
}
