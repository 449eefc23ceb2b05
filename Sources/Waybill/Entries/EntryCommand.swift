/// The command of an entry, with its options.
///
/// ```swift
/// case .say: .send(qos: .atLeastOnce, .retained, .timeout(.seconds(5)))
/// case .join: .subscribe(qos: .atLeastOnce)
/// ```
///
/// Commands compare by kind, quality of service and options, whatever the order of the options.
public struct EntryCommand: Sendable {
    /// What a transport does for an entry.
    ///
    /// More kinds come with the modules of transports. A transport refuses those that it does not know.
    public struct Kind: Sendable {
        /// The kinds of this module; a `switch` over them is complete.
        package enum Code: UInt8, Hashable, Sendable {
            case connect, send, subscribe, unsubscribe, ack, nack, disconnect, other
        }

        private final class Name: Sendable {
            let text: String

            init(_ text: String) { self.text = text }
        }

        package let code: Code
        private let name: Name?

        init(_ code: Code) {
            self.code = code
            name = nil
        }

        /// Makes a kind, for the module of a transport: declare it once, as a static constant.
        public init(_ name: String) {
            code = .other
            self.name = Name(name)
        }
    }

    /// The kind of the command.
    public var kind: Kind { code == .other ? value(of: .kind) ?? Kind(.other) : Kind(code) }

    /// The quality of service of a send; the highest one wanted by a subscription, which the server may not grant.
    public var qos: QoS
    package let code: Kind.Code
    /// The options, each of which is there once; nil for none, so that a copy counts no references.
    private(set) var boxes: [OptionBox]?

    /// Makes a command without options.
    public init(_ kind: Kind, qos: QoS = .atMostOnce) {
        self.init(kind.code, qos)
        if code == .other { boxes = [.holding(kind, for: .kind)] }
    }

    private init(_ code: Kind.Code, _ qos: QoS) {
        self.code = code
        self.qos = qos
        boxes = nil
    }

    fileprivate init<Option: BoxedOption>(_ code: Kind.Code, _ qos: QoS, _ options: [Option]) {
        self.init(code, qos)
        add(options)
    }

    private mutating func add<Option: BoxedOption>(_ options: [Option]) {
        guard !options.isEmpty else { return }
        var boxes = boxes ?? []
        boxes.reserveCapacity(boxes.count + options.count)
        for option in options {
            if let index = boxes.firstIndex(where: { $0.name === option.box.name }) {
                boxes[index] = option.box
            } else {
                boxes.append(option.box)
            }
        }
        self.boxes = boxes
    }

    private func value<Value>(of key: OptionKey<Value>) -> Value? {
        guard let boxes else { return nil }
        for box in boxes {
            if let value = box.value(of: key) { return value }
        }
        return nil
    }

    /// The value of an option; nil where it is absent.
    ///
    /// Interceptors read, set and remove options here. Nil removes an option; a flag that is false is still there, and a
    /// transport that does not know it refuses it.
    public subscript<Value>(key: OptionKey<Value>) -> Value? {
        get { value(of: key) }
        set {
            let index = boxes?.firstIndex { $0.name === key }
            switch (index, newValue) {
            case (let index?, let value?): boxes?[index] = .holding(value, for: key)
            case (let index?, nil):
                boxes?.remove(at: index)
                if boxes?.isEmpty == true { boxes = nil }
            case (nil, let value?):
                if boxes == nil {
                    boxes = [.holding(value, for: key)]
                } else {
                    boxes?.append(.holding(value, for: key))
                }
            case (nil, nil): break
            }
        }
    }

    /// Adds an option, in place of one with the same key.
    mutating func set(_ box: OptionBox) {
        guard let index = boxes?.firstIndex(where: { $0.name === box.name }) else {
            boxes = (boxes ?? []) + [box]
            return
        }
        boxes?[index] = box
    }

    /// Whether a flag is there and true.
    package func isSet(_ flag: OptionKey<Bool>) -> Bool { value(of: flag) ?? false }

    /// Whether there are no options; asked for each message before the options are.
    package var isPlain: Bool { boxes == nil }

    /// Removes an option, also where the value of another option holds it.
    package mutating func omit(_ name: OptionName) {
        // Asked for each request once an option was learned to be unsupported.
        guard let boxes, boxes.contains(where: { $0.name === name || $0.holdsOptions }) else {
            return
        }
        let left = boxes.compactMap { $0.omitting(name) }
        self.boxes = left.isEmpty ? nil : left
    }

    /// The message that an `ack` or a `nack` names; nil for other commands.
    public var message: Message.ID? { value(of: .messageID) }

    /// The names of the options.
    public var options: [OptionName] {
        (boxes ?? []).map(\.name).filter { $0 !== OptionName.messageID && $0 !== OptionName.kind }
    }

    /// The command's name, for logs and errors.
    public var name: String { kind.description }

    /// Whether the command requires a topic.
    var needsTopic: Bool {
        switch code {
        case .send, .subscribe, .unsubscribe: true
        case .connect, .ack, .nack, .disconnect, .other: false
        }
    }
}

extension EntryCommand.Kind: Hashable, CustomStringConvertible {
    /// Opens the connection.
    public static var connect: Self { Self(.connect) }
    /// Sends a message.
    public static var send: Self { Self(.send) }
    /// Begins a subscription.
    public static var subscribe: Self { Self(.subscribe) }
    /// Ends a subscription.
    public static var unsubscribe: Self { Self(.unsubscribe) }
    /// Acknowledges a message.
    public static var ack: Self { Self(.ack) }
    /// Refuses a message.
    public static var nack: Self { Self(.nack) }
    /// Closes the connection.
    public static var disconnect: Self { Self(.disconnect) }

    /// Whether both are the same kind; kinds that are spelled alike may differ.
    public static func == (left: Self, right: Self) -> Bool {
        left.code == right.code && left.name === right.name
    }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(name.map(ObjectIdentifier.init))
    }

    /// The name, for logs and errors.
    public var description: String {
        switch code {
        case .connect: "connect"
        case .send: "send"
        case .subscribe: "subscribe"
        case .unsubscribe: "unsubscribe"
        case .ack: "ack"
        case .nack: "nack"
        case .disconnect: "disconnect"
        case .other: name?.text ?? "other"
        }
    }
}

extension EntryCommand: Hashable, ShownByDescription {
    /// Whether kind, quality of service and options are the same, whatever the order of the options.
    public static func == (left: Self, right: Self) -> Bool {
        guard left.code == right.code, left.qos == right.qos else { return false }
        guard let boxes = left.boxes, let others = right.boxes else {
            return left.boxes == nil && right.boxes == nil
        }
        return boxes.count == others.count && boxes.allSatisfy(others.contains)
    }

    /// Hashes what ``==(_:_:)`` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(qos)
        // The same whatever the order.
        hasher.combine((boxes ?? []).reduce(0) { $0 ^ $1.hashValue })
    }

    /// The name and the names of the options; values are never shown.
    public var description: String {
        let names = options.map(\.description)
        return names.isEmpty ? name : "\(name) (\(names.joined(separator: ", ")))"
    }
}

extension EntryCommand {
    /// Opens the connection with the transport's own settings.
    public static var connect: Self { Self(.connect, .atMostOnce) }

    /// Opens the connection; an option that is absent is left to the transport's configuration.
    public static func connect(_ options: ConnectOption...) -> Self { .connect(options: options) }

    /// Opens the connection with options that are computed.
    public static func connect(options: [ConnectOption]) -> Self {
        Self(.connect, .atMostOnce, options)
    }

    /// Sends the body to the topic with QoS 0.
    public static var send: Self { Self(.send, .atMostOnce) }

    /// Sends the body to the topic.
    public static func send(qos: QoS) -> Self { Self(.send, qos) }

    /// Sends the body to the topic with options.
    public static func send(qos: QoS = .atMostOnce, _ options: SendOption...) -> Self {
        .send(qos: qos, options: options)
    }

    /// Sends the body to the topic with options that are computed.
    public static func send(qos: QoS = .atMostOnce, options: [SendOption]) -> Self {
        Self(.send, qos, options)
    }

    /// Replies to a message whose sender waits for a reply.
    ///
    /// The command carries the correlation data of the message. The entry's topic must be the message's
    /// ``Message/replyTopic``.
    public static func reply(
        to message: Message,
        qos: QoS = .atMostOnce,
        _ options: SendOption...
    ) -> Self {
        var command = Self.send(qos: qos, options: options)
        command[.correlationData] = message[.correlationData]
        return command
    }

    /// Receives messages of the topic, or of every topic that a filter matches, with QoS 0.
    public static var subscribe: Self { Self(.subscribe, .atMostOnce) }

    /// Receives messages of the topic, or of every topic that a filter matches.
    ///
    /// - Parameters:
    ///   - qos: The highest quality of service wanted; the server may grant less.
    ///   - options: The options.
    /// - Returns: The command.
    public static func subscribe(qos: QoS = .atMostOnce, _ options: SubscribeOption...) -> Self {
        .subscribe(qos: qos, options: options)
    }

    /// Receives messages of the topic with options that are computed.
    public static func subscribe(qos: QoS = .atMostOnce, options: [SubscribeOption]) -> Self {
        Self(.subscribe, qos, options)
    }

    /// Ends every subscription to the topic, or to each of several topics; succeeds also where there is none.
    public static var unsubscribe: Self { Self(.unsubscribe, .atMostOnce) }

    /// Ends every subscription to the topic, or to each of several topics; succeeds also where there is none.
    public static func unsubscribe(_ options: UnsubscribeOption...) -> Self {
        .unsubscribe(options: options)
    }

    /// Ends every subscription to the topic with options that are computed.
    public static func unsubscribe(options: [UnsubscribeOption]) -> Self {
        Self(.unsubscribe, .atMostOnce, options)
    }

    /// Acknowledges a message of a subscription with manual acknowledgement.
    ///
    /// Where several listeners have the message, the answer with the highest reason code is sent, with its reason string,
    /// after the last of them has answered (MQTT 5).
    public static func ack(_ message: Message.ID, _ options: AckOption...) -> Self {
        .ack(message, options: options)
    }

    /// Acknowledges a message with options that are computed.
    public static func ack(_ message: Message.ID, options: [AckOption]) -> Self {
        answer(.ack, message, options)
    }

    /// Refuses a message of a subscription with manual acknowledgement.
    ///
    /// Where several listeners have the message, the answer with the highest reason code is sent, with its reason string,
    /// after the last of them has answered (MQTT 5).
    public static func nack(_ message: Message.ID, _ options: AckOption...) -> Self {
        .nack(message, options: options)
    }

    /// Refuses a message with options that are computed.
    public static func nack(_ message: Message.ID, options: [AckOption]) -> Self {
        answer(.nack, message, options)
    }

    private static func answer(_ code: Kind.Code, _ message: Message.ID, _ options: [AckOption])
        -> Self
    {
        var command = Self(code, .atMostOnce)
        command.boxes = [.holding(message, for: .messageID)]
        command.add(options)
        return command
    }

    /// Closes the connection in an orderly way, with the transport's own settings.
    ///
    /// Requests of the same provider and its copies that still wait for a token or for their next attempt fail, because
    /// they would open the connection again.
    public static var disconnect: Self { Self(.disconnect, .atMostOnce) }

    /// Closes the connection in an orderly way; see ``disconnect``.
    public static func disconnect(_ options: DisconnectOption...) -> Self {
        .disconnect(options: options)
    }

    /// Closes the connection with options that are computed.
    public static func disconnect(options: [DisconnectOption]) -> Self {
        Self(.disconnect, .atMostOnce, options)
    }
}
