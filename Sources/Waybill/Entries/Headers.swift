package import WireCore

/// Names and values in order; a name may repeat.
///
/// Names are compared by their bytes. Transports refuse characters that their protocol does not allow; they
/// never repair them.
public struct Headers: Sendable, Hashable {
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

        /// Headers are the same when their bytes are.
        public static func == (left: Header, right: Header) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
        }

        /// Feeds the bytes of name and value.
        public func hash(into hasher: inout Hasher) {
            name.hashBytes(into: &hasher)
            value.hashBytes(into: &hasher)
        }
    }

    private var list: [NamedValue] = []

    /// No headers.
    public init() {}

    /// Headers that come from a transport.
    package init(_ list: [NamedValue]) {
        self.list = list
    }

    /// The same as a transport takes them, without a copy.
    package var pairs: [NamedValue] { list }

    /// The first value of a name; setting it replaces the first and removes the others.
    public subscript(name: String) -> String? {
        get { first(name) }
        set {
            let index = list.firstIndex { $0.name.hasSameBytes(as: name) }
            removeAll(named: name)
            guard let newValue else { return }
            list.insert(NamedValue(name: name, value: newValue), at: index ?? list.endIndex)
        }
    }

    /// The first value of a name.
    public func first(_ name: String) -> String? {
        list.first { $0.name.hasSameBytes(as: name) }?.value
    }

    /// All values of a name, in order.
    public func all(_ name: String) -> [String] {
        list.filter { $0.name.hasSameBytes(as: name) }.map(\.value)
    }

    /// Adds a header behind the others.
    public mutating func append(name: String, value: String) {
        // Room for more at once: the first place alone would be outgrown by the second header.
        if list.isEmpty { list.reserveCapacity(4) }
        list.append(NamedValue(name: name, value: value))
    }

    /// Removes a name.
    public mutating func removeAll(named name: String) {
        list.removeAll { $0.name.hasSameBytes(as: name) }
    }
}

extension Headers: RandomAccessCollection {
    /// The first position.
    public var startIndex: Int { list.startIndex }

    /// The position behind the last.
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
