import STOMPWire
import Waybill

/// The contents of a SEND, beside its body.
struct STOMPSend: Sendable {
    var headers: STOMPHeaders
    /// The timeout of the receipt; nil for the configuration's.
    let timeout: Duration?
    /// Whether the send waits for a receipt.
    let asksForReceipt: Bool
}
