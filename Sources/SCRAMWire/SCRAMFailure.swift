import WireCore

/// The reason why a SCRAM exchange fails.
package enum SCRAMFailure: Error, Hashable, Sendable {
    // This side.

    /// The user name is empty, or has characters other than printable ASCII.
    case userNameNotSupported
    /// The password is empty, or has characters other than printable ASCII.
    case passwordNotSupported
    /// The nonce is empty, or has characters that it may not have.
    case nonceInvalid
    /// A step that is not due.
    case outOfTurn
    /// The system's library cannot compute a hash.
    case hashFailed

    // The peer.

    /// A message that violates the grammar (RFC 5802, 7).
    case malformed
    /// A message longer than ``SCRAMMessage/maximumByteCount``.
    case tooLong
    /// An extension that this side must understand, and does not (RFC 5802, 5.1, `m`).
    case extensionNotSupported
    /// The server's nonce does not extend the client's, or the client's is not the server's.
    case nonceMismatch
    /// An iteration count outside of the allowed range.
    case iterationsOutOfRange(Int, allowed: ClosedRange<Int>)
    /// The server's signature, or the client's proof, is wrong.
    case signatureMismatch
    /// The server's error (RFC 5802, 7, `e`).
    case refused(String)
}

extension SCRAMFailure: CustomStringConvertible {
    /// The failure in words; only the server's error is repeated, escaped.
    package var description: String {
        switch self {
        case .userNameNotSupported:
            "the user name must be printable ASCII, and not empty: other characters are not prepared"
        case .passwordNotSupported:
            "the password must be printable ASCII, and not empty: other characters are not prepared"
        case .nonceInvalid: "the nonce has characters that it may not have"
        case .outOfTurn: "a message of SCRAM that was not due"
        case .hashFailed: "the system's library did not compute SHA-256"
        case .malformed: "a message of SCRAM that breaks the grammar"
        case .tooLong: "a message of SCRAM that is too long"
        case .extensionNotSupported: "an extension of SCRAM that this side does not know"
        case .nonceMismatch: "the nonce is not that of this exchange"
        case .iterationsOutOfRange(let count, let allowed):
            "\(count) iterations, outside of \(allowed.lowerBound) to \(allowed.upperBound)"
        case .signatureMismatch: "the signature is wrong: the peer does not know the password"
        case .refused(let error): "the server refused: \(error.excerpt)"
        }
    }
}
