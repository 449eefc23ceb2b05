package import WireCore

extension STOMPServerConnection {
    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        heartBeats.noteReceived(at: now)
        while !isFinished {
            // Nothing may follow DISCONNECT.
            if case .leaving = state { break }
            let waiting = buffer.count
            do {
                guard let frame = try decoder.next(&buffer) else { return }
                writer.noteReceived(frame, byteCount: waiting - buffer.count)
                takeTraces()
                if case .asked = state {
                    try hold(frame)
                } else {
                    handleOrViolate(frame, at: now)
                }
            } catch {
                violate(error, receiptID: nil)
            }
        }
        buffer.removeAll()
    }

    private mutating func hold(_ frame: STOMPFrame) throws(STOMPViolation) {
        guard held.count < configuration.maximumHeldFrameCount else {
            throw .tooManyFramesHeld(maximum: configuration.maximumHeldFrameCount)
        }
        held.append(frame)
    }

    mutating func handleOrViolate(_ frame: STOMPFrame, at now: WireInstant) {
        do {
            try handle(frame, at: now)
        } catch {
            violate(error, receiptID: frame.headers.first(STOMPHeaderName.receipt))
        }
    }

    /// Reports a violation to the client, then closes (ERROR).
    private mutating func violate(_ violation: STOMPViolation, receiptID: String?) {
        var headers = STOMPHeaders()
        var body: [UInt8] = []
        if violation == .versionNotOffered {
            // The supported versions (Protocol Negotiation).
            let texts = configuration.versions.sorted().map(\.text)
            headers.append(STOMPHeaderName.version, texts.joined(separator: ","))
            headers.append(STOMPHeaderName.contentType, "text/plain")
            let words = texts.joined(separator: " ")
            body = Array("Supported protocol versions are \(words)".utf8)
        }
        writeError(violation.message, receiptID: receiptID, headers, body)
        close(.violation(violation))
    }

    private mutating func handle(
        _ frame: STOMPFrame,
        at now: WireInstant
    ) throws(STOMPViolation) {
        guard case .connected = state else {
            let request = try STOMPConnectRequest(frame, offering: configuration.versions)
            decoder.version = request.version
            writer.version = request.version
            state = .asked(request.heartBeat)
            return events.append(.connect(request))
        }
        let receipt = frame.headers.first(STOMPHeaderName.receipt)
        guard frame.command != .disconnect else {
            let deadline = now.advanced(by: configuration.closeTimeout)
            state = .leaving(receipt: receipt, deadline: deadline)
            events.append(.disconnect(receipt: receipt))
            return leaveIfDone(at: now)
        }
        let event = try scopes.receive(frame, receipt, in: version)
        if let receipt { owed[WireName(receipt), default: 0] += 1 }
        events.append(event)
    }
}
