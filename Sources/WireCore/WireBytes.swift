/// Something that can lend its bytes to an encoder.
///
/// Payloads come from users in several shapes (text, data, arrays). A core that encodes takes any of
/// them by this protocol and copies the bytes once, straight into its outbound buffer.
@usableFromInline
package protocol WireBytes: Sendable {
    /// The number of bytes that ``withWireBytes(_:)`` lends.
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
