/// How much of a frame a decoder takes, checked before it is buffered (STOMP 1.2, Size Limits).
package struct STOMPLimits: Hashable, Sendable {
    /// The longest line of a head, in bytes without its end.
    package var maximumLineByteCount = 65_536
    /// The most headers of a frame; with the longest line they bound the head.
    package var maximumHeaderCount = 100
    /// The longest body, in bytes.
    package var maximumBodyByteCount = 1 << 20

    package init() {}
}
