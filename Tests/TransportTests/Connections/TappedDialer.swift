import WaybillLink
import WireCore

/// The system's dialer, which records the bytes written to each connection.
final class TappedDialer: Dialer {
    private let streams = Locked<[TappedStream]>([])

    /// The bytes written to each connection, as text.
    var written: [String] {
        streams.withLock { $0 }.map { String(decoding: $0.written, as: UTF8.self) }
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let stream = TappedStream(
            try await LinkEnvironment.system.dialer.dial(
                endpoint,
                timeout: timeout,
                timers: timers
            )
        )
        streams.withLock { $0.append(stream) }
        return stream
    }
}

/// A stream that records its written bytes.
final class TappedStream: ByteStream {
    private let base: any ByteStream
    private let bytes = Locked<[UInt8]>([])

    init(_ base: any ByteStream) { self.base = base }

    var written: [UInt8] { bytes.withLock { $0 } }

    func start(_ receiver: any ByteStreamReceiver) { base.start(receiver) }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        // The bytes are recorded before the peer can answer. Those that the stream does not take are removed again.
        let mark = self.bytes.withLock { all in
            all += Array(bytes)
            return all.count
        }
        let count = try base.write(bytes)
        self.bytes.withLock { $0.removeSubrange((mark - bytes.count + count)..<mark) }
        return count
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        try base.read(into: space)
    }

    func scheduleFlush() -> Bool { base.scheduleFlush() }
    func setReading(_ isReading: Bool) { base.setReading(isReading) }
    func readAgain() { base.readAgain() }
    func finishWriting() { base.finishWriting() }
    func close() { base.close() }
    func abandon() { base.abandon() }
}
