/// The contract of every protocol core: bytes in, events out; commands in, bytes out.
///
/// A core is a value without socket, clock or dice. Its driver feeds it, takes the outbound
/// bytes, takes the events and re-arms one timer, in that order, after each call.
///
/// Receiving never throws: when the peer breaks the protocol, the core queues what the peer must be
/// told, emits one terminal event and from then on ignores what comes. Misuse by the caller throws
/// from the sending methods, before anything is written.
@usableFromInline
package protocol ProtocolCore: Sendable {
    /// What the core tells its driver.
    associatedtype Event: Sendable

    /// Bytes for the peer. The driver consumes them from the front.
    var outbound: ByteWriter { get set }

    /// How many bytes wait for the peer: asked more often than the bytes themselves, and cheaper.
    var outboundByteCount: Int { get }

    /// When the core wants ``advance(to:)`` to be called next; nil for never.
    var deadline: WireInstant? { get }

    /// Whether the core is done: once the outbound bytes are written, the stream is to be closed.
    var isFinished: Bool { get }

    /// Whether the peer has not answered the first words: the stream is then abandoned instead of closed.
    ///
    /// First words that the network still holds must not reach the peer when this side has given up.
    var isUnanswered: Bool { get }

    /// Whether events wait.
    var hasEvents: Bool { get }

    /// How many calls wait for the peer's answer: with many, what is written is worth gathering.
    var openCallCount: Int { get }

    /// Decodes what is complete at the front of the buffer and consumes it.
    ///
    /// Stops when the events of this call reach a limit of ``ReceiveTurn``, and then ``hasMoreInput`` is true. So what
    /// waits for the driver is bounded, however many messages a few compressed bytes hold.
    mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant)

    /// Whether the last ``receive(_:at:)`` has stopped at a limit: the driver takes the events and calls it again before
    /// it reads more.
    var hasMoreInput: Bool { get }

    /// Tells the core that its driver has stopped reading, or goes on: silence meanwhile is not the peer's.
    mutating func holdReading(_ isHeld: Bool, at now: WireInstant)

    /// Tells the core that the peer will send nothing more.
    mutating func receiveEndOfStream(at now: WireInstant)

    /// Tells the core that the stream is broken: nothing more comes, and what came may not be all.
    ///
    /// The same as an orderly end, unless the protocol tells them apart.
    mutating func receiveLoss(at now: WireInstant)

    /// Tells the core the time.
    mutating func advance(to now: WireInstant)

    /// Takes the events that wait, in order.
    mutating func takeEvents() -> [Event]
}

extension ProtocolCore {
    package var outboundByteCount: Int { outbound.count }

    package var isUnanswered: Bool { false }

    package var openCallCount: Int { 0 }

    package var hasMoreInput: Bool { false }

    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {}

    package mutating func receiveLoss(at now: WireInstant) {
        receiveEndOfStream(at: now)
    }
}

/// How many events one call of ``ProtocolCore/receive(_:at:)`` may bring.
package enum ReceiveTurn {
    /// The number of events: 4,096.
    ///
    /// More than a read of 64 KiB holds of all but the smallest messages.
    package static let maximumEventCount = 4_096
    /// Their bytes, where a core decompresses: 1 MiB, and one message more.
    package static let maximumByteCount = 1 << 20
}
