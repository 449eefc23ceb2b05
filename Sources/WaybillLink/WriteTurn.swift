/// The turns of the threads that write to one stream: one at a time, and none while the stream is full.
///
/// | state | `begin` | `end`, all written | `end`, the stream is full | `noteWritable` |
/// | --- | --- | --- | --- | --- |
/// | free | → writing | – | – | no change |
/// | writing | refused | → free | → full | → drained |
/// | drained | refused | → free | → free | no change |
/// | full | refused | – | – | → free |
@usableFromInline
package enum WriteTurn: Sendable {
    case free
    case writing
    /// The stream has drained before the writing thread noted that it was full.
    case drained
    case full

    @inlinable package var isFree: Bool {
        if case .free = self { true } else { false }
    }

    /// Makes the caller the writer.
    ///
    /// - Returns: Whether it may write.
    package mutating func begin() -> Bool {
        guard isFree else { return false }
        self = .writing
        return true
    }

    /// Ends the caller's turn.
    ///
    /// - Parameter isFull: Whether the stream took less than offered.
    package mutating func end(isFull: Bool) {
        self = isFull && self == .writing ? .full : .free
    }

    /// Notes that a partial write can continue.
    package mutating func noteWritable() {
        switch self {
        case .writing: self = .drained
        case .full: self = .free
        case .free, .drained: break
        }
    }
}
