public import Waybill

extension OptionName {
    /// Whether a request asks for a receipt.
    public static let receipt = OptionKey<STOMPReceipt>("receipt")
    /// The name of a transaction; it cannot be left out.
    public static let transaction = OptionKey<String>("transaction", canBeOmitted: false)
    /// STOMP's ack mode.
    public static let ackMode = OptionKey<AckMode>("ackMode")
}

/// Whether a request asks for a receipt (STOMP 1.2, Standard Headers: receipt).
public enum STOMPReceipt: Hashable, Sendable {
    /// The request asks for no receipt, and is complete when it was handed to the link.
    case none
    /// The request asks for a receipt, whose id the transport makes, and waits for it.
    case automatic
}

extension SendOption {
    /// Whether the send asks for a receipt and waits for it.
    ///
    /// Without it ``STOMPConfiguration/receipts`` of the transport decides.
    public static func receipt(_ receipt: STOMPReceipt) -> Self { Self(.receipt, receipt) }
}

extension SubscribeOption {
    /// STOMP's ack mode; without it the quality of service decides.
    public static func ackMode(_ mode: AckMode) -> Self { Self(.ackMode, mode) }

    /// Whether the subscription asks for a receipt and waits for it.
    ///
    /// Without it ``STOMPConfiguration/receipts`` of the transport decides.
    public static func receipt(_ receipt: STOMPReceipt) -> Self { Self(.receipt, receipt) }
}

extension AckOption {
    /// The transaction to which the acknowledgement, or the refusal, belongs.
    public static func transaction(_ name: String) -> Self { Self(.transaction, name) }
}

extension EntryCommand.Kind {
    /// Begins a transaction.
    public static let begin = Self("begin")
    /// Commits a transaction.
    public static let commit = Self("commit")
    /// Aborts a transaction.
    public static let abort = Self("abort")
}

extension EntryCommand {
    /// Begins a transaction.
    public static func begin(transaction: String) -> Self { Self(.begin, of: transaction) }

    /// Commits a transaction.
    public static func commit(transaction: String) -> Self { Self(.commit, of: transaction) }

    /// Aborts a transaction.
    public static func abort(transaction: String) -> Self { Self(.abort, of: transaction) }

    private init(_ kind: Kind, of transaction: String) {
        self.init(kind)
        self[.transaction] = transaction
    }
}
