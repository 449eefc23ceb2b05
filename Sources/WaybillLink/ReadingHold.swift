/// The decision whether to read from a peer, which several threads make and one at a time tells the stream.
///
/// It is kept behind the lock under which the decision is made. If threads told the stream independently, an old
/// decision could arrive last and stay, and reading would never resume.
package struct ReadingHold: Sendable {
    /// The last decision.
    package var isHeld = false
    private var isHeldBelow = false
    private var isTelling = false

    package init() {}

    /// Makes the caller tell the stream.
    ///
    /// - Returns: The decision to tell; nil if the stream knows it, or if another thread is telling it and will check
    ///   again.
    package mutating func beginTelling() -> Bool? {
        guard !isTelling, isHeld != isHeldBelow else { return nil }
        isTelling = true
        isHeldBelow = isHeld
        return isHeld
    }

    /// Notes that the stream was told; call ``beginTelling()`` again after it.
    package mutating func endTelling() {
        isTelling = false
    }
}
