package import WireCore

extension STOMPClientConnection {
    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        heartBeats.noteReceived(at: now)
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
                if configuration.isTracing {
                    let beats = decoder.heartBeatByteCount &- heartBeatByteCount
                    noteTrace(of: frame, byteCount: waiting - buffer.count, beats: beats)
                }
                guard let frame else { return }
                try handle(frame, at: now)
            } catch {
                close(.violation(error))
            }
        }
        buffer.removeAll()
    }

    private mutating func noteTrace(of frame: STOMPFrame?, byteCount: Int, beats: Int) {
        if beats > 0 { writer.noteReceived("heart-beat", byteCount: beats) }
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
        case .message: try handleMessage(frame)
        case .receipt:
            try handleReceipt(frame)
            sendHeld(at: now)
        case .error: handleError(STOMPErrorFrame(frame))
        case .connected: throw .connectedTwice
        default: throw .commandNotAllowed(frame.command)
        }
    }

    // MARK: CONNECTED

    private mutating func handleFirst(
        _ frame: STOMPFrame,
        at now: WireInstant
    ) throws(STOMPViolation) {
        isUnanswered = false
        switch frame.command {
        case .connected: break
        case .error: return close(.refused(STOMPErrorFrame(frame)))
        default: throw .frameBeforeConnected(frame.command)
        }
        guard let request else { throw .frameBeforeConnected(frame.command) }
        guard let version = decoder.version, request.versions.contains(version) else {
            throw .versionNotOffered
        }
        var heartBeat = STOMPHeartBeat.none
        if version > .v1_0, let text = frame.headers.first(STOMPHeaderName.heartBeat) {
            guard let told = STOMPHeartBeat(text: text) else { throw .heartBeatInvalid }
            heartBeat = request.heartBeat.agreed(with: told)
        }
        writer.version = version
        heartBeats = STOMPHeartBeatClock(heartBeat, at: now)
        if isReadingHeld { heartBeats.holdReading(true, at: now) }
        state = .connected
        let headers = frame.headers.list
        events.append(
            .connected(
                STOMPConnected(
                    version: version,
                    heartBeat: heartBeat,
                    server: headers.first(STOMPHeaderName.server),
                    session: headers.first(STOMPHeaderName.session),
                    headers: headers
                )
            )
        )
    }

    // MARK: MESSAGE

    private mutating func handleMessage(_ frame: STOMPFrame) throws(STOMPViolation) {
        let places = frame.headers.places
        guard places.destination.isThere else {
            throw .headerMissing(.message, STOMPHeaderName.destination)
        }
        guard places.messageID.isThere else {
            throw .headerMissing(.message, STOMPHeaderName.messageID)
        }
        guard places.subscription.isThere || version == .v1_0 else {
            throw .headerMissing(.message, STOMPHeaderName.subscription)
        }
        guard let subscription = subscriptions.entry(for: frame.headers) else {
            // Sent before the server handled the UNSUBSCRIBE.
            writer.noteReceived("dropped: no such subscription", byteCount: 0)
            return takeTraces()
        }
        let token = try ackToken(frame, subscription)
        events.append(.message(subscriptionID: subscription.id, frame, token))
    }

    /// The token that acknowledges a message; nil if its subscription needs none (ACK).
    private func ackToken(
        _ frame: STOMPFrame,
        _ subscription: STOMPSubscriptions.Entry
    ) throws(STOMPViolation) -> STOMPAckToken? {
        guard subscription.ackMode != .auto else { return nil }
        let isByAck = version == .v1_2
        guard let identifier = isByAck ? frame.headers.ack : frame.headers.messageID else {
            throw .headerMissing(.message, STOMPHeaderName.ack)
        }
        return STOMPAckToken(identifier: identifier, subscriptionID: subscription.id)
    }

    // MARK: RECEIPT and ERROR

    private mutating func handleReceipt(_ frame: STOMPFrame) throws(STOMPViolation) {
        let place = frame.headers.places.receiptID
        guard place.isThere else { throw .headerMissing(.receipt, STOMPHeaderName.receiptID) }
        let number = frame.headers.number(at: place)
        if case .disconnecting(number, _) = state { return close(.disconnected) }
        guard let number, let call = receipts.take(number) else {
            // The call timed out or was cancelled, or the receipt is unknown.
            writer.noteReceived("receipt without a pending request", byteCount: 0)
            return takeTraces()
        }
        events.append(.receipt(call, frame.headers))
    }

    /// Handles ERROR, and closes without waiting: the server must close after it, but some leave that to the client.
    private mutating func handleError(_ error: STOMPErrorFrame) {
        if let text = error.receiptID, let number = UInt64(text), String(number) == text,
            let call = receipts.take(number)
        {
            events.append(.failed(call, error))
        } else if error.receiptID == nil {
            for call in receipts.take(to: error.isAbout(destination:)) {
                events.append(.failed(call, error))
            }
        }
        close(.error(error))
    }
}
