/// Counts what tasks get done without being suspended.
///
/// A task keeps its thread until it is suspended, and there are as many threads as processors: whoever sends or
/// consumes without end, and is never made to wait, lets nobody else run on a machine with one.
@usableFromInline
package struct Turn: Sendable {
    /// How many messages make a turn: 256, some 100 microseconds of work.
    @inlinable package static var length: Int { 256 }

    @usableFromInline var count = 0

    @inlinable
    package init() {}

    /// Counts a message.
    @inlinable
    package mutating func advance() {
        count += 1
    }

    /// Lets others run, on the caller's actor if it has one, which `Task.yield()` would leave for a moment.
    package static func giveWay(isolation actor: isolated (any Actor)? = #isolation) async {
        guard actor != nil else { return await Task.yield() }
        // Resumed exactly once, by the one task that has it.
        await Suspension.wait { continuation in
            // Behind all that the actor has to do already.
            Task {
                _ = actor
                continuation.resume()
            }
        }
    }

    /// Begins another turn if this one is over.
    /// - Returns: Whether it was, and others should run before.
    @inlinable
    package mutating func endIfOver() -> Bool {
        guard count >= Self.length else { return false }
        count = 0
        return true
    }
}
