import WireCore

/// The state of a ``LayerStream`` behind its lock.
struct LayerState<Layer: StreamLayer>: Sendable {
    /// The limit of unsent bytes: 64 KiB.
    private static var batchSize: Int { 65_536 }

    var layer: Layer
    var opening = Opening<Void, Suspension.Continuation>.pending
    var receiver: (any ByteStreamReceiver)?
    /// The timer for the layer's deadline.
    var timer: UInt64?
    /// The error that broke the stream, which counts more than its later end.
    var failure: LinkError?
    /// The end of the stream, after it has ended.
    var end: LinkError??

    var isReading = true
    /// Whether the end follows the data read so far, and was not reported yet.
    var hasEnd = false
    /// Whether data was left unread when the reader above stopped.
    var hasLeftover = false
    /// Whether the reader above has read from the layer since it was last told.
    var hasRead = false

    var turn = WriteTurn.free
    /// The error of the stream below during a write.
    var writeFailure: LinkError?
    /// The number of bytes of the next write that are already encoded.
    var ahead = 0
    /// Whether the writer above waits.
    var wantsToWrite = false

    /// Whether the reader above reads from the stream below.
    var isPassing: Bool { Layer.isTransparent && !hasLeftover }

    /// The error for an end of the stream below.
    mutating func cause(of error: LinkError?) -> LinkError {
        failure ?? layer.cause(of: error)
    }

    /// Notes the error that broke the stream.
    ///
    /// - Returns: The first error, which counts.
    mutating func fail(_ error: LinkError) -> LinkError {
        let first = failure ?? error
        failure = first
        return first
    }

    /// Encodes the rest of the bytes, up to a batch.
    ///
    /// - Returns: The number of bytes that are now encoded.
    mutating func encode(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        if let failure { throw failure }
        let ahead = min(ahead, bytes.count)
        guard turn != .full else { return ahead }
        let fresh = UnsafeRawBufferPointer(rebasing: bytes[ahead...])
        let step = layer.encode(fresh, limit: Self.batchSize)
        switch step.outcome {
        case .fine: return ahead + step.consumed
        case .closed: throw .closed
        case .failed(let error): throw error
        }
    }
}
