/// The command of a frame, of both sides (STOMP 1.2, Client Frames and Server Frames).
package enum STOMPCommand: CaseIterable, Hashable, Sendable {
    // Sent by clients.
    case connect
    case stomp
    case send
    case subscribe
    case unsubscribe
    case ack
    case nack
    case begin
    case commit
    case abort
    case disconnect
    // Sent by servers.
    case connected
    case message
    case receipt
    case error

    /// The command as written in a frame: upper case, and case matters.
    package var name: StaticString {
        switch self {
        case .connect: "CONNECT"
        case .stomp: "STOMP"
        case .send: "SEND"
        case .subscribe: "SUBSCRIBE"
        case .unsubscribe: "UNSUBSCRIBE"
        case .ack: "ACK"
        case .nack: "NACK"
        case .begin: "BEGIN"
        case .commit: "COMMIT"
        case .abort: "ABORT"
        case .disconnect: "DISCONNECT"
        case .connected: "CONNECTED"
        case .message: "MESSAGE"
        case .receipt: "RECEIPT"
        case .error: "ERROR"
        }
    }

    /// The length of the longest command, UNSUBSCRIBE, in bytes.
    package static let longestByteCount = 11

    /// The side that sends it.
    package var sender: STOMPRole {
        switch self {
        case .connected, .message, .receipt, .error: .server
        default: .client
        }
    }

    /// Whether the frame may have a body (STOMP 1.2, Body).
    package var allowsBody: Bool {
        switch self {
        case .send, .message, .error: true
        default: false
        }
    }

    /// Whether the frame opens a connection: its headers are never escaped.
    package var isHandshake: Bool {
        switch self {
        case .connect, .stomp, .connected: true
        default: false
        }
    }

    /// Whether names and values of this frame are written with escapes (Value Encoding).
    ///
    /// - Parameter version: The version of the connection; nil before it is agreed.
    /// - Returns: False for CONNECT and CONNECTED, which must be readable in every version.
    package func hasEscapes(in version: STOMPVersion?) -> Bool {
        guard let version, version >= .v1_1 else { return false }
        return !isHandshake
    }

    /// The command of a line; nil for an unknown command.
    package init?(_ line: UnsafeRawBufferPointer) {
        guard let first = line.first else { return nil }
        // No two commands have the same length and the same first letter.
        let candidate: STOMPCommand
        switch (line.count, first) {
        case (7, UInt8(ascii: "M")): candidate = .message
        case (7, UInt8(ascii: "R")): candidate = .receipt
        case (5, UInt8(ascii: "E")): candidate = .error
        case (9, UInt8(ascii: "C")): candidate = .connected
        case (4, UInt8(ascii: "S")): candidate = .send
        case (3, UInt8(ascii: "A")): candidate = .ack
        case (4, UInt8(ascii: "N")): candidate = .nack
        case (9, UInt8(ascii: "S")): candidate = .subscribe
        case (11, UInt8(ascii: "U")): candidate = .unsubscribe
        case (5, UInt8(ascii: "B")): candidate = .begin
        case (6, UInt8(ascii: "C")): candidate = .commit
        case (5, UInt8(ascii: "A")): candidate = .abort
        case (10, UInt8(ascii: "D")): candidate = .disconnect
        case (7, UInt8(ascii: "C")): candidate = .connect
        case (5, UInt8(ascii: "S")): candidate = .stomp
        default: return nil
        }
        guard candidate.name.isEqual(to: line) else { return nil }
        self = candidate
    }
}

extension STOMPCommand: CustomStringConvertible {
    package var description: String { "\(name)" }
}
