import WireCore

/// Reads a stream into the buffer of a driver.
struct StreamReader: Sendable {
    var buffer = ReceiveBuffer()
    private var isFirst = true

    init() {}

    /// Does the same as ``WireCore/ReceiveBuffer/fill(from:)``, and refuses a peer that requires TLS.
    mutating func read(
        from stream: any ByteStream
    ) -> (outcome: Result<ReadOutcome, LinkError>, wasFilled: Bool) {
        let found = buffer.fill(from: stream)
        guard isFirst, case .success(.bytes) = found.outcome else { return found }
        isFirst = false
        // A server that requires TLS answers a client without TLS with an alert (RFC 8446, 5.1). No protocol here
        // begins like one.
        let isAlert = buffer.withUnsafeBytes { $0.starts(with: [21, 3]) }
        return isAlert && stream.tls == nil ? (.failure(.tls(.required)), false) : found
    }
}

extension ReceiveBuffer {
    /// Reads once from a stream.
    ///
    /// - Returns: The result, and whether the stream filled the whole space, so that it may have more.
    mutating func fill(
        from stream: any ByteStream
    ) -> (outcome: Result<ReadOutcome, LinkError>, wasFilled: Bool) {
        var outcome = Result<ReadOutcome, LinkError>.success(.nothing)
        var wasFilled = false
        _ = fill { space in
            outcome = Result { () throws(LinkError) in try stream.read(into: space) }
            guard case .success(.bytes(let count)) = outcome else { return nil }
            wasFilled = count == space.count
            return count
        }
        return (outcome, wasFilled)
    }
}
