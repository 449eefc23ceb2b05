import WireCore

/// Frames that wait for a place among the requests whose receipts have not come, first come, first served.
struct STOMPHeldFrames: Sendable {
    /// A frame as it will leave.
    struct Frame: Sendable {
        let bytes: ByteSlice
        let traces: [STOMPTrace]
        /// The receipt that it asks for; nil for none.
        let receipt: UInt64?
        /// Whether it is not sent when its call waits no longer: a message, on which no other frame builds.
        let isDroppable: Bool
    }

    private var frames: [Frame?] = []
    private var head = 0

    var isEmpty: Bool { head == frames.count }

    /// The frame that leaves next.
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
