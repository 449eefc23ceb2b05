package import WireCore

/// Feeds a decoder every row in every way in which a network may deliver it.
///
/// Each row comes whole, byte by byte, cut in two at every place, joined with the other rows, with bytes after it
/// that must stay, and truncated, so that the decoder must ask for more.
package struct DecoderVerifier<Output: Equatable & Sendable>: Sendable {
    /// A row of a golden table.
    package typealias Row = (bytes: [UInt8], output: Output)

    /// Takes one output off the front of a buffer; nil asks for more bytes.
    package typealias Decode = (inout ReceiveBuffer) throws -> Output?

    private let makeDecoder: @Sendable () -> Decode

    package init(_ makeDecoder: @escaping @Sendable () -> Decode) {
        self.makeDecoder = makeDecoder
    }

    /// Checks the rows.
    /// - Returns: The failures in words; empty when there is none.
    package func verify(_ rows: [Row]) -> [String] {
        var failures: [String] = []
        for row in rows {
            failures += verify(row)
        }
        let all = rows.flatMap(\.bytes)
        failures += expect(rows.map(\.output), from: [all], "coalesced")
        failures += expect(rows.map(\.output), from: all.map { [$0] }, "coalesced, byte by byte")
        return failures
    }

    private func verify(_ row: Row) -> [String] {
        let bytes = row.bytes
        var failures = expect([row.output], from: [bytes], "whole")
        failures += expect([row.output], from: bytes.map { [$0] }, "byte by byte")
        for split in splits(of: bytes.count) {
            failures += expect(
                [row.output],
                from: [Array(bytes[..<split]), Array(bytes[split...])],
                "split at \(split)"
            )
            failures += expect([], from: [Array(bytes[..<split])], "truncated to \(split)")
        }
        failures += expectTrailing(row)
        return failures
    }

    /// The places at which a row is cut: all of them in a short row, in a long one the ends and some between.
    private func splits(of count: Int) -> [Int] {
        guard count > 512 else { return Array(1..<max(count, 1)) }
        let between = stride(from: 64, to: count - 64, by: max(count / 32, 1))
        return Array(1..<64) + between + Array(count - 64..<count)
    }

    private func expect(_ outputs: [Output], from pieces: [[UInt8]], _ way: String) -> [String] {
        let decode = makeDecoder()
        var buffer = ReceiveBuffer(capacity: 16)
        var found: [Output] = []
        do {
            for piece in pieces {
                buffer.append(piece)
                while let output = try decode(&buffer) { found.append(output) }
            }
        } catch {
            return ["\(way): \(error) in \(Hex.text(pieces.joined().prefix(64)))"]
        }
        guard found == outputs else {
            return [
                "\(way): \(found) instead of \(outputs), \(Hex.text(pieces.joined().prefix(64)))"
            ]
        }
        return []
    }

    private func expectTrailing(_ row: Row) -> [String] {
        let decode = makeDecoder()
        var buffer = ReceiveBuffer(capacity: 16)
        let first = row.bytes.first.map { [$0] } ?? []
        buffer.append(row.bytes + first)
        guard let output = try? decode(&buffer), output == row.output, buffer.count == first.count
        else { return ["with a byte behind it: \(buffer.count) bytes left"] }
        return []
    }
}
