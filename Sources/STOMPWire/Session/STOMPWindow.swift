import WireCore

/// The requests whose RECEIPT has not arrived, at most as many as may be in flight, and the frames that wait for room.
///
/// | frame | with room and nothing held | otherwise |
/// | --- | --- | --- |
/// | with a receipt | written | held |
/// | SEND, ACK, NACK without transaction and receipt | written | written |
/// | any other without a receipt | written | held if a frame is held |
struct STOMPWindow: Sendable {
    /// The number of requests that may wait for their receipts.
    private let maximum: Int
    var receipts = STOMPReceipts()
    private var held = STOMPHeldFrames()

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// Whether frames wait for room.
    var isHolding: Bool { !held.isEmpty }

    /// Sends a frame, or holds it.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - headers: The headers without `receipt`.
    ///   - body: The body.
    ///   - waiting: The call that waits for a receipt, whether it needs one, and its time limit; nil requests no receipt.
    ///   - id: The id of the receipt; nil for a number.
    ///   - hasLength: Whether a body has a content-length.
    ///   - writer: The writer of the frames.
    /// - Returns: Whether the frame was written.
    /// - Throws: `STOMPSendError`; nothing was written then.
    mutating func submit(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        _ waiting: (call: any STOMPCall, isRequired: Bool, deadline: WireInstant)?,
        as id: String? = nil,
        hasLength: Bool,
        to writer: inout STOMPFrameWriter
    ) throws(STOMPSendError) -> Bool {
        guard let waiting else {
            guard mustHold(command, headers) else {
                try writer.write(command, headers, body: body, hasLength: hasLength)
                return true
            }
            let frame = try writer.frame(command, headers, body, hasLength, receipt: nil)
            held.append(frame)
            return false
        }
        if let id, let fault = receipts.fault(of: id) { throw fault }
        let number = receipts.nextNumber
        var headers = headers
        headers.append(STOMPHeaderName.receipt, id ?? String(number))
        let isHeld = isHolding || receipts.inFlightCount >= maximum
        if isHeld {
            held.append(try writer.frame(command, headers, body, hasLength, receipt: number))
        } else {
            try writer.write(command, headers, body: body, hasLength: hasLength)
        }
        receipts.add(
            waiting.call,
            to: headers.first(STOMPHeaderName.destination),
            making: command == .subscribe ? headers.first(STOMPHeaderName.id) : nil,
            isRequired: waiting.isRequired,
            as: id,
            deadline: waiting.deadline
        )
        if !isHeld { receipts.noteSent(number) }
        return !isHeld
    }

    /// Whether a frame without a receipt must wait for held frames, because it depends on one of them.
    ///
    /// Any other frame overtakes them, since the number of waiting frames without a receipt would have no bound.
    private func mustHold(_ command: STOMPCommand, _ headers: STOMPHeaders) -> Bool {
        guard isHolding else { return false }
        switch command {
        case .send, .ack, .nack: return headers.first(STOMPHeaderName.transaction) != nil
        default: return true
        }
    }

    /// Sends held frames as long as there is room.
    ///
    /// - Returns: Whether a frame was written.
    mutating func sendHeld(to writer: inout STOMPFrameWriter) -> Bool {
        var hasWritten = false
        while let frame = held.first {
            if let number = frame.receipt {
                guard receipts.inFlightCount < maximum else { break }
                guard !frame.isDroppable || receipts.isWaiting(number) else {
                    held.removeFirst()
                    receipts.releaseID(number)
                    continue
                }
                receipts.noteSent(number)
            }
            held.removeFirst()
            writer.append(frame)
            hasWritten = true
        }
        return hasWritten
    }
}
