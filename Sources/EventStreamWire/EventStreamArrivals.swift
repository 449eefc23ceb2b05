package import WireCore

/// Events that arrived one after the other, whose data shares the memory that it was read into.
package struct EventStreamArrivals: Sendable {
    private struct Record: Sendable {
        let type: String
        let lastEventID: String
        /// The place of the data in the memory.
        let place: Range<Int>
    }

    private var memory = ByteSlice.empty
    private var records: [Record] = []

    init() {}

    package var count: Int { records.count }

    package var isEmpty: Bool { records.isEmpty }

    /// Adds an event whose data lies in the memory of the others.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - buffer: The buffer that it was read from.
    /// - Returns: False if the data lies in other memory, so that the event begins further arrivals.
    mutating func append(_ event: EventStreamEvent, readFrom buffer: ReceiveBuffer) -> Bool {
        if records.isEmpty {
            memory = buffer.filled.contains(event.data) ? buffer.filled : event.data
        }
        if !memory.contains(event.data) {
            // The buffer has more bytes in the same memory since.
            guard buffer.filled.contains(memory), buffer.filled.contains(event.data),
                memory.offset == 0
            else { return false }
            memory = buffer.filled
        }
        let start = event.data.count > 0 ? event.data.offset - memory.offset : 0
        records.append(
            Record(
                type: event.type,
                lastEventID: event.lastEventID,
                place: start..<start + event.data.count
            )
        )
        return true
    }

    package func type(at index: Int) -> String { records[index].type }

    package func lastEventID(at index: Int) -> String { records[index].lastEventID }

    /// The data of an event, not yet decoded.
    package func data(at index: Int) -> ByteSlice {
        memory.slice(at: records[index].place.lowerBound, count: records[index].place.count)
    }

    /// The data of an event with U+FFFD where it is not UTF-8 (HTML Standard, 9.2.5).
    package func repairedText(at index: Int) -> String {
        data(at: index).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// A copy of the data of an event.
    ///
    /// - Returns: The copy; nil if the data is not well-formed UTF-8.
    package func text(at index: Int, copiedBy copier: inout SliceCopier) -> ByteSlice? {
        memory.withUnsafeBytes { bytes in
            let data = UnsafeRawBufferPointer(rebasing: bytes[records[index].place])
            return UTF8Validation.scan(data).isWellFormed ? copier.copy(data) : nil
        }
    }
}
