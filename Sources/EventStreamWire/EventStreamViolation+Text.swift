extension EventStreamViolation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .lineTooLong(let maximum): "a line of the stream has more than \(maximum) bytes"
        case .eventTooLong(let maximum): "the data of an event has more than \(maximum) bytes"
        }
    }
}
