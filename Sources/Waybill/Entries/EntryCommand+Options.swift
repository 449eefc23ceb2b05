extension EntryCommand {
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
