import WireCore

/// The fields of a head, in order; names are compared without regard to case (RFC 9110, 5.1).
package struct HTTPHeaders: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Fields are equal when their bytes are.
        package static func == (left: Field, right: Field) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
        }

        package func hash(into hasher: inout Hasher) {
            name.hashBytes(into: &hasher)
            value.hashBytes(into: &hasher)
        }
    }

    private var list: [Field] = []

    package init() {}

    package init(_ fields: [Field]) {
        list = fields
    }

    package mutating func append(name: String, value: String) {
        list.append(Field(name: name, value: value))
    }

    /// Adds fields and removes the earlier fields of the same names.
    package mutating func replace(with fields: HTTPHeaders) {
        list.removeAll { old in
            fields.list.contains { HTTPSyntax.areSameName($0.name, old.name) }
        }
        list += fields.list
    }

    /// The first value of a name.
    package func first(_ name: String) -> String? {
        list.first { HTTPSyntax.areSameName($0.name, name) }?.value
    }

    /// All values of a name, in order.
    package func all(_ name: String) -> [String] {
        list.filter { HTTPSyntax.areSameName($0.name, name) }.map(\.value)
    }

    /// The members of all values of a list field (RFC 9110, 5.6.1), without empty members.
    package func members(_ name: String) -> [String] {
        all(name).flatMap { value in
            value.utf8.split(separator: UInt8(ascii: ","))
                .map { HTTPSyntax.trimmed(Substring($0)) }.filter { !$0.isEmpty }
        }
    }

    /// Whether a list field has a member, without regard to case.
    package func contains(_ name: String, member: String) -> Bool {
        members(name).contains { HTTPSyntax.areSameName($0, member) }
    }
}

extension HTTPHeaders: RandomAccessCollection {
    package var startIndex: Int { list.startIndex }
    package var endIndex: Int { list.endIndex }
    package subscript(position: Int) -> Field { list[position] }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        list = elements.map { Field(name: $0.0, value: $0.1) }
    }
}
