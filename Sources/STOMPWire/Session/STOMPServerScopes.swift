import WireCore

/// The subscriptions and transactions that a client has opened, as its server sees them.
///
/// | frame | it must name | after it |
/// | --- | --- | --- |
/// | SUBSCRIBE | an unused id; in 1.0 the destination can replace it | the subscription is open |
/// | UNSUBSCRIBE | an open subscription | it is not |
/// | BEGIN | an unused name | the transaction is open |
/// | COMMIT, ABORT | an open transaction | it is not |
/// | SEND, ACK, NACK | an open transaction or none | |
package struct STOMPServerScopes: Sendable {
    private var subscriptionIDs: Set<WireName> = []
    private var transactions: Set<WireName> = []

    package init() {}

    /// Handles a frame of a connected client.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - receipt: Its `receipt`.
    ///   - version: The agreed version.
    /// - Returns: The event for the broker.
    /// - Throws: `STOMPViolation`.
    package mutating func receive(
        _ frame: STOMPFrame,
        _ receipt: String?,
        in version: STOMPVersion?
    ) throws(STOMPViolation) -> STOMPServerEvent {
        let transaction = frame.headers.first(STOMPHeaderName.transaction)
        switch frame.command {
        case .send:
            let destination = try frame.required(STOMPHeaderName.destination)
            try checkOpen(transaction)
            return .send(
                destination: destination,
                frame,
                transaction: transaction,
                receipt: receipt
            )
        case .subscribe: return try subscribe(frame, receipt, version)
        case .unsubscribe:
            let id = try subscriptionID(frame, version)
            guard subscriptionIDs.remove(WireName(id)) != nil else { throw .subscriptionUnknown }
            return .unsubscribe(id: id, receipt: receipt)
        case .ack: return .acknowledge(try acknowledgement(frame, version), receipt: receipt)
        case .nack: return .refuse(try acknowledgement(frame, version), receipt: receipt)
        case .begin:
            let transaction = try frame.required(STOMPHeaderName.transaction)
            guard transactions.insert(WireName(transaction)).inserted else {
                throw .transactionRepeated
            }
            return .begin(transaction: transaction, receipt: receipt)
        case .commit: return .commit(transaction: try endTransaction(frame), receipt: receipt)
        case .abort: return .abort(transaction: try endTransaction(frame), receipt: receipt)
        case .connect, .stomp: throw .connectedTwice
        case .disconnect, .connected, .message, .receipt, .error:
            throw .commandNotAllowed(frame.command)
        }
    }

    private mutating func subscribe(
        _ frame: STOMPFrame,
        _ receipt: String?,
        _ version: STOMPVersion?
    ) throws(STOMPViolation) -> STOMPServerEvent {
        let destination = try frame.required(STOMPHeaderName.destination)
        let id = try subscriptionID(frame, version)
        let text = frame.headers.first(STOMPHeaderName.ack) ?? STOMPAckMode.auto.rawValue
        guard let ackMode = STOMPAckMode(rawValue: text),
            ackMode != .clientIndividual || version != .v1_0
        else { throw .headerInvalid(.subscribe, STOMPHeaderName.ack) }
        guard subscriptionIDs.insert(WireName(id)).inserted else { throw .subscriptionRepeated }
        return .subscribe(
            id: id,
            destination: destination,
            ackMode: ackMode,
            frame.headers.list,
            receipt: receipt
        )
    }

    /// The id of a subscription; in 1.0 the destination can replace it.
    private func subscriptionID(
        _ frame: STOMPFrame,
        _ version: STOMPVersion?
    ) throws(STOMPViolation) -> String {
        if let id = frame.headers.first(STOMPHeaderName.id) { return id }
        guard version == .v1_0 else { throw .headerMissing(frame.command, STOMPHeaderName.id) }
        return try frame.required(STOMPHeaderName.destination)
    }

    // MARK: ACK, NACK and transactions

    private func acknowledgement(
        _ frame: STOMPFrame,
        _ version: STOMPVersion?
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
