package import WireCore

extension STOMPClientConnection {
    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        // A line end that comes with the frames before it is no heart-beat: some servers write one after each frame.
        let endsSilence = heartBeats.noteReceived(at: now)
        hasMoreInput = false
        let limit = events.count + ReceiveTurn.maximumEventCount
        while !isFinished {
            guard events.count < limit else {
                hasMoreInput = true
                return
            }
            let waiting = buffer.count
            let heartBeatByteCount = decoder.heartBeatByteCount
            do {
                let frame = try decoder.next(&buffer)
                if endsSilence, decoder.heartBeatByteCount != heartBeatByteCount {
                    hasProgress = true
                }
                if configuration.isTracing {
                    let beats = decoder.heartBeatByteCount &- heartBeatByteCount
                    noteTrace(of: frame, byteCount: waiting - buffer.count, beats: beats)
                }
                if let frame {
                    try handle(frame, at: now)
                } else {
                    guard let message = decoder.takeSkipped() else { return }
                    try handle(message, at: now)
                }
            } catch {
                let isHTTP = version == nil && error == .commandUnknown && buffer.beginsWithHTTP
                close(isHTTP ? .answeredInHTTP : .violation(error))
            }
        }
        buffer.removeAll()
    }

    private mutating func noteTrace(of frame: STOMPFrame?, byteCount: Int, beats: Int) {
        if beats > 0 { writer.noteHeartBeats(byteCount: beats, isOutbound: false) }
        if let frame { writer.noteReceived(frame, byteCount: byteCount - beats) }
        takeTraces()
    }

    private mutating func handle(
        _ frame: STOMPFrame,
        at now: WireInstant
    ) throws(STOMPViolation) {
        switch state {
        case .connected, .leaving, .disconnecting: break
        case .idle, .connecting, .closed: return try handleFirst(frame, at: now)
        }
        switch frame.command {
        case .message:
            hasProgress = true
            if let (id, token) = try scopes.receive(frame, in: version) {
                noteMessage(of: id, at: now)
                events.append(.message(subscriptionID: id, frame, token))
            } else {
                writer.noteRemark("dropped: no such subscription")
                takeTraces()
                events.append(.unheard(frame))
            }
        case .receipt:
            hasProgress = true
            try handleReceipt(frame)
            sendHeld(at: now)
        case .error: handleError(STOMPErrorFrame(frame))
        case .connected: throw .connectedTwice
        default: throw .commandNotAllowed(frame.command)
        }
    }

    /// Acknowledges a message that was skipped, so that it does not come again.
    private mutating func handle(
        _ message: STOMPSkippedMessage,
        at now: WireInstant
    ) throws(STOMPViolation) {
        switch state {
        case .connected, .leaving, .disconnecting: break
        case .idle, .connecting, .closed: return try handleFirst(message.frame, at: now)
        }
        hasProgress = true
        guard let (id, token) = try scopes.receive(message.frame, in: version) else { return }
        noteMessage(of: id, at: now)
        // An ACK of the mode `client` would be about earlier messages, too, which the app may not have taken.
        let isAlone = scopes.subscriptions[id]?.ackMode == .clientIndividual
        events.append(.skipped(subscriptionID: id, message, isAlone ? nil : token))
        if isAlone, let token { _ = try? send(.acknowledge(token), at: now) }
    }

    /// Takes a MESSAGE as the confirmation of its SUBSCRIBE, if that waits for one.
    private mutating func noteMessage(of id: String, at now: WireInstant) {
        guard window.receipts.inFlightCount > 0 else { return }
        if configuration.learnsReceipts { receiptHabit.noteMessage(at: now) }
        if let call = window.receipts.take(making: id) { events.append(.receipt(call, .none)) }
    }

    // MARK: CONNECTED

    private mutating func handleFirst(
        _ frame: STOMPFrame,
        at now: WireInstant
    ) throws(STOMPViolation) {
        isUnanswered = false
        if frame.command == .error { return close(.refused(STOMPErrorFrame(frame))) }
        let connected = try STOMPConnected(frame, decoder.version, answering: request)
        writer.version = connected.version
        receiptHabit = STOMPReceiptHabit(server: connected.server)
        omitsTextLength =
            switch configuration.contentLength {
            // ActiveMQ makes a message with a content-length one of bytes for its other consumers.
            case .automatic: connected.server?.hasBytePrefix("ActiveMQ/") == true
            case .always: false
            case .unlessText: true
            }
        heartBeats.begin(connected.heartBeat, at: now)
        state = .connected
        events.append(.connected(connected))
    }

    // MARK: RECEIPT and ERROR

    private mutating func handleReceipt(_ frame: STOMPFrame) throws(STOMPViolation) {
        let place = frame.headers.places.receiptID
        guard place.isThere else { throw .headerMissing(.receipt, STOMPHeaderName.receiptID) }
        let number = frame.headers.number(at: place)
        if case .disconnecting(number, _) = state { return close(.disconnected) }
        receiptHabit.noteReceipt()
        let known = window.receipts.number(number, frame.headers.receiptID)
        if let known, window.receipts.isSent(known) { scopes.noteReceipt(known) }
        guard let known, let call = window.receipts.take(known) else {
            // The call timed out or was cancelled, or the receipt is unknown.
            writer.noteRemark("receipt without a pending request")
            return takeTraces()
        }
        events.append(.receipt(call, frame.headers))
    }

    /// Handles ERROR, and closes without waiting: the server must close after it, but some leave that to the client.
    private mutating func handleError(_ error: STOMPErrorFrame) {
        if let text = error.receiptID,
            let number = window.receipts.number(STOMPReceipts.plainNumber(text), text),
            let call = window.receipts.take(number)
        {
            events.append(.failed(call, error))
        } else if error.receiptID == nil {
            for call in window.receipts.take(to: error.isAbout(destination:)) {
                events.append(.failed(call, error))
            }
        }
        close(.error(error))
    }
}

extension ReceiveBuffer {
    /// Whether the peer answers in HTTP.
    fileprivate var beginsWithHTTP: Bool {
        withUnsafeBytes { $0.starts(with: ("HTTP/" as StaticString).bytes) }
    }
}
