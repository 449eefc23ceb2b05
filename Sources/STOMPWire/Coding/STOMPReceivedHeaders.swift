import WireCore

/// The headers of a received frame in their wire format; text is made only on demand.
///
/// They share the receive buffer's memory and must be short-lived like a ``ByteSlice``. Code that keeps the headers
/// takes the ``list``. The scanner has already found the headers that route a frame.
package struct STOMPReceivedHeaders: Sendable {
    /// The reading style of the lines.
    struct Style: OptionSet, Sendable {
        let rawValue: UInt8

        /// A CR before the LF belongs to the line end.
        static let carriageReturns = Style(rawValue: 1)
        /// Backslashes are escapes, and there is at least one.
        static let escapes = Style(rawValue: 2)
        /// One space after the colon is padding (servers of 1.0).
        static let padding = Style(rawValue: 4)
    }

    /// The places of the routing headers' values, relative to the start of the lines.
    struct Places: Sendable {
        struct Place: Sendable {
            var offset: UInt32 = 0
            var count: UInt32 = 0
            /// False if the header is missing; an empty value counts as present.
            var isThere = false
        }

        var destination = Place()
        var messageID = Place()
        var subscription = Place()
        var ack = Place()
        var receiptID = Place()
    }

    /// The header lines with their ends, without the empty line.
    let lines: ByteSlice
    var style: Style
    let places: Places

    /// No headers, for a frame that never arrived.
    package static let none = STOMPReceivedHeaders(
        lines: [],
        style: [],
        places: Places()
    )

    /// `destination`: the destination of a message.
    package var destination: String? { text(at: places.destination) }
    /// `message-id`: the identifier of the message.
    package var messageID: String? { text(at: places.messageID) }
    /// `subscription`: the id of the message's subscription.
    package var subscription: String? { text(at: places.subscription) }
    /// `ack`: the identifier for acknowledging the message in 1.2.
    package var ack: String? { text(at: places.ack) }
    /// `receipt-id`: the receipt of the answered request.
    package var receiptID: String? { text(at: places.receiptID) }

    /// The first value of a name, which is the valid one; case matters.
    ///
    /// - Complexity: O(bytes of the headers).
    package func first(_ name: String) -> String? {
        lines.withUnsafeBytes { bytes in
            var rest = STOMPHeaderLines(bytes, style)
            while let (lineName, value) = rest.next() {
                if matches(lineName, name) { return text(value) }
            }
            return nil
        }
    }

    /// All headers in their order, including repeated ones.
    package var list: STOMPHeaders {
        lines.withUnsafeBytes { bytes in
            var fields: [STOMPHeaders.Field] = []
            var rest = STOMPHeaderLines(bytes, style)
            while let (name, value) = rest.next() {
                fields.append(STOMPHeaders.Field(text(name), text(value)))
            }
            return STOMPHeaders(fields)
        }
    }

    /// Whether the value at a place equals a text; no string is made.
    func isEqual(_ place: Places.Place, _ other: String) -> Bool {
        guard place.isThere else { return false }
        return withBytes(at: place) { matches($0, other) }
    }

    /// The value at a place as a number in this side's format: digits without a leading zero.
    func number(at place: Places.Place) -> UInt64? {
        guard place.isThere else { return nil }
        return withBytes(at: place) { bytes in
            guard let first = bytes.first, first != UInt8(ascii: "0"), bytes.count <= 19 else {
                return nil
            }
            var number: UInt64 = 0
            for byte in bytes {
                guard byte &- UInt8(ascii: "0") <= 9 else { return nil }
                number = number &* 10 &+ UInt64(byte &- UInt8(ascii: "0"))
            }
            return number
        }
    }

    private func text(at place: Places.Place) -> String? {
        guard place.isThere else { return nil }
        return withBytes(at: place) { text($0) }
    }

    private func withBytes<Result>(
        at place: Places.Place,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        lines.withUnsafeBytes { bytes in
            // In bounds: the scanner found the value inside these lines.
            let start = min(Int(place.offset), bytes.count)
            let end = min(start + Int(place.count), bytes.count)
            let value = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            return body(style.contains(.padding) ? STOMPHeaderLines.unpadded(value) : value)
        }
    }

    private func matches(_ bytes: UnsafeRawBufferPointer, _ other: String) -> Bool {
        guard !style.contains(.escapes) else { return text(bytes).utf8.elementsEqual(other.utf8) }
        return other.utf8.withContiguousStorageIfAvailable {
            UTF8Validation.areEqual(UnsafeRawBufferPointer($0), bytes)
        } ?? other.utf8.elementsEqual(bytes)
    }

    private func text(_ bytes: UnsafeRawBufferPointer) -> String {
        guard style.contains(.escapes), bytes.contains(UInt8(ascii: "\\")) else {
            return String(decoding: bytes, as: UTF8.self)
        }
        return STOMPEscapes.unescaped(bytes)
    }
}

/// Iterates over header lines that a scanner has validated.
struct STOMPHeaderLines {
    private let bytes: UnsafeRawBufferPointer
    private let style: STOMPReceivedHeaders.Style
    private var position = 0

    /// Makes an iterator; the bytes must stay valid as long as it is used.
    init(_ bytes: UnsafeRawBufferPointer, _ style: STOMPReceivedHeaders.Style) {
        self.bytes = bytes
        self.style = style
    }

    /// Returns the next name and its value, with escapes.
    mutating func next() -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
        let start = position
        var colon = start
        while colon < bytes.count, bytes[colon] != UInt8(ascii: ":") { colon += 1 }
        var end = colon
        while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
        guard end < bytes.count else { return nil }
        position = end + 1
        if style.contains(.carriageReturns), bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        // In bounds: start <= colon < end + 1 <= count, since a line has a colon and ends in LF.
        let value = UnsafeRawBufferPointer(rebasing: bytes[min(colon + 1, end)..<end])
        return (
            UnsafeRawBufferPointer(rebasing: bytes[start..<colon]),
            style.contains(.padding) ? Self.unpadded(value) : value
        )
    }

    /// A value without the single space that servers of 1.0 may write before it.
    static func unpadded(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard value.first == UInt8(ascii: " ") else { return value }
        return UnsafeRawBufferPointer(rebasing: value[1...])
    }
}
