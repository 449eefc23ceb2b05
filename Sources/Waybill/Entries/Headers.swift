package import WireCore

/// Names and values in order; a name may repeat.
///
/// Names are compared by their bytes, and in the headers of an HTTP response without regard to case; see ``lookup``.
/// Where a name repeats, look-ups return its first value. Transports refuse characters that their protocol does not
/// allow; they never repair them.
public struct Headers: Sendable {
    /// How names are compared.
    public enum Lookup: UInt8, Sendable {
        /// By their bytes, as in STOMP and in MQTT's user properties.
        case exact
        /// Without regard to the case of ASCII letters, as in HTTP (RFC 9110, 5.1).
        case ignoringCase
    }

    /// A name and its value.
    public struct Header: Sendable, Hashable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Pairs a name with a value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Headers are equal when their bytes are.
        public static func == (left: Header, right: Header) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
        }

        /// Hashes the bytes of name and value.
        public func hash(into hasher: inout Hasher) {
            name.hashBytes(into: &hasher)
            value.hashBytes(into: &hasher)
        }
    }

    private var list: [NamedValue] = []
    /// How names are compared; the transport sets it on headers that it has received.
    public var lookup = Lookup.exact

    /// No headers.
    public init() {}

    /// Headers that come from a transport.
    package init(_ list: [NamedValue], lookup: Lookup = .exact) {
        self.list = list
        self.lookup = lookup
    }

    private func matches(_ stored: String, _ name: String) -> Bool {
        switch lookup {
        case .exact: stored.hasSameBytes(as: name)
        case .ignoringCase: stored.hasSameBytesIgnoringASCIICase(as: name)
        }
    }

    /// The headers as a transport takes them, without a copy.
    package var pairs: [NamedValue] { list }

    /// The first value of a name; setting it replaces the first and removes the others.
    public subscript(name: String) -> String? {
        get { first(name) }
        set {
            let index = list.firstIndex { matches($0.name, name) }
            removeAll(named: name)
            guard let newValue else { return }
            list.insert(NamedValue(name: name, value: newValue), at: index ?? list.endIndex)
        }
    }

    /// The first value of a name.
    public func first(_ name: String) -> String? {
        list.first { matches($0.name, name) }?.value
    }

    /// All values of a name, in order.
    public func all(_ name: String) -> [String] {
        list.filter { matches($0.name, name) }.map(\.value)
    }

    /// Adds a header at the end.
    public mutating func append(name: String, value: String) {
        // Room for several at once: otherwise the second header already makes the array grow.
        if list.isEmpty { list.reserveCapacity(4) }
        list.append(NamedValue(name: name, value: value))
    }

    /// Removes every header of a name.
    public mutating func removeAll(named name: String) {
        let rule = self.lookup
        list.removeAll { header in
            rule == .exact
                ? header.name.hasSameBytes(as: name)
                : header.name.hasSameBytesIgnoringASCIICase(as: name)
        }
    }
}

extension Headers: Hashable {
    /// Headers are equal when their bytes are, in the same order; ``lookup`` is not compared.
    public static func == (left: Headers, right: Headers) -> Bool { left.list == right.list }

    /// Hashes the bytes of names and values.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(list)
    }
}

extension Headers: RandomAccessCollection {
    /// The first position.
    public var startIndex: Int { list.startIndex }

    /// The position after the last header.
    public var endIndex: Int { list.endIndex }

    /// The header at a position.
    public subscript(position: Int) -> Header {
        Header(name: list[position].name, value: list[position].value)
    }
}

extension Headers: ExpressibleByDictionaryLiteral {
    /// Headers in the order of the literal; names may repeat.
    public init(dictionaryLiteral elements: (String, String)...) {
        list = elements.map { NamedValue(name: $0.0, value: $0.1) }
    }
}

extension Headers: CustomStringConvertible {
    /// The names alone: values may be secrets.
    public var description: String {
        "[" + list.map(\.name.escaped).joined(separator: ", ") + "]"
    }
}
