package import WireCore

/// The subscriptions and transactions that a client has opened on a connection.
///
/// A request is checked against them, because the server would end the connection for a wrong one.
///
/// | request | it must name | after it |
/// | --- | --- | --- |
/// | SUBSCRIBE | an unused id | the subscription is open |
/// | UNSUBSCRIBE | an open subscription | it is not; a chosen id stays used until the RECEIPT |
/// | ACK, NACK | an open subscription, an open transaction or none | |
/// | BEGIN | an unused name | the transaction is open |
/// | COMMIT, ABORT | an open transaction | it is not |
package struct STOMPClientScopes: Sendable {
    package private(set) var subscriptions = STOMPSubscriptions()
    package private(set) var transactions: Set<WireName> = []
    /// The chosen ids of ended subscriptions, of which messages may still come, with the receipts of UNSUBSCRIBE, if
    /// there are any; the oldest first.
    private var ending: [(id: WireName, receipt: UInt64?)] = []

    /// The number of ids that stay used without a RECEIPT; then the oldest one is free.
    package static let endingLimit = 1_000

    package init() {}

    // MARK: Requests

    /// Checks a request.
    ///
    /// - Returns: Its command and headers.
    /// - Throws: `STOMPSendError`.
    package func frame(
        of request: STOMPRequest,
        in version: STOMPVersion
    ) throws(STOMPSendError) -> (STOMPCommand, STOMPHeaders) {
        switch request {
        case .subscribe(let id, let destination, let ackMode, let headers, _):
            try checkUnused(id)
            guard !destination.isEmpty else { throw .destinationMissing }
            guard ackMode != .clientIndividual || version > .v1_0 else {
                throw .notSupported(version)
            }
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
            return (.subscribe, all)
        case .unsubscribe(let id, let headers):
            guard subscriptions[id] != nil else { throw .subscriptionUnknown }
            var all: STOMPHeaders = [STOMPHeaderName.id: id]
            try all.appendUnreserved(headers, STOMPHeaderName.id)
            return (.unsubscribe, all)
        case .acknowledge(let token, let transaction, let headers):
            return (.ack, try ackHeaders(token, transaction, headers, version))
        case .refuse(let token, let transaction, let headers):
            guard version > .v1_0 else { throw .notSupported(version) }
            return (.nack, try ackHeaders(token, transaction, headers, version))
        case .begin(let transaction, let headers):
            guard !transaction.isEmpty, !transactions.contains(transaction) else {
                throw .transactionOpen
            }
            return (.begin, try transactionHeaders(transaction, headers))
        case .commit(let transaction, let headers):
            try checkOpen(transaction)
            return (.commit, try transactionHeaders(transaction, headers))
        case .abort(let transaction, let headers):
            try checkOpen(transaction)
            return (.abort, try transactionHeaders(transaction, headers))
        }
    }

    private func checkUnused(_ id: String) throws(STOMPSendError) {
        guard !id.isEmpty, subscriptions[id] == nil,
            !ending.contains(where: { $0.id == WireName(id) })
        else { throw .subscriptionIDTaken }
    }

    /// Checks that a named transaction is open.
    package func checkOpen(_ transaction: String?) throws(STOMPSendError) {
        guard let transaction else { return }
        guard transactions.contains(transaction) else { throw .transactionUnknown }
    }

    private func transactionHeaders(
        _ transaction: String,
        _ headers: STOMPHeaders
    ) throws(STOMPSendError) -> STOMPHeaders {
        var all: STOMPHeaders = [STOMPHeaderName.transaction: transaction]
        try all.appendUnreserved(headers, STOMPHeaderName.transaction)
        return all
    }

    /// The headers that identify a message in each version (ACK).
    private func ackHeaders(
        _ token: STOMPAckToken,
        _ transaction: String?,
        _ headers: STOMPHeaders,
        _ version: STOMPVersion
    ) throws(STOMPSendError) -> STOMPHeaders {
        guard subscriptions[token.subscriptionID]?.generation == token.generation else {
            throw .subscriptionUnknown
        }
        var all = STOMPHeaders()
        switch version {
        case .v1_2: all.append(STOMPHeaderName.id, token.identifier)
        case .v1_1:
            all.append(STOMPHeaderName.messageID, token.identifier)
            all.append(STOMPHeaderName.subscription, token.subscriptionID)
        case .v1_0: all.append(STOMPHeaderName.messageID, token.identifier)
        }
        if let transaction {
            try checkOpen(transaction)
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

    /// Notes that a request was sent or held, with the receipt that it asks for.
    package mutating func note(_ request: STOMPRequest, receipt: UInt64? = nil) {
        switch request {
        case .subscribe(let id, let destination, let ackMode, _, let isChosen):
            subscriptions.add(
                .init(id: id, destination: destination, ackMode: ackMode, isChosen: isChosen)
            )
        case .unsubscribe(let id, _):
            if subscriptions[id]?.isChosen == true {
                if ending.count == Self.endingLimit { ending.removeFirst() }
                ending.append((WireName(id), receipt))
            }
            subscriptions.remove(id)
        case .acknowledge, .refuse: break
        case .begin(let transaction, _): transactions.insert(WireName(transaction))
        case .commit(let transaction, _), .abort(let transaction, _):
            transactions.remove(WireName(transaction))
        }
    }

    /// Notes a RECEIPT: no message of a subscription comes after that of its UNSUBSCRIBE.
    package mutating func noteReceipt(_ number: UInt64) {
        if !ending.isEmpty { ending.removeAll { $0.receipt == number } }
    }

    // MARK: Messages

    /// Expects messages of a subscription that the server creates by itself, in ack mode auto.
    ///
    /// - Throws: `subscriptionIDTaken`.
    package mutating func expect(id: String, destination: String) throws(STOMPSendError) {
        guard subscriptions[id] == nil else { throw .subscriptionIDTaken }
        subscriptions.add(.init(id: id, destination: destination, ackMode: .auto))
    }

    /// Finds the subscription of a message.
    ///
    /// - Returns: The id, with a token if the message can and must be acknowledged; nil if the message was sent before the server
    ///   handled the UNSUBSCRIBE.
    /// - Throws: `headerMissing`.
    package mutating func receive(
        _ frame: STOMPFrame,
        in version: STOMPVersion?
    ) throws(STOMPViolation) -> (id: String, token: STOMPAckToken?)? {
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
        guard let subscription = subscriptions.entry(for: frame.headers) else { return nil }
        guard subscription.ackMode != .auto else {
            return (subscription.id, nil)
        }
        let isByAck = version == .v1_2
        guard let identifier = isByAck ? frame.headers.ack : frame.headers.messageID else {
            // Spring's simple broker sends no `ack`, and ignores ACK.
            return (subscription.id, nil)
        }
        let token = STOMPAckToken(
            identifier: identifier,
            subscriptionID: subscription.id,
            generation: subscription.generation
        )
        return (subscription.id, token)
    }
}
