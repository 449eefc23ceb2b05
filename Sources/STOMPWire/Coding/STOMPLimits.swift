/// The limits of a frame, checked before it is buffered (STOMP 1.2, Size Limits).
package struct STOMPLimits: Hashable, Sendable {
    /// The longest line of a head, in bytes without its end.
    package var maximumLineByteCount = 65_536
    /// The most headers of a frame; together with the longest line this bounds the head.
    package var maximumHeaderCount = 100
    /// The longest body, in bytes.
    package var maximumBodyByteCount = 1 << 20

    package init() {}
}
