/// An option of a command: a key and a value.
///
/// Each command has a type of its own, so that only its options complete. Absence is the default: an option that is not
/// given leaves the decision to the configuration, and then to the specification. Given twice, the last one counts.
/// Descriptions show the name and never the value.
public protocol CommandOption: Hashable, Sendable, CustomStringConvertible {
    /// Makes an option, for the declaration of one that an app or a transport adds.
    init<Value>(_ key: OptionKey<Value>, _ value: Value)
    /// The name of the option.
    var name: OptionName { get }
}

/// What all options share.
protocol BoxedOption: CommandOption, Unmirrored {
    var box: OptionBox { get }
}

extension BoxedOption {
    /// The name of the option.
    public var name: OptionName { box.name }

    /// The name alone: the value may be a secret.
    public var description: String { box.name.description }
}

/// An option of ``EntryCommand/send(qos:_:)``.
public struct SendOption: BoxedOption {
    let box: OptionBox

    /// Makes an option, where it is declared.
    public init<Value>(_ key: OptionKey<Value>, _ value: Value) { box = .holding(value, for: key) }
}

/// An option of ``EntryCommand/subscribe(qos:_:)``.
public struct SubscribeOption: BoxedOption {
    let box: OptionBox

    /// Makes an option, where it is declared.
    public init<Value>(_ key: OptionKey<Value>, _ value: Value) { box = .holding(value, for: key) }
}

/// An option of ``EntryCommand/unsubscribe(_:)``.
public struct UnsubscribeOption: BoxedOption {
    let box: OptionBox

    /// Makes an option, where it is declared.
    public init<Value>(_ key: OptionKey<Value>, _ value: Value) { box = .holding(value, for: key) }
}

/// An option of ``EntryCommand/connect(_:)``.
public struct ConnectOption: BoxedOption {
    let box: OptionBox

    /// Makes an option, where it is declared.
    public init<Value>(_ key: OptionKey<Value>, _ value: Value) { box = .holding(value, for: key) }
}

/// An option of ``EntryCommand/ack(_:_:)`` and ``EntryCommand/nack(_:_:)``.
///
/// The headers of the entry become user properties of MQTT 5, or headers of STOMP's frame.
public struct AckOption: BoxedOption {
    let box: OptionBox

    /// Makes an option, where it is declared.
    public init<Value>(_ key: OptionKey<Value>, _ value: Value) { box = .holding(value, for: key) }
}

/// An option of ``EntryCommand/disconnect(_:)``.
public struct DisconnectOption: BoxedOption {
    let box: OptionBox

    /// Makes an option, where it is declared.
    public init<Value>(_ key: OptionKey<Value>, _ value: Value) { box = .holding(value, for: key) }
}
