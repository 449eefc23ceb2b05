/// Reads the elements of DER (X.690, 8.1 and 10.1).
struct DERReader {
    /// The tags that are used here.
    enum Tag: UInt8 {
        case integer = 0x02
        case bitString = 0x03
        case octetString = 0x04
        case objectIdentifier = 0x06
        case sequence = 0x30
        /// `[0]`, explicit.
        case context0 = 0xA0
        /// `[1]`, explicit.
        case context1 = 0xA1
    }

    struct Element {
        /// The element with its tag and length.
        let whole: ArraySlice<UInt8>
        let content: ArraySlice<UInt8>
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// Takes the next element; returns nil and takes nothing if it has another tag or is incomplete.
    mutating func next(_ tag: Tag) -> Element? {
        guard rest.first == tag.rawValue, let first = rest.dropFirst().first else { return nil }
        var content = rest.dropFirst(2)
        var length = Int(first)
        if first >= 0x80 {
            // 0x80 is the indefinite length, which DER does not allow; four bytes of length mean up to 4 GiB.
            let count = length - 0x80
            guard (1...4).contains(count), content.count >= count else { return nil }
            length = content.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            content = content.dropFirst(count)
        }
        guard content.count >= length else { return nil }
        content = content.prefix(length)
        defer { rest = rest[content.endIndex...] }
        return Element(whole: rest[rest.startIndex..<content.endIndex], content: content)
    }
}
