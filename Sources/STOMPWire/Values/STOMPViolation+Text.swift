extension STOMPViolation: CustomStringConvertible {
    /// The violation in words: the same as ``message``.
    package var description: String { message }
}

extension STOMPEncodingError: CustomStringConvertible {
    /// The reason in words; the value of a header is not repeated.
    package var description: String {
        switch self {
        case .headerNameEmpty: "a header has no name"
        case .nullCharacter(let name):
            "the header \(name) has a null character, which would end the frame"
        case .lineBreakNotAllowed(let name):
            "the header \(name) has a line break, for which this frame or version has no escape"
        case .colonNotAllowed(let name):
            "the name of the header \(name) has a colon, for which this frame or version has no escape"
        case .contentLengthNotAllowed: "the header content-length is written by the client itself"
        case .bodyNotAllowed(let command): "\(command) has no body"
        case .commandNotAllowed(let command): "this version of STOMP has no \(command)"
        }
    }
}
