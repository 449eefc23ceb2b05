/// A client's request other than SEND.
///
/// Further headers are as the server defines them.
package enum STOMPRequest: Sendable {
    /// SUBSCRIBE with an unused id, which is also sent in 1.0, where it is optional.
    ///
    /// A caller may choose an id again. It is used until the RECEIPT of its UNSUBSCRIBE has come, because messages of
    /// the subscription before would be taken for those of the new one; without a RECEIPT, until the connection ends.
    case subscribe(
        id: String,
        destination: String,
        ackMode: STOMPAckMode = .auto,
        headers: STOMPHeaders = [:],
        isChosen: Bool = false
    )
    /// UNSUBSCRIBE; messages of the subscription that arrive after it are dropped.
    case unsubscribe(id: String, headers: STOMPHeaders = [:])
    /// ACK, in an open transaction or in none: acknowledges the message, and in client mode all before it.
    case acknowledge(STOMPAckToken, transaction: String? = nil, headers: STOMPHeaders = [:])
    /// NACK, in an open transaction or in none: refuses the message, and in client mode all before it; not in 1.0.
    case refuse(STOMPAckToken, transaction: String? = nil, headers: STOMPHeaders = [:])
    /// BEGIN; no open transaction may have the name.
    case begin(transaction: String, headers: STOMPHeaders = [:])
    /// COMMIT: the sends and acknowledgements of the transaction take effect.
    case commit(transaction: String, headers: STOMPHeaders = [:])
    /// ABORT: the sends and acknowledgements of the transaction are discarded.
    case abort(transaction: String, headers: STOMPHeaders = [:])
}
