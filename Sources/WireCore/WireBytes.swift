/// A source of bytes for an encoder.
///
/// Users give payloads as text, data or arrays. A core accepts all of them by this protocol, and copies the bytes once,
/// directly into its outbound buffer.
@usableFromInline
package protocol WireBytes: Sendable {
    /// The number of bytes from ``withWireBytes(_:)``.
    var wireByteCount: Int { get }

    /// Calls `body` once with the bytes, which must not be used after it returns.
    func withWireBytes(_ body: (UnsafeRawBufferPointer) -> Void)
}

extension ByteSlice: WireBytes {
    @inlinable package var wireByteCount: Int { count }

    @inlinable
    package func withWireBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeBytes(body)
    }
}

extension [UInt8]: WireBytes {
    @inlinable package var wireByteCount: Int { count }

    @inlinable
    package func withWireBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeBytes(body)
    }
}
