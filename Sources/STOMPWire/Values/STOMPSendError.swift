/// The reason why a frame cannot be encoded; nothing was written.
package enum STOMPEncodingError: Error, Hashable, Sendable {
    case headerNameEmpty
    /// A header whose name or value holds NUL, which would end the frame; the header's name.
    case nullCharacter(String)
    /// A line break for which the frame or the version has no escape; the header's name.
    case lineBreakNotAllowed(String)
    /// A colon in a name for which the frame or the version has no escape; the header's name.
    case colonNotAllowed(String)
    /// A content-length, which the encoder writes itself.
    case contentLengthNotAllowed
    /// A body on a frame that must not have one (Body).
    case bodyNotAllowed(STOMPCommand)
    /// A command that the version does not have.
    case commandNotAllowed(STOMPCommand)
}

/// The reason why a request cannot be sent; nothing was written.
package enum STOMPSendError: Error, Hashable, Sendable {
    /// There is no connection, or CONNECT was already sent.
    case notConnected
    /// The frame would violate the encoding rules.
    case encoding(STOMPEncodingError)
    /// A CONNECT that offers no version.
    case noVersion
    /// A CONNECT without a host; 1.1 and 1.2 require it (Connecting).
    case hostMissing
    /// A message or a subscription without a destination.
    case destinationMissing
    /// A header that this side writes itself, given by the caller; the header's name.
    case headerReserved(String)
    /// NACK or `client-individual` in 1.0, which has neither.
    case notSupported(STOMPVersion)
    /// A subscription with an empty id, or with an id in use (SUBSCRIBE id Header).
    case subscriptionIDTaken
    /// A subscription that is not open.
    case subscriptionUnknown
    /// An id of a receipt that is empty or a number, or that another receipt has that has not arrived.
    case receiptTaken
    /// A chosen id of a receipt, while too many receipts with such ids have not arrived in time.
    case receiptsOverdue
    /// A transaction with an empty name, or with the name of an open one (BEGIN).
    case transactionOpen
    /// A transaction that is not open.
    case transactionUnknown
}
