package import WireCore

/// What a stream adds to the bytes of the stream below it, as a value: TLS, a proxy's tunnel or a time limit.
///
/// ``LayerStream`` is its shell. The shell calls it under a lock, reads and writes, and passes all else on.
package protocol StreamLayer: Sendable {
    /// Whether data passes unchanged once the layer is open.
    static var isTransparent: Bool { get }

    /// Whether ``noteReading(_:at:)`` and ``noteRead(at:)`` are called.
    static var isTimed: Bool { get }

    /// The TLS properties that the layer adds; nil for none.
    var tls: TLSAgreement? { get }

    // MARK: Opening

    /// Continues the handshake with received bytes, and consumes those that belong to it.
    ///
    /// - Parameter input: Received bytes; may be empty.
    /// - Returns: The outcome; nil if more bytes are needed.
    mutating func open(_ input: inout ReceiveBuffer) -> Result<Void, LinkError>?

    /// The error that an end of the stream below means.
    ///
    /// - Parameter error: The error of the stream below; nil after the end of its data.
    /// - Returns: The error.
    mutating func cause(of error: LinkError?) -> LinkError

    /// The time at which ``advance(to:)`` is to be called; nil for never.
    var deadline: WireInstant? { get }

    /// Notes the time.
    ///
    /// - Returns: The error that ends the stream, if its time is over.
    mutating func advance(to now: WireInstant) -> LinkError?

    /// Notes that reading was stopped or resumed.
    mutating func noteReading(_ isReading: Bool, at now: WireInstant)

    /// Notes that data was read.
    mutating func noteRead(at now: WireInstant)

    // MARK: Data

    /// Decodes as much of the input as fits into the space, and consumes it.
    mutating func decode(
        _ input: inout ReceiveBuffer,
        into space: UnsafeMutableRawBufferPointer
    ) -> (outcome: LayerOutcome, produced: Int)

    /// Whether decoded data waits within the layer.
    var holdsData: Bool { get }

    /// Encodes bytes until a number of outbound bytes waits.
    mutating func encode(
        _ bytes: UnsafeRawBufferPointer,
        limit: Int
    ) -> (outcome: LayerOutcome, consumed: Int)

    /// Encodes the end of the data.
    mutating func finish()

    var hasOutbound: Bool { get }

    /// Calls `body` with the outbound bytes; on a copy of the layer, and without a lock.
    func withOutbound<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int

    /// Notes that a number of outbound bytes were sent.
    mutating func noteSent(_ count: Int)
}

/// The state of a layer after a step.
package enum LayerOutcome: Sendable {
    /// Complete, or as far as input and space allowed.
    case fine
    /// The peer has ended the data.
    case closed
    case failed(LinkError)
}

/// A layer without a handshake, through which data passes unchanged.
extension StreamLayer {
    package static var isTimed: Bool { false }
    package var tls: TLSAgreement? { nil }
    package mutating func open(_ input: inout ReceiveBuffer) -> Result<Void, LinkError>? {
        .success(())
    }
    package mutating func cause(of error: LinkError?) -> LinkError { error ?? .endOfStream }
    package mutating func noteReading(_ isReading: Bool, at now: WireInstant) {}
    package mutating func noteRead(at now: WireInstant) {}
    package mutating func decode(
        _ input: inout ReceiveBuffer,
        into space: UnsafeMutableRawBufferPointer
    ) -> (outcome: LayerOutcome, produced: Int) {
        let count = min(input.count, space.count)
        input.withUnsafeBytes { space.copyMemory(from: .init(rebasing: $0[..<count])) }
        input.consume(count)
        return (.fine, count)
    }
    package var holdsData: Bool { false }
    package mutating func encode(
        _ bytes: UnsafeRawBufferPointer,
        limit: Int
    ) -> (outcome: LayerOutcome, consumed: Int) {
        (.fine, 0)
    }
    package mutating func finish() {}
    package var hasOutbound: Bool { false }
    package func withOutbound<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        0
    }
    package mutating func noteSent(_ count: Int) {}
}
