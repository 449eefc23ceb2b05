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
        try writer.write(command, try request.allHeaders(), body: ByteSlice.empty)
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
            state = .leaving(deadline: now.advanced(by: configuration.closeTimeout))
            disconnectIfDone(at: now)
        case .idle, .connecting: close(.disconnected)
        case .leaving, .disconnecting, .closed: break
        }
    }

    /// Writes a requested DISCONNECT when no frame is held any more.
    private mutating func disconnectIfDone(at now: WireInstant) {
        guard case .leaving(let deadline) = state, !window.isHolding else { return }
        let number = window.receipts.takeNumber()
        let headers: STOMPHeaders = [STOMPHeaderName.receipt: String(number)]
        // Digits can always be encoded.
        try? writer.write(.disconnect, headers, body: ByteSlice.empty)
        state = .disconnecting(receipt: number, deadline: deadline)
        noteSent(at: now)
    }

    // MARK: Requests

    /// Sends a message.
    ///
    /// - Parameters:
    ///   - headers: `destination` and further headers, sent unchanged and in order; this side writes content-length and
    ///     receipt. A `transaction` must be open.
    ///   - body: The body, copied once.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - isRequired: Whether the receipt is requested from a server, too, that has sent none.
    ///   - receiptID: The id of the receipt: no number, and not that of a receipt that has not arrived; nil for one
    ///     that this side makes.
    ///   - hasLength: Whether the frame has a content-length; nil for the choice of the configuration.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Returns: Whether the call waits.
    /// - Throws: `STOMPSendError`; nothing was written then.
    @discardableResult
    package mutating func send(
        _ headers: STOMPHeaders,
        body: some WireBytes,
        call: (any STOMPCall)? = nil,
        isRequired: Bool = false,
        receiptID: String? = nil,
        hasLength: Bool? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) -> Bool {
        guard isConnected else { throw .notConnected }
        guard headers.first(STOMPHeaderName.destination)?.isEmpty == false else {
            throw .destinationMissing
        }
        try scopes.checkOpen(headers.first(STOMPHeaderName.transaction))
        try headers.checkUnreserved()
        let wish = call.map { ($0, isRequired) }
        return try submit(
            .send,
            headers,
            body: body,
            wish,
            as: receiptID,
            hasLength: hasLength,
            timeout: timeout,
            at: now
        )
    }

    /// Sends a request without a body.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - isRequired: Whether the receipt is requested from a server, too, that has sent none.
    ///   - receiptID: The id of the receipt: no number, and not that of a receipt that has not arrived; nil for one
    ///     that this side makes.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Returns: Whether the call waits.
    /// - Throws: `STOMPSendError`; nothing was written then.
    @discardableResult
    package mutating func send(
        _ request: STOMPRequest,
        call: (any STOMPCall)? = nil,
        isRequired: Bool = false,
        receiptID: String? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) -> Bool {
        guard isConnected, let version else { throw .notConnected }
        let (command, headers) = try scopes.frame(of: request, in: version)
        let wish = call.map { ($0, isRequired) }
        let number = window.receipts.nextNumber
        let waits = try submit(
            command,
            headers,
            body: ByteSlice.empty,
            wish,
            as: receiptID,
            timeout: timeout,
            at: now
        )
        scopes.note(request, receipt: waits ? number : nil)
        return waits
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
        guard isConnected else { throw .notConnected }
        try scopes.expect(id: id, destination: destination)
    }

    /// Why a request cannot have a receipt with a chosen id; nil if it can.
    package func receiptFault(of id: String) -> STOMPSendError? { window.receipts.fault(of: id) }

    /// Withdraws a call and its message, if that is still held.
    ///
    /// A frame that was sent takes effect, without a report of its outcome.
    package mutating func cancel(_ call: any STOMPCall) {
        window.receipts.forget(call)
    }

    // MARK: Writing

    private mutating func submit(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        _ wish: (call: any STOMPCall, isRequired: Bool)?,
        as receiptID: String?,
        hasLength: Bool? = nil,
        timeout: Duration?,
        at now: WireInstant
    ) throws(STOMPSendError) -> Bool {
        var waiting: (call: any STOMPCall, isRequired: Bool, deadline: WireInstant)?
        if let wish, wish.isRequired || !receiptHabit.isSilent {
            let deadline = now.advanced(by: timeout ?? configuration.receiptTimeout)
            waiting = (wish.call, wish.isRequired, deadline)
        }
        let hasLength = hasLength ?? (!omitsTextLength || !STOMPText.isText(body, headers))
        if try window.submit(
            command,
            headers,
            body: body,
            waiting,
            as: receiptID,
            hasLength: hasLength,
            to: &writer
        ) {
            noteSent(at: now)
        }
        return waiting != nil
    }

    /// Ends the calls that wait for receipts which the server does not send, and sends held frames.
    mutating func endOptionalReceipts() {
        for call in window.receipts.takeOptional() { events.append(.receipt(call, .none)) }
    }

    /// Sends held frames as long as the window has room, and a requested DISCONNECT after the last one.
    mutating func sendHeld(at now: WireInstant) {
        guard window.isHolding else { return }
        while window.sendHeld(to: &writer) {
            noteSent(at: now)
            guard receiptHabit.isSilent else { break }
            endOptionalReceipts()
        }
        disconnectIfDone(at: now)
    }
}
