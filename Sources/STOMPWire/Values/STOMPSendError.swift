/// What a caller wants to send that no frame may carry; nothing was written.
package enum STOMPEncodingError: Error, Hashable, Sendable {
    /// A header without a name.
    case headerNameEmpty
    /// A header whose name or value holds NUL, which would end the frame; its name.
    case nullCharacter(String)
    /// A line break where the frame or the version has no escape for it; the header's name.
    case lineBreakNotAllowed(String)
    /// A colon in a name where the frame or the version has no escape for it; the header's name.
    case colonNotAllowed(String)
    /// A content-length, which the encoder writes itself.
    case contentLengthNotAllowed
    /// A body on a frame that may not have one (Body).
    case bodyNotAllowed(STOMPCommand)
    /// A command that the version does not have.
    case commandNotAllowed(STOMPCommand)
}

/// What a caller asked for that cannot be sent; nothing was written.
package enum STOMPSendError: Error, Hashable, Sendable {
    /// There is no connection, or it has been opened already.
    case notConnected
    /// The frame would break the rules of encoding.
    case encoding(STOMPEncodingError)
    /// A CONNECT that offers no version.
    case noVersion
    /// A CONNECT without a host, which 1.1 and 1.2 demand (Connecting).
    case hostMissing
    /// A message or a subscription without a destination.
    case destinationMissing
    /// A header that this side writes itself, given by the caller; its name.
    case headerReserved(String)
    /// NACK or `client-individual` in 1.0, which has neither.
    case notSupported(STOMPVersion)
    /// A subscription without an id, or with one that is taken (SUBSCRIBE id Header).
    case subscriptionIDTaken
    /// A subscription that is not open.
    case subscriptionUnknown
    /// A transaction without an id, or with one that is open (BEGIN).
    case transactionOpen
    /// A transaction that is not open.
    case transactionUnknown
}
