/// Two names that are equal as Swift strings although their bytes differ.
package struct LookalikeNames: Sendable, CustomStringConvertible {
    package let one: String
    package let other: String

    package var description: String {
        [one, other].map { name in
            name.unicodeScalars.map { $0.isASCII ? "\($0)" : "U+" + String($0.value, radix: 16) }
                .joined()
        }.joined(separator: " and ")
    }

    /// Composed and decomposed letters, marks in another order and so of the same length, and scalars that decompose
    /// to one other scalar, among them one in ASCII.
    package static let all = [
        LookalikeNames(one: "\u{E9}", other: "e\u{301}"),
        LookalikeNames(one: "caf\u{E9}/x", other: "cafe\u{301}/x"),
        LookalikeNames(one: "s\u{323}\u{307}", other: "s\u{307}\u{323}"),
        LookalikeNames(one: "K", other: "\u{212A}"),
        LookalikeNames(one: "\u{3A9}", other: "\u{2126}"),
        LookalikeNames(one: "\u{AC00}", other: "\u{1100}\u{1161}"),
    ]
}
