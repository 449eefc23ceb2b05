/// An ordered, lossless stream of bytes to one peer: the boundary below which platforms differ.
///
/// TCP on Linux, Network.framework on Apple platforms, a pair in memory and a script in tests all
/// look like this. All methods may be called from any thread, ``read(into:)`` by one at a time: from within
/// ``ByteStreamReceiver/streamIsReadable()``, or to hear what the peer said before a write failed.
package protocol ByteStream: AnyObject, Sendable {
    /// Begins to tell the receiver what happens. To be called once.
    ///
    /// The stream keeps the receiver until it has told it ``ByteStreamReceiver/streamDidEnd(_:)``.
    func start(_ receiver: any ByteStreamReceiver)

    /// Hands over as many of the bytes as can be taken without waiting.
    ///
    /// - Parameter bytes: What to write.
    /// - Returns: How many were taken; when fewer than given, ``ByteStreamReceiver/streamIsWritable()``
    ///   follows, and the next write begins with those that were not.
    /// - Throws: `LinkError` when the stream is broken or closed.
    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int

    /// Reads what is there.
    ///
    /// - Parameter space: Where to put it.
    /// - Returns: What was found.
    /// - Throws: `LinkError` when the stream is broken or closed.
    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome

    /// Asks for a call of ``ByteStreamReceiver/streamShouldFlush()`` in a moment, so that what is
    /// written meanwhile leaves in one piece.
    ///
    /// - Returns: Whether the stream does that; if not, the caller flushes at once.
    func scheduleFlush() -> Bool

    /// Stops or resumes reading, which holds back the peer.
    func setReading(_ isReading: Bool)

    /// Asks for another call of ``ByteStreamReceiver/streamIsReadable()`` although nothing new may have come:
    /// a stream on top of this one has something left.
    func readAgain()

    /// Tells the peer that nothing more will be written, and goes on reading.
    func finishWriting()

    /// Closes both directions. ``ByteStreamReceiver/streamDidEnd(_:)`` follows unless it was called
    /// already. Closing twice does nothing.
    func close()

    /// Closes both directions with a reset where the stream has such a thing: the system sends nothing again that the
    /// peer has not acknowledged. ``ByteStreamReceiver/streamDidEnd(_:)`` follows as with ``close()``.
    func abandon()

    /// Asks the stream to find out by itself whether the peer is still there, since nothing above does.
    ///
    /// Does nothing where the stream has no means to.
    func keepAlive()

    /// Whether something waits to be read that the receiver has not been told of yet, the end included.
    ///
    /// False where the stream cannot tell.
    var hasInput: Bool { get }

    /// What was agreed on to secure the stream, or the one below it; nil where nothing was.
    var tls: TLSAgreement? { get }
}

extension ByteStream {
    package func abandon() { close() }

    package func keepAlive() {}

    package var hasInput: Bool { false }

    package var tls: TLSAgreement? { nil }
}

/// What a read found.
package enum ReadOutcome: Equatable, Sendable {
    /// That many bytes, at least one.
    case bytes(Int)
    /// Nothing for now.
    case nothing
    /// The peer has finished writing.
    case endOfStream
}

/// Who hears of what happens on a stream.
///
/// Calls come one at a time and in order.
package protocol ByteStreamReceiver: AnyObject, Sendable {
    /// There is something to read, possibly the end.
    func streamIsReadable()

    /// A write that was cut short can go on.
    func streamIsWritable()

    /// The moment that ``ByteStream/scheduleFlush()`` asked for has come.
    func streamShouldFlush()

    /// The stream is over; nothing follows.
    /// - Parameter error: Why, or nil when it was closed from this side.
    func streamDidEnd(_ error: LinkError?)
}
