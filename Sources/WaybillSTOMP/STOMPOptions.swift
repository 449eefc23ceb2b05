public import Waybill
import WireCore

extension OptionName {
    /// Whether a request asks for a receipt.
    public static let receipt = OptionKey<STOMPReceipt>(stored: "receipt")
    /// The name of a transaction; it cannot be left out.
    public static let transaction = OptionKey<String>("transaction", canBeOmitted: false)
    /// STOMP's ack mode.
    public static let ackMode = OptionKey<AckMode>("ackMode")
    /// Whether a send has a `content-length`.
    public static let contentLength = OptionKey<Bool>(stored: "contentLength")
    /// The `id` of a subscription.
    public static let identifier = OptionKey<String>("identifier")

    /// The options that STOMP keeps with a stored message.
    static let stored: [OptionName] = [receipt, contentLength, responseTopic, correlationData]
}

/// Whether a request asks for a receipt (STOMP 1.2, Standard Headers: receipt).
public enum STOMPReceipt: Sendable {
    /// The request asks for no receipt, and is complete when it was handed to the link.
    case none
    /// The request asks for a receipt, whose id the transport makes, and waits for it.
    case automatic
    /// The request asks for a receipt with this id, and waits for it.
    ///
    /// It must not be empty, nor a number in decimal digits, as the transport's own ids are, nor the id of another
    /// receipt of the connection that has not arrived, even if nothing waits for it any more: that is `invalidEntry`.
    /// While 1,000 such receipts have not arrived over a connection, further ids are refused with `limitExceeded`. A
    /// request with several topics, which is several frames, cannot have an id.
    case identifier(String)

    /// The id that the app has chosen.
    var chosenIdentifier: String? {
        guard case .identifier(let id) = self else { return nil }
        return id
    }

    /// Identifiers are equal when their bytes are.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.none, .none), (.automatic, .automatic): true
        case (.identifier(let left), .identifier(let right)): WireName(left) == WireName(right)
        default: false
        }
    }

    /// Hashes the bytes of the identifier.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .none: hasher.combine(0)
        case .automatic: hasher.combine(1)
        case .identifier(let id):
            hasher.combine(2)
            hasher.combine(WireName(id))
        }
    }
}

extension STOMPReceipt: StorableOptionValue {
    /// Whether there is a receipt: an id belongs to the connection that the request was made for.
    public var storedValue: StoredOption.Value { .flag(self != .none) }

    /// Takes a flag.
    public init?(storedValue: StoredOption.Value) {
        guard let asks = Bool(storedValue: storedValue) else { return nil }
        self = asks ? .automatic : .none
    }
}

extension STOMPReceipt: CustomStringConvertible, CustomReflectable {
    /// The kind, without the app's identifier.
    public var description: String {
        switch self {
        case .none: "none"
        case .automatic: "automatic"
        case .identifier: "identifier"
        }
    }

    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension SendOption {
    /// Whether the send asks for a receipt and waits for it.
    ///
    /// Without it ``STOMPConfiguration/receipts`` of the transport decides.
    public static func receipt(_ receipt: STOMPReceipt) -> Self { Self(.receipt, receipt) }

    /// The transaction to which the send belongs, which must be open.
    ///
    /// It is the header `transaction`, which the entry must not have as well.
    public static func transaction(_ name: String) -> Self { Self(.transaction, name) }

    /// Whether the send has a `content-length`, if it has a body.
    ///
    /// Without it `contentLength` of the transport's configuration decides. A body with a NUL, which would end the
    /// frame, needs one.
    public static func contentLength(_ hasLength: Bool) -> Self { Self(.contentLength, hasLength) }
}

extension SubscribeOption {
    /// STOMP's ack mode; without it the quality of service decides.
    public static func ackMode(_ mode: AckMode) -> Self { Self(.ackMode, mode) }

    /// The `id` of the subscription, with which each connection makes it.
    ///
    /// It must not be empty, nor that of another subscription of the transport, nor a number that the transport has
    /// made for one. After the end of a subscription its id is free when the server has confirmed UNSUBSCRIBE with a
    /// RECEIPT, otherwise when the connection has ended. A taken id is `invalidEntry`. A subscription with several
    /// topics, which has an id for each, cannot have it. Without it the transport makes the id.
    public static func identifier(_ id: String) -> Self { Self(.identifier, id) }

    /// Whether the subscription asks for a receipt and waits for it.
    ///
    /// Without it ``STOMPConfiguration/receipts`` of the transport decides.
    public static func receipt(_ receipt: STOMPReceipt) -> Self { Self(.receipt, receipt) }
}

extension UnsubscribeOption {
    /// Whether the request asks for a receipt and waits for it.
    ///
    /// Without it ``STOMPConfiguration/receipts`` of the transport decides.
    public static func receipt(_ receipt: STOMPReceipt) -> Self { Self(.receipt, receipt) }
}

extension AckOption {
    /// Whether the acknowledgement, or the refusal, asks for a receipt and waits for it.
    ///
    /// Without it ``STOMPConfiguration/receipts`` of the transport decides, and in a transaction none is asked for.
    public static func receipt(_ receipt: STOMPReceipt) -> Self { Self(.receipt, receipt) }

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
