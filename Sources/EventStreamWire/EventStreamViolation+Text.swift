extension EventStreamViolation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .lineTooLong(let maximum): "a line of the stream has more than \(maximum) bytes"
        }
    }
}
