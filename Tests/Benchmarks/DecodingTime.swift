import WireCore

/// The nanoseconds for each item that is decoded, without the time to copy the reads into the buffer.
///
/// - Parameters:
///   - count: The number of items in all reads.
///   - reads: The number of reads.
///   - chunk: The bytes of each read.
///   - decode: Decodes all items of a read.
/// - Returns: The time for each item.
@inline(__always)
func decodingTime(
    of count: Int,
    in reads: Int,
    _ chunk: [UInt8],
    _ decode: (inout ReceiveBuffer) throws -> Void
) rethrows -> Double {
    var buffer = ReceiveBuffer(capacity: chunk.count)
    var copying = 0.0
    let start = Usage()
    for _ in 0..<reads {
        let copyStart = Usage()
        buffer.append(chunk)
        copying += copyStart.nanoseconds(per: 1)
        try decode(&buffer)
    }
    return start.nanoseconds(per: count) - copying / Double(count)
}
