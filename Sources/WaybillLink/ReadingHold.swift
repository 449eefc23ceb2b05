/// Whether a peer is to be held back, decided by several threads and told to the stream by one at a time.
///
/// Kept behind the lock under which it is decided. Told side by side, what was decided first could come last,
/// and stay: a peer that is held back with nobody left to let it go on.
package struct ReadingHold: Sendable {
    /// What was decided last.
    package var isHeld = false
    private var isHeldBelow = false
    private var isTelling = false

    package init() {}

    /// Makes the caller the one to tell the stream.
    /// - Returns: What to tell; nil when the stream knows, or somebody else is telling it and will look again.
    package mutating func beginTelling() -> Bool? {
        guard !isTelling, isHeld != isHeldBelow else { return nil }
        isTelling = true
        isHeldBelow = isHeld
        return isHeld
    }

    /// Notes that the stream has been told; to be followed by ``beginTelling()``.
    package mutating func endTelling() {
        isTelling = false
    }
}
