import WireCore

/// The data of the event under way: a slice as long as it is one line, gathered when there are more.
struct EventStreamData: Sendable {
    private var first: ByteSlice?
    private var isGathering = false
    private var gathered = ByteWriter(capacity: 0)

    /// Adds the value of a data field.
    mutating func append(_ line: ByteSlice, limit: Int) throws(EventStreamViolation) {
        guard let first else {
            guard line.count <= limit else { throw .eventTooLong(maximum: limit) }
            self.first = line
            return
        }
        let before = isGathering ? gathered.count : first.count
        guard before + 1 + line.count <= limit else { throw .eventTooLong(maximum: limit) }
        if !isGathering {
            isGathering = true
            first.withUnsafeBytes { gathered.append($0) }
        }
        gathered.append(UInt8(ascii: "\n"))
        line.withUnsafeBytes { gathered.append($0) }
    }

    /// Takes the data; nil when there was no data field, so that there is nothing to dispatch.
    mutating func take() -> ByteSlice? {
        guard let first else { return nil }
        self.first = nil
        guard isGathering else { return first }
        isGathering = false
        return gathered.takeSlice()
    }
}
