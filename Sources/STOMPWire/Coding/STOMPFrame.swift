package import WireCore

/// A received frame.
package struct STOMPFrame: Sendable {
    package let command: STOMPCommand
    /// The headers; text is made from them on demand.
    package internal(set) var headers: STOMPReceivedHeaders
    /// The body, which shares the receive buffer's memory.
    package let body: ByteSlice
}

extension STOMPFrame: Equatable {
    /// Compares command, headers and body; the spelling on the wire does not matter.
    package static func == (left: STOMPFrame, right: STOMPFrame) -> Bool {
        left.command == right.command && left.body == right.body
            && left.headers.list == right.headers.list
    }
}

extension STOMPFrame: CustomStringConvertible {
    /// The command and the identifying headers in one line, without secrets or body.
    package var description: String {
        STOMPTrace.text(command, headers.list, bodyByteCount: body.count)
    }
}
