import WireCore

extension StaticString {
    /// The bytes of the text, which are valid as long as the process.
    var bytes: UnsafeRawBufferPointer {
        // Every literal of this target is longer than one character, so it is stored by pointer.
        guard hasPointerRepresentation else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }

    /// Whether bytes equal those of the text.
    func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
        UTF8Validation.areEqual(bytes, other)
    }
}
