package import WireCore

extension STOMPClientConnection {
    /// Sends BEGIN.
    ///
    /// - Parameters:
    ///   - transaction: The name of the transaction; no open transaction may have that name.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func begin(
        transaction: String,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard case .connected = state else { throw .notConnected }
        guard !transaction.isEmpty, !transactions.contains(transaction) else {
            throw .transactionOpen
        }
        try submit(.begin, transaction, headers, call: call, timeout: timeout, at: now)
        transactions.insert(WireName(transaction))
    }

    /// Sends COMMIT: the sends and acknowledgements of the transaction take effect.
    ///
    /// - Parameters:
    ///   - transaction: An open transaction.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func commit(
        transaction: String,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        try end(.commit, transaction, headers, call: call, timeout: timeout, at: now)
    }

    /// Sends ABORT: the sends and acknowledgements of the transaction are discarded.
    ///
    /// - Parameters:
    ///   - transaction: An open transaction.
    ///   - headers: Further headers, as the server defines them.
    ///   - call: The call that waits for ``STOMPClientEvent/receipt(_:_:)``; nil requests no receipt.
    ///   - timeout: The time limit of the call; nil for that of the configuration.
    ///   - now: The current time.
    /// - Throws: `STOMPSendError`; nothing was written then.
    package mutating func abort(
        transaction: String,
        headers: STOMPHeaders = STOMPHeaders(),
        call: (any STOMPCall)? = nil,
        timeout: Duration? = nil,
        at now: WireInstant
    ) throws(STOMPSendError) {
        try end(.abort, transaction, headers, call: call, timeout: timeout, at: now)
    }

    private mutating func end(
        _ command: STOMPCommand,
        _ transaction: String,
        _ headers: STOMPHeaders,
        call: (any STOMPCall)?,
        timeout: Duration?,
        at now: WireInstant
    ) throws(STOMPSendError) {
        guard case .connected = state else { throw .notConnected }
        guard transactions.contains(transaction) else { throw .transactionUnknown }
        try submit(command, transaction, headers, call: call, timeout: timeout, at: now)
        transactions.remove(WireName(transaction))
    }

    private mutating func submit(
        _ command: STOMPCommand,
        _ transaction: String,
        _ headers: STOMPHeaders,
        call: (any STOMPCall)?,
        timeout: Duration?,
        at now: WireInstant
    ) throws(STOMPSendError) {
        var all: STOMPHeaders = [STOMPHeaderName.transaction: transaction]
        try all.appendUnreserved(headers, STOMPHeaderName.transaction)
        try submit(command, all, call: call, timeout: timeout, at: now)
    }
}
