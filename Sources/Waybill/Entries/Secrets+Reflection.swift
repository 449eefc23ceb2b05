import WireCore

// What prints and dumps show: descriptions, which hold no secrets, and no stored property behind them.

extension Payload: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers.Header: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: the value is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ConnectOptions: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: passwords are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EntryBody: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Request: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Message: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Receipt: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension StoredMessage: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: bodies and values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension WaybillError: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a topic is shown without its query, and the words of a peer escaped.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TransportEvent: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a topic is shown without its query, and the words of a peer escaped.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPRefusal: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: fields and body are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ProxyOptions: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: user, password and values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TLSOptions.Material: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: keys are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TLSOptions.Identity: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: passwords and keys are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension InterceptorContext: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Provider: CustomReflectable {
    /// Nothing: what a transport and its interceptors hold may be secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension InMemorySessionStore: CustomReflectable {
    /// Nothing: bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers.Header: CustomStringConvertible {
    /// The name alone: the value may be a secret.
    public var description: String { name.escaped }
}

extension EntryBody: CustomStringConvertible {
    /// What kind of thing it is, never its content.
    public var description: String { "EntryBody" }
}

extension Receipt: CustomStringConvertible {
    /// Topic, reason and the length of a reply, never its content.
    public var description: String {
        var text = "receipt"
        if let topic { text += " of \(topic.withoutQuery.escaped)" }
        if let reason { text += ": \(reason.escaped)" }
        if let reply { text += ", reply of \(reply.body)" }
        return text
    }
}

extension StoredMessage: CustomStringConvertible {
    /// Number, topic and length, never the content.
    public var description: String {
        "message \(id) of \(body.count) bytes to \(topic.withoutQuery.escaped)"
    }
}

extension InterceptorContext: CustomStringConvertible {
    /// Command, topic and attempt.
    public var description: String {
        command + (topic.map { " \($0.withoutQuery.escaped)" } ?? "") + ", attempt \(attempt)"
    }
}

extension TypedEntry: CustomStringConvertible, CustomReflectable {
    /// The command's name and the type; never what the entry holds.
    public var description: String { "\(entry.command.name) as \(Value.self)" }

    /// Nothing: an entry may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EnqueuedRequest: CustomReflectable {
    /// Nothing: a receipt is shown by itself.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension BulkResults: CustomStringConvertible, CustomReflectable {
    /// How many results there are.
    public var description: String { "\(count) results" }

    /// Nothing: receipts and errors are shown by themselves.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
