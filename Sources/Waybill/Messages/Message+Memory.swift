import WireCore

extension Message {
    /// The number of bytes of memory that the message takes while it waits.
    ///
    /// The value is an upper estimate. It adds the lengths of the fields and the allocator's overhead for each text or
    /// array. Another 384 bytes are for the message, its place in an array and its acknowledgement.
    // Inlined, because a call would copy the message.
    @inline(__always)
    package var memoryByteCount: Int {
        var count = 384 + body.count + topic.utf8.count
        // Counted three times: as text, and in a buffer that is copied while it grows if the peer does not read.
        if let delivery { count += 3 * delivery.acknowledgementByteCount }
        if case .text(let name) = id?.storage { count += Self.surrounding + name.text.utf8.count }
        if let uncommon { count += uncommon.memoryByteCount }
        return count
    }

    /// The overhead of a text or an array: its reference, its header and the allocator's rounding.
    fileprivate static let surrounding = 64
}

extension Message.Uncommon {
    fileprivate var memoryByteCount: Int {
        let surrounding = Message.surrounding
        var count = 0
        if let contentType { count += surrounding + contentType.utf8.count }
        for header in headers.pairs {
            count += 2 * surrounding + header.name.utf8.count + header.value.utf8.count
        }
        return count + values.memoryByteCount
    }
}
