import WireCore

extension TransportEvent: CustomStringConvertible {
    /// The kind and the present values, in one line without secrets.
    ///
    /// A topic is shown only up to a question mark: queries can carry tokens.
    public var description: String {
        var words = [kind.name]
        if let label { words.insert("[\(label)]", at: 0) }
        func add(_ label: String, _ value: (some Any)?) {
            if let value { words.append("\(label) \(value)") }
        }
        if let command { words.append(command) }
        if let topic { words.append(topic.withoutQuery) }
        let isEnd = kind == .disconnected || kind == .redirected
        add("to", isEnd ? nil : host)
        add("from", isEnd ? host : nil)
        if let otherHosts, !otherHosts.isEmpty {
            words.append("to \(otherHosts.joined(separator: ", "))")
        }
        if let count { words.append("\(count)") }
        if let byteCount { words.append("(\(byteCount) bytes)") }
        add("at QoS", qos?.rawValue)
        add("attempt", attempt)
        add("in", delay ?? until.map { time.duration(to: $0) })
        add("after", duration)
        if isResumed == true { words.append("resumed") }
        if let dropReason { words.append("because: \(dropReason.name)") }
        if let error { words.append("error \(error.code.name): \(error.message)") }
        return words.joined(separator: " ").escaped
    }
}

extension TransportEvent.Kind: CustomStringConvertible {
    /// The name of the kind.
    public var description: String { name }
}

extension TransportEvent.DropReason: CustomStringConvertible {
    /// The reason in words.
    public var description: String { name }
}
