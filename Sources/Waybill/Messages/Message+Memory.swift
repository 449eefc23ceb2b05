import WireCore

extension Message {
    /// How many bytes of memory the message takes while it waits.
    ///
    /// An upper estimate: the lengths of its fields, 384 bytes for the message, its place in an array and its
    /// acknowledgement, and for each text or array the overhead of the allocator.
    package var memoryByteCount: Int {
        var count = 384 + body.count + topic.utf8.count
        if let contentType { count += Self.surrounding + contentType.utf8.count }
        for header in headers.pairs {
            count += 2 * Self.surrounding + header.name.utf8.count + header.value.utf8.count
        }
        if let details {
            count += 4 * Self.surrounding
            count += details.responseTopic?.utf8.count ?? 0
            count += details.correlationData?.count ?? 0
            count += details.eventType?.utf8.count ?? 0
        }
        // Three times: as text, and in a buffer that is copied while it grows, for a peer that does not read.
        if let delivery { count += 3 * delivery.acknowledgementByteCount }
        if case .text(let name) = id?.storage { count += Self.surrounding + name.text.utf8.count }
        return count
    }

    /// What lies around a text or an array: its reference, its header and the rounding of the allocator.
    private static let surrounding = 64
}
