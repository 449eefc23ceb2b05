import WireCore

/// The data of the current event.
///
/// A single line stays in the receive buffer; several lines are gathered.
struct EventStreamData: Sendable {
    private enum State: Sendable {
        /// No data field yet, so there is no event to dispatch.
        case none
        /// One line at this place of the buffer; valid until bytes are removed from its front.
        case placed(start: Int, count: Int)
        /// One line as a slice of the buffer.
        case kept(ByteSlice)
        /// Several lines.
        case gathered
    }

    private var state = State.none
    private var gathered = ByteWriter(capacity: 0)

    /// Adds the value of a data field.
    ///
    /// - Parameters:
    ///   - line: The value.
    ///   - start: The offset of the value in `bytes`.
    ///   - bytes: All bytes in the buffer.
    ///   - limit: The limit of the data in bytes.
    /// - Returns: Whether the data is within the limit. Otherwise it is as before.
    mutating func append(
        _ line: UnsafeRawBufferPointer,
        at start: Int,
        in bytes: UnsafeRawBufferPointer,
        limit: Int
    ) -> Bool {
        if case .none = state {
            guard line.count <= limit else { return false }
            state = .placed(start: start, count: line.count)
            return true
        }
        guard count + 1 + line.count <= limit else { return false }
        switch state {
        case .placed(let start, let count):
            gathered.append(UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
        case .kept(let slice): slice.withUnsafeBytes { gathered.append($0) }
        case .none, .gathered: break
        }
        state = .gathered
        gathered.append(UInt8(ascii: "\n"))
        gathered.append(line)
        return true
    }

    /// The number of bytes.
    var count: Int {
        switch state {
        case .none: 0
        case .placed(_, let count): count
        case .kept(let slice): slice.count
        case .gathered: gathered.count
        }
    }

    /// Keeps a line that lies in the buffer, before bytes are removed from the buffer's front.
    mutating func keep(_ buffer: ReceiveBuffer) {
        guard case .placed(let start, let count) = state else { return }
        state = .kept(buffer.slice(at: start, count: count))
    }

    /// Takes the data; nil if there was no data field, so that no event is dispatched.
    mutating func take(_ buffer: ReceiveBuffer) -> ByteSlice? {
        switch state {
        case .none: return nil
        case .placed(let start, let count):
            state = .none
            return buffer.slice(at: start, count: count)
        case .kept(let slice):
            state = .none
            return slice
        case .gathered:
            state = .none
            return gathered.takeSlice()
        }
    }
}
