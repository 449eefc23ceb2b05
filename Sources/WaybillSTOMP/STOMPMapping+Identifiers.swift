import STOMPWire
import Waybill
import WireCore

// The names that an entry chooses: of receipts, subscriptions and transactions.
extension STOMPMapping {
    /// Refuses ids of receipts and subscriptions that no frame can have, or that the server's answers could not repeat.
    ///
    /// Whether an id is in use is known where the frame is sent.
    static func checkIdentifiers(
        _ request: Request,
        _ configuration: STOMPConfiguration
    ) throws(WaybillError) {
        let receipt = request.command[.receipt]?.chosenIdentifier
        let subscription = request.command[.identifier]
        guard receipt != nil || subscription != nil else { return }
        guard !request.hasSeveralTopics else {
            throw invalid("an id is that of one frame, and each topic has a frame", request)
        }
        if let receipt {
            guard STOMPReceipts.plainNumber(receipt) == nil else {
                throw invalid("a number is an id of the transport's own receipts", request)
            }
            try check(receipt, as: STOMPHeaderName.receiptID, request, configuration)
        }
        if let subscription {
            try check(subscription, as: STOMPHeaderName.subscription, request, configuration)
        }
    }

    /// Checks an id that the server repeats in a header.
    private static func check(
        _ id: String,
        as header: String,
        _ request: Request,
        _ configuration: STOMPConfiguration
    ) throws(WaybillError) {
        guard !id.isEmpty else { throw invalid("an id must not be empty", request) }
        try check([header: id], request)
        // Each byte may be escaped, and a colon and a line end belong to the line.
        let byteCount = header.utf8.count + 3 + 2 * id.utf8.count
        guard byteCount <= configuration.wireLimits.maximumLineByteCount else {
            throw invalid("the header \(header) of the answers would be too long", request)
        }
    }

    /// Adds the transaction of a send.
    static func add(
        _ transaction: String,
        _ request: Request,
        to headers: inout STOMPHeaders
    ) throws(WaybillError) {
        guard !transaction.isEmpty else { throw invalid("a transaction needs a name", request) }
        guard headers.first(STOMPHeaderName.transaction) == nil else {
            throw invalid("the transaction is given both as an option and as a header", request)
        }
        headers.append(STOMPHeaderName.transaction, transaction)
        try check([STOMPHeaderName.transaction: transaction], request)
    }

    /// Refuses a body that would end the frame early without a content-length.
    static func checkUncounted(_ request: Request) throws(WaybillError) {
        var hasNull = false
        request.body.withWireBytes { bytes in hasNull = bytes.contains(0) }
        guard !hasNull else {
            throw invalid("a body with a NUL needs a content-length", request)
        }
    }
}
