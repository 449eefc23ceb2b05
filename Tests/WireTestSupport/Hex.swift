/// Bytes in the usual notation, `10 0C 00 04`.
package struct Hex: ExpressibleByStringLiteral, Sendable {
    package let bytes: [UInt8]

    package init(stringLiteral value: String) {
        let digits = value.filter(\.isHexDigit)
        precondition(digits.count.isMultiple(of: 2), "half a byte in \(value)")
        var bytes: [UInt8] = []
        var index = digits.startIndex
        while index < digits.endIndex {
            let next = digits.index(index, offsetBy: 2)
            bytes.append(UInt8(digits[index..<next], radix: 16) ?? 0)
            index = next
        }
        self.bytes = bytes
    }

    /// The bytes in the same notation.
    package static func text(_ bytes: some Collection<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
            .joined(separator: " ")
    }
}
