/// The body of a message that is counted: its number, a time in nanoseconds, and dots; text, as an event stream needs it.
package enum NumberedBody {
    /// The body with a number and a time, with dots up to a length in bytes.
    package static func bytes(_ number: Int, time: Int, size: Int) -> [UInt8] {
        var body = Array("\(number) \(time) ".utf8)
        body += repeatElement(UInt8(ascii: "."), count: max(size - body.count, 0))
        return body
    }

    /// Reads a body, which another program may have sent.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - count: The number of messages.
    ///   - now: The present time, in nanoseconds.
    /// - Returns: The number, from 0 and below the count, and the age in nanoseconds, from 0; nil for any other body.
    package static func read(
        _ body: UnsafeRawBufferPointer,
        count: Int,
        now: Int
    ) -> (number: Int, age: Int)? {
        var rest = body[...]
        guard let number = takeNumber(&rest), number < count,
            let time = takeNumber(&rest), time <= now
        else { return nil }
        return (number, now - time)
    }

    /// Takes digits and the space behind them; nil for anything else, and for a number above `Int.max`.
    private static func takeNumber(_ bytes: inout Slice<UnsafeRawBufferPointer>) -> Int? {
        guard let end = bytes.prefix(20).firstIndex(of: 0x20), end > bytes.startIndex else {
            return nil
        }
        var number = 0
        for byte in bytes[..<end] {
            guard 0x30...0x39 ~= byte else { return nil }
            let (product, isTooLong) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooLarge) = product.addingReportingOverflow(Int(byte) - 0x30)
            guard !isTooLong, !isTooLarge else { return nil }
            number = sum
        }
        bytes = bytes[(end + 1)...]
        return number
    }
}
