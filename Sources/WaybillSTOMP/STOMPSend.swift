import STOMPWire
import Waybill

/// The contents of a SEND, beside its body.
struct STOMPSend: Sendable {
    var headers: STOMPHeaders
    /// The timeout of the receipt; nil for the configuration's.
    var timeout: Duration?
    /// Whether the send asks for a receipt, and waits for it.
    let receipt: STOMPReceiptDemand
    /// The id of the receipt that the entry has chosen.
    var receiptID: String?
    /// Whether the frame has a content-length; nil for the configuration's choice.
    var hasLength: Bool?

    /// Whether the send waits for a receipt, where the server sends any.
    var asksForReceipt: Bool { receipt.asks }

    /// Whether the message belongs to a transaction, which ends with its connection.
    var isInTransaction: Bool { headers.first(STOMPHeaderName.transaction) != nil }
}

extension STOMPReceiptDemand {
    init(_ receipt: STOMPReceipt) {
        switch receipt {
        case .none: self = .none
        case .automatic, .identifier: self = .required
        }
    }
}
