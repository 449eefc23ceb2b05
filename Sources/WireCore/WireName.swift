/// A name that is compared by its bytes: a topic, a filter, a destination, an identifier, the name of a header.
///
/// Swift compares strings by characters: "é" as one scalar equals "e" with a combining accent, and "K" equals U+212A
/// (Unicode canonical equivalence). Servers distinguish these, so names are keys of this type and never of `String`.
@usableFromInline
package struct WireName: Hashable, Sendable {
    @usableFromInline package let text: String

    /// Takes a name unchanged.
    @inlinable
    package init(_ text: String) {
        self.text = text
    }

    @inlinable
    package static func == (left: WireName, right: WireName) -> Bool {
        left.text.hasSameBytes(as: right.text)
    }

    @inlinable
    package func hash(into hasher: inout Hasher) {
        text.hashBytes(into: &hasher)
    }
}

extension WireName: Comparable {
    /// The order of the bytes.
    @inlinable
    package static func < (left: WireName, right: WireName) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }
}

extension Dictionary where Key == WireName {
    /// The value of a name.
    @inlinable
    package subscript(name: String) -> Value? {
        get { self[WireName(name)] }
        _modify { yield &self[WireName(name)] }
    }
}

extension Set where Element == WireName {
    /// Whether the set contains a name.
    package func contains(_ name: String) -> Bool { contains(WireName(name)) }
}

extension StringProtocol {
    /// Whether both texts have the same UTF-8 bytes.
    ///
    /// - Complexity: O(n); O(1) if the lengths differ or both share their memory.
    @inlinable
    package func hasSameBytes(as other: some StringProtocol) -> Bool {
        let isSame = utf8.withContiguousStorageIfAvailable { mine in
            other.utf8.withContiguousStorageIfAvailable { others in
                guard mine.count == others.count else { return false }
                if mine.baseAddress == others.baseAddress { return true }
                return UTF8Validation.areEqual(
                    UnsafeRawBufferPointer(mine),
                    UnsafeRawBufferPointer(others)
                )
            }
        }
        return isSame.flatMap { $0 } ?? utf8.elementsEqual(other.utf8)
    }

    /// Whether both texts have the same UTF-8 bytes without regard to the case of ASCII letters.
    package func hasSameBytesIgnoringASCIICase(as other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// Whether the text begins with the bytes of another.
    package func hasBytePrefix(_ prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

    /// Whether the text ends with the bytes of another.
    package func hasByteSuffix(_ suffix: String) -> Bool {
        utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }

    /// The text with ASCII capitals in lower case; all other characters stay.
    package var asciiLowercased: String {
        String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self)
    }

    /// The parts between an ASCII separator, including empty ones.
    package func split(
        atByte separator: Unicode.Scalar,
        maxSplits: Int = .max
    ) -> [Substring] {
        let byte = UInt8(ascii: separator)
        return Substring(self).utf8.split(
            separator: byte,
            maxSplits: maxSplits,
            omittingEmptySubsequences: false
        ).map { Substring($0) }
    }

    /// Hashes the bytes, so that texts with the same bytes have the same hash.
    @inlinable
    package func hashBytes(into hasher: inout Hasher) {
        let isDone: Void? = utf8.withContiguousStorageIfAvailable { bytes in
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
        if isDone == nil {
            // A text bridged from Objective-C: hashed in one piece, as in the other case.
            let bytes = Array(utf8)
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        // Marks the end of the name: the hash of two consecutive names depends on where the first ends.
        hasher.combine(0xFF as UInt8)
    }
}

extension UInt8 {
    /// The lower case of an ASCII capital; any other byte unchanged.
    package var asciiLowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}
