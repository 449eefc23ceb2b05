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
        guard case .connected = state else { return try handleConnect(frame) }
        let receipt = frame.headers.first(STOMPHeaderName.receipt)
        let transaction = frame.headers.first(STOMPHeaderName.transaction)
        switch frame.command {
        case .send:
            let destination = try frame.required(STOMPHeaderName.destination)
            try checkOpen(transaction)
            let event = STOMPServerEvent.send(
                destination: destination,
                frame,
                transaction: transaction,
                receipt: receipt
            )
            note(event, receipt)
        case .subscribe: try handleSubscribe(frame, receipt)
        case .unsubscribe: try handleUnsubscribe(frame, receipt)
        case .ack: note(.acknowledge(try acknowledgement(frame), receipt: receipt), receipt)
        case .nack: note(.refuse(try acknowledgement(frame), receipt: receipt), receipt)
        case .begin:
            let transaction = try frame.required(STOMPHeaderName.transaction)
            guard transactions.insert(WireName(transaction)).inserted else {
                throw .transactionRepeated
            }
            note(.begin(transaction: transaction, receipt: receipt), receipt)
        case .commit:
            note(.commit(transaction: try endTransaction(frame), receipt: receipt), receipt)
        case .abort:
            note(.abort(transaction: try endTransaction(frame), receipt: receipt), receipt)
        case .disconnect:
            let deadline = now.advanced(by: configuration.closeTimeout)
            state = .leaving(receipt: receipt, deadline: deadline)
            events.append(.disconnect(receipt: receipt))
            leaveIfDone(at: now)
        case .connect, .stomp: throw .connectedTwice
        case .connected, .message, .receipt, .error: throw .commandNotAllowed(frame.command)
        }
    }

    private mutating func note(_ event: STOMPServerEvent, _ receipt: String?) {
        if let receipt { owed[WireName(receipt), default: 0] += 1 }
        events.append(event)
    }

    // MARK: CONNECT

    private mutating func handleConnect(_ frame: STOMPFrame) throws(STOMPViolation) {
        guard frame.command == .connect || frame.command == .stomp else {
            throw .frameBeforeConnected(frame.command)
        }
        let headers = frame.headers.list
        let version = try agreedVersion(headers.first(STOMPHeaderName.acceptVersion))
        if version > .v1_0, headers.first(STOMPHeaderName.host) == nil {
            throw .headerMissing(frame.command, STOMPHeaderName.host)
        }
        if version > .v1_0, let text = headers.first(STOMPHeaderName.heartBeat) {
            guard let heartBeat = STOMPHeartBeat(text: text) else { throw .heartBeatInvalid }
            clientHeartBeat = heartBeat
        }
        decoder.version = version
        writer.version = version
        state = .asked
        events.append(
            .connect(
                STOMPConnectRequest(
                    version: version,
                    host: headers.first(STOMPHeaderName.host),
                    login: headers.first(STOMPHeaderName.login),
                    passcode: headers.first(STOMPHeaderName.passcode),
                    heartBeat: clientHeartBeat,
                    headers: headers
                )
            )
        )
    }

    /// The highest common version; a CONNECT without an offer means 1.0 (Protocol Negotiation).
    private func agreedVersion(_ offer: String?) throws(STOMPViolation) -> STOMPVersion {
        let offered = (offer ?? STOMPVersion.v1_0.text).split(atByte: ",")
            .compactMap { STOMPVersion(text: String($0)) }
        guard let best = offered.filter({ configuration.versions.contains($0) }).max() else {
            throw .versionNotOffered
        }
        return best
    }

    // MARK: Subscriptions

    private mutating func handleSubscribe(
        _ frame: STOMPFrame,
        _ receipt: String?
    ) throws(STOMPViolation) {
        let destination = try frame.required(STOMPHeaderName.destination)
        let id = try subscriptionID(frame)
        let text = frame.headers.first(STOMPHeaderName.ack) ?? STOMPAckMode.auto.rawValue
        guard let ackMode = STOMPAckMode(rawValue: text),
            ackMode != .clientIndividual || version != .v1_0
        else { throw .headerInvalid(.subscribe, STOMPHeaderName.ack) }
        guard subscriptionIDs.insert(WireName(id)).inserted else { throw .subscriptionRepeated }
        let event = STOMPServerEvent.subscribe(
            id: id,
            destination: destination,
            ackMode: ackMode,
            frame.headers.list,
            receipt: receipt
        )
        note(event, receipt)
    }

    private mutating func handleUnsubscribe(
        _ frame: STOMPFrame,
        _ receipt: String?
    ) throws(STOMPViolation) {
        let id = try subscriptionID(frame)
        guard subscriptionIDs.remove(WireName(id)) != nil else { throw .subscriptionUnknown }
        note(.unsubscribe(id: id, receipt: receipt), receipt)
    }

    /// The id of a subscription; in 1.0 the destination can replace it.
    private func subscriptionID(_ frame: STOMPFrame) throws(STOMPViolation) -> String {
        if let id = frame.headers.first(STOMPHeaderName.id) { return id }
        guard version == .v1_0 else { throw .headerMissing(frame.command, STOMPHeaderName.id) }
        return try frame.required(STOMPHeaderName.destination)
    }

    // MARK: ACK, NACK and transactions

    private func acknowledgement(
        _ frame: STOMPFrame
    ) throws(STOMPViolation) -> STOMPAcknowledgement {
        let isByID = version == .v1_2
        let identifier = try frame.required(
            isByID ? STOMPHeaderName.id : STOMPHeaderName.messageID
        )
        let subscriptionID =
            version == .v1_1 ? try frame.required(STOMPHeaderName.subscription) : nil
        let transaction = frame.headers.first(STOMPHeaderName.transaction)
        try checkOpen(transaction)
        return STOMPAcknowledgement(
            identifier: identifier,
            subscriptionID: subscriptionID,
            transaction: transaction
        )
    }

    private func checkOpen(_ transaction: String?) throws(STOMPViolation) {
        guard let transaction else { return }
        guard transactions.contains(transaction) else { throw .transactionUnknown }
    }

    private mutating func endTransaction(_ frame: STOMPFrame) throws(STOMPViolation) -> String {
        let transaction = try frame.required(STOMPHeaderName.transaction)
        guard transactions.remove(WireName(transaction)) != nil else { throw .transactionUnknown }
        return transaction
    }
}

extension STOMPFrame {
    /// The value of a required header.
    func required(_ name: String) throws(STOMPViolation) -> String {
        guard let value = headers.first(name) else { throw .headerMissing(command, name) }
        return value
    }
}
