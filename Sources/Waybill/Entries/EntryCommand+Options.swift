extension EntryCommand {
    /// The timeout that the command's options state; nil for none.
    package var timeout: Duration? {
        switch self {
        case .connect(let options): options.timeout
        case .send(let options): options.timeout
        case .subscribe(let options): options.timeout
        case .disconnect(let options): options.timeout
        default: nil
        }
    }

    /// Sets the timeout in the command's options where it is nil.
    mutating func fillTimeout(_ timeout: Duration) {
        switch self {
        case .connect(var options) where options.timeout == nil:
            options.timeout = timeout
            self = .connect(options)
        case .send(var options) where options.timeout == nil:
            options.timeout = timeout
            self = .send(options)
        case .subscribe(var options) where options.timeout == nil:
            options.timeout = timeout
            self = .subscribe(options)
        case .disconnect(var options) where options.timeout == nil:
            options.timeout = timeout
            self = .disconnect(options)
        default: break
        }
    }
}
