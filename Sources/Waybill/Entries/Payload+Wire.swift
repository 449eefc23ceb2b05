public import WireCore

extension Payload: WireBytes {
    @usableFromInline package var wireByteCount: Int { count }

    @usableFromInline
    package func withWireBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeBytes(body)
    }

    /// The bytes of a slice, copied once out of the receive buffer.
    package init(_ slice: ByteSlice) {
        self.init(slice.bytes)
    }
}
