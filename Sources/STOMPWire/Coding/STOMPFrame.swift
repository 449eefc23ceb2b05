package import WireCore

/// A frame as it was received.
package struct STOMPFrame: Sendable {
    /// What it says.
    package let command: STOMPCommand
    /// Its headers, of which text is made on demand.
    package internal(set) var headers: STOMPReceivedHeaders
    /// Its body, which shares the memory that was read into.
    package let body: ByteSlice
}

extension STOMPFrame: Equatable {
    /// Whether command, headers and body are the same, however they were spelled.
    package static func == (left: STOMPFrame, right: STOMPFrame) -> Bool {
        left.command == right.command && left.body == right.body
            && left.headers.list == right.headers.list
    }
}

extension STOMPFrame: CustomStringConvertible {
    /// Command and headers that name things, in one line, without secrets or body.
    package var description: String {
        STOMPTrace.text(command, headers.list, bodyByteCount: body.count)
    }
}
