/// What ends the waits of a test in vain.
package enum WaitLimits {
    /// The longest wait without a clock to move.
    ///
    /// On a busy machine a test may have the processor only a few times in two minutes. A simulated world needs less: its
    /// time passes only while nothing else can run.
    @TaskLocal package static var longest = Duration.seconds(120)
    /// Returns a fault after which no wait can succeed, in words; nil without one.
    @TaskLocal package static var fault: @Sendable () -> String? = { nil }
}

/// A test has waited in vain.
package struct WaitedInVain: Error, CustomStringConvertible {
    let fileID: String
    let line: UInt
    let fault: String?

    package var description: String { "\(fileID):\(line): \(fault ?? "not so in time")" }
}

/// Waits until the condition is true.
///
/// An endless wait would hang the whole run: a time limit only cancels a test, and a test may ignore that.
///
/// - Parameters:
///   - move: Moves a clock on between two checks. The step must be small beside all times that the clock limits,
///     since other tasks may need several steps for their work.
///   - limit: The longest wait.
///   - isSo: The condition.
/// - Throws: ``WaitedInVain`` after the limit and a thousand rounds, with the fault that ``WaitLimits`` finds, or when
///     the test is out of time.
package func waitUntil(
    moving move: (() -> Void)? = nil,
    within limit: Duration? = nil,
    fileID: String = #fileID,
    line: UInt = #line,
    _ isSo: () throws -> Bool
) async throws {
    // A clock that moves by small steps takes many rounds.
    let longest = limit ?? (move == nil ? WaitLimits.longest : .seconds(120))
    let end = ContinuousClock.now + longest
    var rounds = 0
    while true {
        for _ in 0..<50 {
            if try isSo() { return }
            await Task.yield()
        }
        // Leaves the processor to the tasks that make the condition true.
        try? await Task.sleep(for: .milliseconds(1))
        rounds += 1
        if try isSo() { return }
        let fault = WaitLimits.fault()
        guard fault == nil, !Task.isCancelled, rounds < 1_000 || ContinuousClock.now < end else {
            throw WaitedInVain(fileID: fileID, line: line, fault: fault)
        }
        move?()
    }
}
