/// Counts the work of a task since it was last suspended.
///
/// A task keeps its thread until it is suspended, and there are as many threads as processors. On a machine with one
/// processor, a task that sends or consumes without ever waiting would keep all other tasks from running.
@usableFromInline
package struct Turn: Sendable {
    /// The number of messages in a turn: 256, about 100 microseconds of work.
    @inlinable package static var length: Int { 256 }

    @usableFromInline var count = 0

    @inlinable
    package init() {}

    /// Counts a message.
    @inlinable
    package mutating func advance() {
        count += 1
    }

    /// Yields to other tasks; a caller on an actor stays on it, which `Task.yield()` would not ensure.
    package static func giveWay(isolation actor: isolated (any Actor)? = #isolation) async {
        guard actor != nil else { return await Task.yield() }
        // Resumed exactly once, by the one task that holds it.
        await Suspension.suspend { continuation in
            // Runs after the jobs that already wait for the actor.
            Task {
                _ = actor
                continuation.resume()
            }
        }
    }

    @inlinable package var isOver: Bool { count >= Self.length }

    /// Starts another turn if this one is over.
    ///
    /// - Returns: Whether it was over, so that the caller should yield.
    @inlinable
    package mutating func endIfOver() -> Bool {
        guard isOver else { return false }
        count = 0
        return true
    }
}
