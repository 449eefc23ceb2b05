package import WireCore

extension STOMPClientConnection {
    // MARK: Connecting

    /// Sends CONNECT, once and before all other frames.
    ///
    /// - Parameters:
    ///   - request: The contents of CONNECT.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func connect(
        _ request: STOMPConnect,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard case .idle = state else { throw .notConnected }
        let command = request.usesSTOMPCommand ? STOMPCommand.stomp : .connect
        try write(command, try request.allHeaders(), body: ByteSlice.empty)
        self.request = request
        isUnanswered = true
        state = .connecting(deadline: now.advanced(by: configuration.connectTimeout))
        noteSent(at: now)
    }

    /// Sends DISCONNECT and waits for its receipt; nothing is sent after it, heart-beats included.
    ///
    /// Held frames are sent before it, as receipts arrive. Before CONNECTED no DISCONNECT is needed, so the connection
    /// ends at once.
    ///
    /// - Parameter now: The current time.
    package mutating func disconnect(at now: WireInstant) {
        switch state {
        case .connected:
            let deadline = now.advanced(by: configuration.closeTimeout)
            state = .leaving(deadline: deadline)
            if held.isEmpty { writeDisconnect(before: deadline, at: now) }
        case .idle, .connecting: close(.disconnected)
        case .leaving, .disconnecting, .closed: break
        }
    }

    private mutating func writeDisconnect(before deadline: WireInstant, at now: WireInstant) {
        let number = receipts.takeNumber()
        let headers: STOMPHeaders = [STOMPHeaderName.receipt: String(number)]
        // Digits can always be encoded.
        try? write(.disconnect, headers, body: ByteSlice.empty)
        state = .disconnecting(receipt: number, deadline: deadline)
        noteSent(at: now)
    }

    // MARK: Messages

    /// Sends a message.
    ///
    /// - Parameters:
    ///   - headers: `destination` and further headers, sent unchanged and in order; this side writes content-length and
    ///     receipt. A `transaction` must be open.
    ///   - body: The body, copied once.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func send(
        _ headers: STOMPHeaders,
        body: some WireBytes,
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard case .connected = state else { throw .notConnected }
        guard headers.first(STOMPHeaderName.destination)?.isEmpty == false else {
            throw .destinationMissing
        }
        try check(headers.first(STOMPHeaderName.transaction))
        try headers.checkUnreserved()
        try submit(.send, headers, body: body, call: call, timeout: timeout, at: now)
    }

    // MARK: Subscriptions

    /// Sends SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - id: The id of the subscription on this connection; also sent in 1.0, where it is optional.
    ///   - destination: The destination.
    ///   - ackMode: The ack mode of its messages.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func subscribe(
        id: String,
        destination: String,
        ackMode: STOMPAckMode = .auto,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard case .connected = state, let version else { throw .notConnected }
        guard !id.isEmpty, subscriptions[id] == nil else { throw .subscriptionIDTaken }
        guard !destination.isEmpty else { throw .destinationMissing }
        guard ackMode != .clientIndividual || version > .v1_0 else { throw .notSupported(version) }
        var all: STOMPHeaders = [
            STOMPHeaderName.id: id, STOMPHeaderName.destination: destination,
        ]
        // Omitted for auto, the default (SUBSCRIBE ack Header).
        if ackMode != .auto { all.append(STOMPHeaderName.ack, ackMode.rawValue) }
        try all.appendUnreserved(
            headers,
            STOMPHeaderName.id,
            STOMPHeaderName.destination,
            STOMPHeaderName.ack
        )
        try submit(.subscribe, all, call: call, timeout: timeout, at: now)
        subscriptions.add(.init(id: id, destination: destination, ackMode: ackMode))
    }

    /// Expects messages of a subscription that the server creates by itself, in ack mode auto.
    ///
    /// - Parameters:
    ///   - id: The subscription id in its messages.
    ///   - destination: Its destination.
    /// - Throws: `STOMPSendError`.
    package mutating func expectSubscription(
        id: String,
        destination: String
    ) throws(STOMPSendError) {
        guard case .connected = state else { throw .notConnected }
        guard subscriptions[id] == nil else { throw .subscriptionIDTaken }
        subscriptions.add(.init(id: id, destination: destination, ackMode: .auto))
    }

    /// Sends UNSUBSCRIBE; messages of the subscription that arrive after it are dropped.
    ///
    /// - Parameters:
    ///   - id: The id of the subscription.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func unsubscribe(
        id: String,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard case .connected = state else { throw .notConnected }
        guard subscriptions[id] != nil else { throw .subscriptionUnknown }
        var all: STOMPHeaders = [STOMPHeaderName.id: id]
        try all.appendUnreserved(headers, STOMPHeaderName.id)
        try submit(.unsubscribe, all, call: call, timeout: timeout, at: now)
        subscriptions.remove(id)
    }

    // MARK: Acknowledging

    /// Sends ACK: acknowledges the message, and in client mode all before it.
    ///
    /// - Parameters:
    ///   - token: The token of the message; its subscription must still be open.
    ///   - transaction: The open transaction of the acknowledgement; nil for none.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func acknowledge(
        _ token: STOMPAckToken,
        transaction: String? = nil,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        let all = try ackHeaders(token, transaction, headers)
        try submit(.ack, all, call: call, timeout: timeout, at: now)
    }

    /// Sends NACK: refuses the message, and in client mode all before it; 1.0 has no NACK.
    ///
    /// - Parameters:
    ///   - token: The token of the message; its subscription must still be open.
    ///   - transaction: The open transaction of the refusal; nil for none.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func refuse(
        _ token: STOMPAckToken,
        transaction: String? = nil,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        if case .connected = state, version == .v1_0 { throw .notSupported(.v1_0) }
        let all = try ackHeaders(token, transaction, headers)
        try submit(.nack, all, call: call, timeout: timeout, at: now)
    }

    /// The headers that identify a message in each version (ACK).
    private func ackHeaders(
        _ token: STOMPAckToken,
        _ transaction: String?,
        _ headers: STOMPHeaders
    ) throws(STOMPSendError) -> STOMPHeaders {
        guard case .connected = state, let version else { throw .notConnected }
        guard subscriptions[token.subscriptionID] != nil else { throw .subscriptionUnknown }
        var all = STOMPHeaders()
        switch version {
        case .v1_2: all.append(STOMPHeaderName.id, token.identifier)
        case .v1_1:
            all.append(STOMPHeaderName.messageID, token.identifier)
            all.append(STOMPHeaderName.subscription, token.subscriptionID)
        case .v1_0: all.append(STOMPHeaderName.messageID, token.identifier)
        }
        if let transaction {
            try check(transaction)
            all.append(STOMPHeaderName.transaction, transaction)
        }
        try all.appendUnreserved(
            headers,
            STOMPHeaderName.id,
            STOMPHeaderName.messageID,
            STOMPHeaderName.subscription,
            STOMPHeaderName.transaction
        )
        return all
    }

    // MARK: Giving up

    /// Withdraws a call and its message, if that is still held.
    ///
    /// A frame that was sent takes effect, without a report of its outcome.
    package mutating func cancel(_ call: any STOMPCall) {
        receipts.forget(call)
    }

    // MARK: Writing

    /// Checks that a named transaction is open; otherwise the server would end the connection.
    private func check(_ transaction: String?) throws(STOMPSendError) {
        guard let transaction else { return }
        guard transactions.contains(transaction) else { throw .transactionUnknown }
    }

    /// Writes a frame without a body, with a receipt if a call waits for one.
    mutating func submit(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        call: (any STOMPCall)?,
        timeout: Duration?,
        at now: WireInstant
    ) throws(STOMPSendError) {
        let none = ByteSlice.empty
        try submit(command, headers, body: none, call: call, timeout: timeout, at: now)
    }

    private mutating func submit(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        call: (any STOMPCall)?,
        timeout: Duration?,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard let call else {
            guard mustHold(command, headers) else {
                try write(command, headers, body: body)
                return noteSent(at: now)
            }
            return try hold(command, headers, body: body, receipt: nil)
        }
        let number = receipts.nextNumber
        var headers = headers
        headers.append(STOMPHeaderName.receipt, String(number))
        let isHeld = !held.isEmpty || receipts.inFlightCount >= configuration.maximumInFlight
        if isHeld {
            try hold(command, headers, body: body, receipt: number)
        } else {
            try write(command, headers, body: body)
        }
        let timeout = timeout ?? configuration.receiptTimeout
        let destination = headers.first(STOMPHeaderName.destination)
        receipts.add(call, to: destination, deadline: now.advanced(by: timeout))
        guard !isHeld else { return }
        receipts.noteSent(number)
        noteSent(at: now)
    }

    /// Whether a frame without a receipt must wait for held frames, because it depends on one of them.
    ///
    /// Any other frame overtakes them, since the number of waiting frames without a receipt would have no bound.
    private func mustHold(_ command: STOMPCommand, _ headers: STOMPHeaders) -> Bool {
        guard !held.isEmpty else { return false }
        switch command {
        case .send, .ack, .nack: return headers.first(STOMPHeaderName.transaction) != nil
        default: return true
        }
    }

    private mutating func hold(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        receipt: UInt64?
    ) throws(STOMPSendError) {
        do {
            let (bytes, traces) = try writer.frame(command, headers, body: body)
            held.append(
                .init(
                    bytes: bytes,
                    traces: traces,
                    receipt: receipt,
                    isDroppable: command == .send && receipt != nil
                )
            )
        } catch {
            throw .encoding(error)
        }
    }

    /// Sends held frames as long as the window has room, and a requested DISCONNECT after the last one.
    mutating func sendHeld(at now: WireInstant) {
        guard !held.isEmpty else { return }
        while let frame = held.first {
            if let number = frame.receipt {
                guard receipts.inFlightCount < configuration.maximumInFlight else { break }
                guard !frame.isDroppable || receipts.isWaiting(number) else {
                    held.removeFirst()
                    continue
                }
                receipts.noteSent(number)
            }
            held.removeFirst()
            writer.append(frame.bytes, frame.traces)
            noteSent(at: now)
        }
        if case .leaving(let deadline) = state, held.isEmpty {
            writeDisconnect(before: deadline, at: now)
        }
    }

    private mutating func write(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes
    ) throws(STOMPSendError) {
        do {
            try writer.write(command, headers, body: body)
        } catch {
            throw .encoding(error)
        }
    }
}
