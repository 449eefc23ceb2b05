import WireCore

// Keeps secrets out of `print` and `dump`: they show descriptions, and no stored property.

extension Payload: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers.Header: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: the value is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ConnectOptions: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: passwords are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EntryBody: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Request: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Message: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Receipt: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension StoredMessage: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: bodies and values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension WaybillError: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: a topic is shown without its query, and the words of a peer escaped.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TransportEvent: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: a topic is shown without its query, and the words of a peer escaped.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPRefusal: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: fields and body are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ProxyOptions: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: user name, password and values of headers are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TLSOptions.Material: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: keys are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TLSOptions.Identity: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: passwords and keys are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension InterceptorContext: CustomDebugStringConvertible, CustomReflectable {
    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty: a topic is shown without its query.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Provider: CustomReflectable {
    /// Empty: a transport and its interceptors may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension InMemorySessionStore: CustomReflectable {
    /// Empty: bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers.Header: CustomStringConvertible {
    /// The name alone: the value may be a secret.
    public var description: String { name.escaped }
}

extension EntryBody: CustomStringConvertible {
    /// The name of the type, never the content.
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

    /// Empty: an entry may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EnqueuedRequest: CustomReflectable {
    /// Empty: a receipt has a description of its own.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension BulkResults: CustomStringConvertible, CustomReflectable {
    /// How many results there are.
    public var description: String { "\(count) results" }

    /// Empty: receipts and errors have descriptions of their own.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
