/// A violation of the protocol by the peer, which ends the connection.
package enum STOMPViolation: Error, Hashable, Sendable {
    // Malformed frames.

    /// An unknown command; case matters.
    case commandUnknown
    /// A header line without a colon.
    case headerLineInvalid
    /// A header line that begins with its colon.
    case headerNameEmpty
    /// A backslash with an undefined escape (Value Encoding: fatal).
    case escapeUndefined
    /// A head that is not well-formed UTF-8.
    case invalidUTF8
    /// A NUL in the headers, which ends the frame within its head.
    case nullInHead
    /// A CR inside a line of 1.2; it is allowed only before LF.
    case carriageReturnInvalid
    /// A content-length that does not consist of digits.
    case contentLengthInvalid
    /// No NUL after a body with a content-length.
    case frameEndMissing

    // Exceeded limits.

    /// A line of the head above this side's limit.
    case lineTooLong(maximum: Int)
    /// More headers than this side's limit.
    case tooManyHeaders(maximum: Int)
    /// A body above this side's limit, with or without a content-length.
    case bodyTooLarge(maximum: Int)
    /// More frames before the answer to CONNECT than this side's limit.
    case tooManyFramesHeld(maximum: Int)

    // Well-formed frames with invalid content.

    /// A body on a frame that must not have one (Body).
    case bodyNotAllowed(STOMPCommand)
    /// A command that only the other side sends, or that the version does not have.
    case commandNotAllowed(STOMPCommand)
    /// A required header is missing.
    case headerMissing(STOMPCommand, String)
    /// A header has an invalid value.
    case headerInvalid(STOMPCommand, String)
    /// A version that was not offered, or no common version.
    case versionNotOffered
    /// A heart-beat that is not two non-negative integers separated by a comma.
    case heartBeatInvalid

    // Frames in the wrong order.

    /// A frame before CONNECT or CONNECTED.
    case frameBeforeConnected(STOMPCommand)
    /// A second CONNECT or CONNECTED.
    case connectedTwice
    /// A subscription with an id in use.
    case subscriptionRepeated
    /// An unknown subscription.
    case subscriptionUnknown
    /// A second BEGIN of an open transaction.
    case transactionRepeated
    /// A transaction without a BEGIN.
    case transactionUnknown
}

extension STOMPViolation {
    /// The text for an ERROR frame; data of the peer is not repeated.
    package var message: String {
        switch self {
        case .commandUnknown: "unknown command"
        case .headerLineInvalid: "header line without a colon"
        case .headerNameEmpty: "header without a name"
        case .escapeUndefined: "undefined escape sequence"
        case .invalidUTF8: "headers are not UTF-8"
        case .nullInHead: "frame ended among its headers"
        case .carriageReturnInvalid: "carriage return inside a header line"
        case .contentLengthInvalid: "content-length is not a number"
        case .frameEndMissing: "no NUL after the body"
        case .lineTooLong(let maximum): "header line longer than \(maximum) bytes"
        case .tooManyHeaders(let maximum): "more than \(maximum) headers"
        case .bodyTooLarge(let maximum): "body longer than \(maximum) bytes"
        case .tooManyFramesHeld: "too many frames before CONNECTED"
        case .bodyNotAllowed(let command): "\(command) with a body"
        case .commandNotAllowed(let command): "\(command) is not for this end or version"
        case .headerMissing(let command, let name): "\(command) without \(name)"
        case .headerInvalid(let command, let name): "\(command) with an invalid \(name)"
        case .versionNotOffered: "no protocol version in common"
        case .heartBeatInvalid: "invalid heart-beat"
        case .frameBeforeConnected(let command): "\(command) before the connection is open"
        case .connectedTwice: "connection opened twice"
        case .subscriptionRepeated: "subscription id is taken"
        case .subscriptionUnknown: "no such subscription"
        case .transactionRepeated: "transaction is open already"
        case .transactionUnknown: "no such transaction"
        }
    }
}
