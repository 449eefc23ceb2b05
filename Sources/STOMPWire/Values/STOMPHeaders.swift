import WireCore

/// The headers of a frame in their order, names and values as text without escapes.
///
/// A name may appear more than once; the first value is valid (STOMP 1.2, Repeated Header Entries).
package struct STOMPHeaders: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// Headers are equal when their bytes are.
        package static func == (left: Field, right: Field) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
        }

        package func hash(into hasher: inout Hasher) {
            name.hashBytes(into: &hasher)
            value.hashBytes(into: &hasher)
        }
    }

    /// All headers, including repeated ones.
    package private(set) var fields: [Field]

    package init(_ fields: [Field] = []) {
        self.fields = fields
    }

    /// Appends a header; an earlier header of the same name stays valid.
    package mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name, value))
    }

    package mutating func append(_ headers: STOMPHeaders) {
        fields += headers.fields
    }

    /// The first value of a name, which is the valid one; case matters.
    ///
    /// - Complexity: O(headers).
    package func first(_ name: String) -> String? {
        for field in fields where field.name.hasSameBytes(as: name) { return field.value }
        return nil
    }

    /// All values of a name, the valid one first.
    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.hasSameBytes(as: name) }.map(\.value)
    }
}

extension STOMPHeaders: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field($0.0, $0.1) })
    }
}
