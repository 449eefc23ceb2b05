import WireCore

// Keeps secrets out of `print` and `dump`: they show descriptions, and no stored property.

/// A type whose stored properties `dump` does not show, because they may hold secrets.
package protocol Unmirrored: CustomReflectable {}

extension Unmirrored {
    /// Empty: stored properties are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A type that `print`, `dump` and debuggers show by its description alone.
package protocol ShownByDescription: Unmirrored, CustomDebugStringConvertible,
    CustomStringConvertible
{}

extension ShownByDescription {
    /// As ``description``.
    public var debugDescription: String { description }
}

extension Payload: ShownByDescription {}
extension Headers: ShownByDescription {}
extension Headers.Header: ShownByDescription {}
extension EntryBody: ShownByDescription {}
extension Request: ShownByDescription {}
extension Message: ShownByDescription {}
extension Receipt: ShownByDescription {}
extension StoredMessage: ShownByDescription {}
extension WaybillError: ShownByDescription {}
extension TransportEvent: ShownByDescription {}
extension HTTPRefusal: ShownByDescription {}
extension ProxyOptions: ShownByDescription {}
extension TLSOptions.Material: ShownByDescription {}
extension TLSOptions.Identity: ShownByDescription {}
extension InterceptorContext: ShownByDescription {}
extension Provider: Unmirrored {}
extension InMemorySessionStore: Unmirrored {}
extension EnqueuedRequest: Unmirrored {}

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

extension TypedEntry: CustomStringConvertible, Unmirrored {
    /// The command's name and the type; never what the entry holds.
    public var description: String { "\(entry.command.name) as \(Value.self)" }
}

extension BulkResults: CustomStringConvertible, Unmirrored {
    /// How many results there are.
    public var description: String { "\(count) results" }
}
