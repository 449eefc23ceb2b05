/// How a peer breaks the protocol; the connection ends with it.
package enum STOMPViolation: Error, Hashable, Sendable {
    // What cannot be parsed.

    /// A command that the specification does not know; case matters.
    case commandUnknown
    /// A header line without a colon.
    case headerLineInvalid
    /// A header line that begins with its colon.
    case headerNameEmpty
    /// A backslash before anything but what the version defines (Value Encoding: fatal).
    case escapeUndefined
    /// A head that is not well-formed UTF-8.
    case invalidUTF8
    /// A NUL among the headers: the frame ends before its head does.
    case nullInHead
    /// A CR inside a line of 1.2, which may only stand before LF.
    case carriageReturnInvalid
    /// A content-length that is not a row of digits.
    case contentLengthInvalid
    /// No NUL behind a counted body.
    case frameEndMissing

    // What is too much.

    /// A line of the head longer than this side takes.
    case lineTooLong(maximum: Int)
    /// More headers than this side takes.
    case tooManyHeaders(maximum: Int)
    /// A body longer than this side takes, whether its length was told or not.
    case bodyTooLarge(maximum: Int)
    /// More frames before the answer to CONNECT than this side holds back.
    case tooManyFramesHeld(maximum: Int)

    // What can be parsed and may not be said.

    /// A body on a frame that may not have one (Body).
    case bodyNotAllowed(STOMPCommand)
    /// A command that only the other end sends, or that the version does not have.
    case commandNotAllowed(STOMPCommand)
    /// A header that the frame must have is not there.
    case headerMissing(STOMPCommand, String)
    /// A header has a value that it cannot have.
    case headerInvalid(STOMPCommand, String)
    /// A version that was not offered, or no version in common.
    case versionNotOffered
    /// A heart-beat that is not two non-negative integers with a comma.
    case heartBeatInvalid

    // What breaks the order of things.

    /// A frame before the one that opens the connection.
    case frameBeforeConnected(STOMPCommand)
    /// A connection opened twice.
    case connectedTwice
    /// A subscription of an id that is taken.
    case subscriptionRepeated
    /// A subscription that is not there.
    case subscriptionUnknown
    /// A transaction begun twice.
    case transactionRepeated
    /// A transaction that was not begun.
    case transactionUnknown
}

extension STOMPViolation {
    /// What an ERROR frame says about it: nothing that the peer sent is repeated.
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
