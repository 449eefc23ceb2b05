import WireCore

/// The reason why options cannot be stored, or bytes are not stored options.
package enum StoredOptionsError: Error, Hashable, Sendable {
    /// They have more than ``StoredOptions/maximumByteCount`` bytes.
    case tooLong
    /// The bytes have a format that this version does not know.
    case unknownFormat(UInt8)
    /// The bytes break the rules of their format.
    case malformed
    /// Several keys of this process have the name of an option, so that a later process could not tell which one it is.
    case ambiguous(OptionName)
}

/// The options of a stored message, encoded: what a store keeps in one column.
///
/// | bytes | |
/// | --- | --- |
/// | 1 | the format: 1 |
/// | then for each option, in the order of the bytes of the names, each name once: | |
/// | a length, and as many | the name, in UTF-8 |
/// | 1 | the kind: 1 a flag, 2 an integer, 3 a text, 4 bytes |
/// | of a flag: 1 | 0 or 1 |
/// | of an integer: 8 | two's complement, the most significant byte first |
/// | of a text and of bytes: a length, and as many | the value; a text is UTF-8 |
///
/// A length has seven bits in each byte, the least significant ones first, and bit 7 says that another byte follows. No
/// options are no bytes at all. So equal options have equal bytes.
package struct StoredOptions: Hashable, Sendable {
    /// The maximum number of bytes that are stored.
    ///
    /// MQTT's own options have less than 128 KiB.
    package static let maximumByteCount = 1 << 20

    private static let format: UInt8 = 1

    private enum Kind: UInt8 {
        case flag = 1
        case integer
        case text
        case bytes
    }

    /// An option in bytes that are lent.
    private struct Entry {
        let name: UnsafeRawBufferPointer
        let kind: Kind
        let value: UnsafeRawBufferPointer
    }

    /// The encoded options; empty for none.
    package private(set) var bytes: [UInt8] = []

    /// No options.
    package init() {}

    package var isEmpty: Bool { bytes.isEmpty }

    package var isTooLong: Bool { bytes.count > Self.maximumByteCount }

    // MARK: Encoding

    /// Encodes options; of two with the same name the last one counts.
    package init(_ options: [StoredOption]) {
        guard !options.isEmpty else { return }
        var values: [WireName: StoredOption.Value] = [:]
        for option in options { values[option.name] = option.value }
        bytes.append(Self.format)
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { append(name.text, value) }
    }

    /// Encodes what a message had before it had a list of options.
    package init(
        isRetained: Bool,
        responseTopic: String?,
        correlationData: [UInt8]?,
        isText: Bool?
    ) {
        var options: [StoredOption] = []
        if isRetained { options.append(StoredOption("retained", .flag(true))) }
        if let responseTopic { options.append(StoredOption("responseTopic", .text(responseTopic))) }
        if let correlationData {
            options.append(StoredOption("correlationData", .bytes(correlationData)))
        }
        // The raw values of MQTT's payload format.
        if let isText { options.append(StoredOption("payloadFormat", .integer(isText ? 1 : 0))) }
        self.init(options)
    }

    /// Encodes the options of a command whose keys are made to be stored, with one allocation of memory.
    ///
    /// - Parameters:
    ///   - boxes: The options.
    ///   - isLeftOut: Whether an option is not stored all the same.
    /// - Throws: `tooLong`, or `ambiguous`.
    init(
        _ boxes: [OptionBox],
        unless isLeftOut: (OptionName) -> Bool
    ) throws(StoredOptionsError) {
        func value(of box: OptionBox) -> StoredOption.Value? {
            guard let coding = box.name.coding, !isLeftOut(box.name) else { return nil }
            return coding.value(box)
        }
        var (byteCount, left) = (1, 0)
        for box in boxes {
            guard let value = value(of: box) else { continue }
            guard !StoredKeys.isAmbiguous(box.name) else { throw .ambiguous(box.name) }
            byteCount += Self.byteCount(of: box.name.text, value)
            left += 1
        }
        guard left > 0 else { return }
        guard byteCount <= Self.maximumByteCount else { throw .tooLong }
        bytes.reserveCapacity(byteCount)
        bytes.append(Self.format)
        var last: WireName?
        // There are few: looking for the next name again and again needs no memory.
        while left > 0 {
            var next: (name: WireName, value: StoredOption.Value)?
            for box in boxes {
                let name = WireName(box.name.text)
                if let last, !(last < name) { continue }
                if let next, !(name < next.name) { continue }
                if let value = value(of: box) { next = (name, value) }
            }
            // Each name is that of one key, so that there are as many.
            guard let next else { break }
            append(next.name.text, next.value)
            last = next.name
            left -= 1
        }
    }

    private static func byteCount(of length: Int) -> Int {
        length < 0x80 ? 1 : 1 + byteCount(of: length >> 7)
    }

    private static func byteCount(of name: String, _ value: StoredOption.Value) -> Int {
        let count = name.utf8.count
        let ofName = byteCount(of: count) + count + 1
        return switch value {
        case .flag: ofName + 1
        case .integer: ofName + 8
        case .text(let text): ofName + byteCount(of: text.utf8.count) + text.utf8.count
        case .bytes(let bytes): ofName + byteCount(of: bytes.count) + bytes.count
        }
    }

    private mutating func append(_ name: String, _ value: StoredOption.Value) {
        append(length: name.utf8.count)
        bytes += name.utf8
        switch value {
        case .flag(let flag):
            bytes.append(Kind.flag.rawValue)
            bytes.append(flag ? 1 : 0)
        case .integer(let integer):
            bytes.append(Kind.integer.rawValue)
            withUnsafeBytes(of: integer.bigEndian) { bytes += $0 }
        case .text(let text):
            bytes.append(Kind.text.rawValue)
            append(length: text.utf8.count)
            bytes += text.utf8
        case .bytes(let value):
            bytes.append(Kind.bytes.rawValue)
            append(length: value.count)
            bytes += value
        }
    }

    private mutating func append(length: Int) {
        var rest = length
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    // MARK: Decoding

    /// Takes encoded options, which may come from anywhere.
    ///
    /// Nothing is allocated for a length that the bytes only state.
    ///
    /// - Throws: `tooLong`, `unknownFormat` or `malformed`.
    package init(checking bytes: [UInt8]) throws(StoredOptionsError) {
        guard bytes.count <= Self.maximumByteCount else { throw .tooLong }
        guard let format = bytes.first else { return }
        guard format == Self.format else { throw .unknownFormat(format) }
        let isWellFormed = bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[1...]))
            var last: UnsafeRawBufferPointer?
            repeat {
                guard let entry = Self.read(&reader), Self.isWellFormed(entry),
                    last.map({ $0.lexicographicallyPrecedes(entry.name) }) ?? true
                else { return false }
                last = entry.name
            } while reader.remaining > 0
            return true
        }
        guard isWellFormed else { throw .malformed }
        self.bytes = bytes
    }

    /// The options, in the order of the bytes of their names.
    package var options: [StoredOption] {
        var options: [StoredOption] = []
        forEach { options.append(StoredOption($0, $1)) }
        return options
    }

    /// Calls `body` with each name and value.
    func forEach(_ body: (String, StoredOption.Value) -> Void) {
        guard !bytes.isEmpty else { return }
        bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[1...]))
            while let entry = Self.read(&reader) {
                body(String(decoding: entry.name, as: UTF8.self), Self.value(of: entry))
            }
        }
    }

    private static func read(_ reader: inout ByteReader) -> Entry? {
        guard let length = readLength(&reader), let name = reader.readBytes(length),
            let kind = reader.readUInt8().flatMap(Kind.init)
        else { return nil }
        let count: Int? =
            switch kind {
            case .flag: 1
            case .integer: 8
            case .text, .bytes: readLength(&reader)
            }
        return count.flatMap { reader.readBytes($0) }.map {
            Entry(name: name, kind: kind, value: $0)
        }
    }

    /// Returns nil also for a length with more bytes than it needs, since equal options have equal bytes.
    private static func readLength(_ reader: inout ByteReader) -> Int? {
        var (length, shift) = (0, 0)
        while shift <= 56, let byte = reader.readUInt8() {
            length |= Int(byte & 0x7F) << shift
            if byte < 0x80 { return byte == 0 && shift > 0 ? nil : length }
            shift += 7
        }
        return nil
    }

    private static func isWellFormed(_ entry: Entry) -> Bool {
        guard UTF8Validation.scan(entry.name).isWellFormed else { return false }
        return switch entry.kind {
        case .flag: entry.value[0] <= 1
        case .text: UTF8Validation.scan(entry.value).isWellFormed
        case .integer, .bytes: true
        }
    }

    private static func value(of entry: Entry) -> StoredOption.Value {
        switch entry.kind {
        case .flag: .flag(entry.value[0] == 1)
        case .integer: .integer(Int64(bigEndian: entry.value.loadUnaligned(as: Int64.self)))
        case .text: .text(String(decoding: entry.value, as: UTF8.self))
        case .bytes: .bytes(Array(entry.value))
        }
    }
}
