/// An ordered, lossless stream of bytes to one peer: the boundary between platforms.
///
/// It is implemented by TCP on Linux, by Network.framework on Apple platforms, by a pair in memory and by scripts in
/// tests. All methods may be called from any thread. Only ``read(into:)`` is called by one thread at a time: from
/// within ``ByteStreamReceiver/streamIsReadable()``, or to read the peer's last data after a failed write.
package protocol ByteStream: AnyObject, Sendable {
    /// Starts to call the receiver; call it once.
    ///
    /// The stream keeps the receiver alive until it has called ``ByteStreamReceiver/streamDidEnd(_:)``.
    func start(_ receiver: any ByteStreamReceiver)

    /// Writes as many of the bytes as possible without waiting.
    ///
    /// - Parameter bytes: The bytes.
    /// - Returns: The number of bytes taken. If it is smaller than given, ``ByteStreamReceiver/streamIsWritable()``
    ///   follows, and the next write begins with the rest.
    /// - Throws: `LinkError` if the stream is broken or closed.
    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int

    /// Reads available bytes.
    ///
    /// - Parameter space: The destination.
    /// - Returns: The result of the read.
    /// - Throws: `LinkError` if the stream is broken or closed.
    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome

    /// Requests a call of ``ByteStreamReceiver/streamShouldFlush()`` after a short time, to send the bytes written
    /// meanwhile in one piece.
    ///
    /// - Returns: Whether the stream makes that call; if not, the caller flushes at once.
    func scheduleFlush() -> Bool

    /// Stops or resumes reading; without reading, the peer's writes will stall.
    func setReading(_ isReading: Bool)

    /// Requests another call of ``ByteStreamReceiver/streamIsReadable()`` without new data.
    ///
    /// A stream on top of this one uses it when it has unread data left.
    func readAgain()

    /// Ends the write direction, and continues reading.
    func finishWriting()

    /// Closes both directions; a second call does nothing.
    ///
    /// ``ByteStreamReceiver/streamDidEnd(_:)`` follows unless it was already called.
    func close()

    /// Closes both directions with a reset, if the stream has one.
    ///
    /// The system then resends no unacknowledged data. ``ByteStreamReceiver/streamDidEnd(_:)`` follows as with
    /// ``close()``.
    func abandon()

    /// Makes the stream probe a silent peer by itself, because no layer above does.
    ///
    /// It does nothing if the stream cannot do that.
    func keepAlive()

    /// Whether there is unread data, or the end, of which the receiver was not told yet.
    ///
    /// False if the stream cannot know.
    var hasInput: Bool { get }

    /// The number of bytes that the peer's system has taken so far, and of those that wait for it in this one's.
    ///
    /// Nil if the stream cannot know.
    var sendQueue: SendQueue? { get }

    /// The TLS properties of the stream, or of the stream below it; nil without TLS.
    var tls: TLSAgreement? { get }
}

extension ByteStream {
    package func abandon() { close() }

    package func keepAlive() {}

    package var hasInput: Bool { false }

    package var sendQueue: SendQueue? { nil }

    package var tls: TLSAgreement? { nil }
}

/// What the system has of the bytes that were written to a stream.
package struct SendQueue: Equatable, Sendable {
    /// The number of bytes that the peer's system has acknowledged.
    package var taken: UInt64
    /// The number of bytes that it has not.
    package var waiting: Int

    package init(taken: UInt64, waiting: Int) {
        self.taken = taken
        self.waiting = waiting
    }

    /// The number of bytes that were taken, in few bits, and never 0: it tells whether two bytes or more were taken.
    var place: UInt32 { UInt32(truncatingIfNeeded: taken) | 1 }
}

/// The result of a read.
package enum ReadOutcome: Equatable, Sendable {
    /// A number of bytes, at least one.
    case bytes(Int)
    /// No bytes at present.
    case nothing
    /// The peer has ended its write direction.
    case endOfStream
}

/// The receiver of a stream's events.
///
/// Calls come one at a time and in order.
package protocol ByteStreamReceiver: AnyObject, Sendable {
    /// Bytes or the end can be read.
    func streamIsReadable()

    /// A partial write can continue.
    func streamIsWritable()

    /// The time requested by ``ByteStream/scheduleFlush()`` has come.
    func streamShouldFlush()

    /// The stream has ended; no call follows.
    ///
    /// - Parameter error: The cause; nil if this side closed the stream.
    func streamDidEnd(_ error: LinkError?)
}
