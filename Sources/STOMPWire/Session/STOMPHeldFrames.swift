import WireCore

/// Frames that wait for room among the requests without a receipt, in order.
struct STOMPHeldFrames: Sendable {
    /// An encoded frame.
    struct Frame: Sendable {
        let bytes: ByteSlice
        let traces: [STOMPTrace]
        /// The requested receipt; nil for none.
        let receipt: UInt64?
        /// Whether it is dropped when its call is withdrawn: a message, on which no other frame depends.
        let isDroppable: Bool
    }

    private var frames: [Frame?] = []
    private var head = 0

    var isEmpty: Bool { head == frames.count }

    var first: Frame? { isEmpty ? nil : frames[head] }

    mutating func append(_ frame: Frame) {
        frames.append(frame)
    }

    mutating func removeFirst() {
        guard !isEmpty else { return }
        frames[head] = nil
        head += 1
        if head == frames.count {
            self = STOMPHeldFrames()
        } else if head >= 1_024, head * 2 > frames.count {
            frames.removeFirst(head)
            head = 0
        }
    }
}
