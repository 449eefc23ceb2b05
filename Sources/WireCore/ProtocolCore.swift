/// The contract of every protocol core: bytes in, events out; commands in, bytes out.
///
/// A core is a value without socket, clock or random numbers. After each call its driver does the following, in this
/// order: it feeds the core, takes the outbound bytes, takes the events, and sets one timer.
///
/// Receiving never throws. When the peer violates the protocol, the core writes the report to the peer, emits one
/// terminal event, and ignores further input. Misuse by the caller throws from the sending methods, before anything is
/// written.
@usableFromInline
package protocol ProtocolCore: Sendable {
    /// The events for the driver.
    associatedtype Event: Sendable

    /// Bytes for the peer. The driver consumes them from the front.
    var outbound: ByteWriter { get set }

    /// The number of bytes for the peer; cheaper to read than the bytes themselves.
    var outboundByteCount: Int { get }

    /// The time at which the core needs a call of ``advance(to:)``; nil for never.
    var deadline: WireInstant? { get }

    /// Whether the core has ended: the stream is closed after the outbound bytes are written.
    var isFinished: Bool { get }

    /// Whether the peer has not answered the opening data; the stream is then aborted instead of closed.
    ///
    /// Opening data that is still in the network must not reach the peer after this side has given up.
    var isUnanswered: Bool { get }

    var hasEvents: Bool { get }

    /// The number of calls that wait for the peer's answer; with many of them, it pays to collect outbound bytes.
    var openCallCount: Int { get }

    /// Decodes and consumes the complete units at the front of the buffer.
    ///
    /// It stops when the events of this call reach a limit of ``ReceiveTurn``; ``hasMoreInput`` is then true. The
    /// events for the driver are therefore bounded, however many messages a few compressed bytes hold.
    mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant)

    /// Whether the last ``receive(_:at:)`` stopped at a limit.
    ///
    /// The driver then takes the events and calls it again before it reads more.
    var hasMoreInput: Bool { get }

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
    mutating func holdReading(_ isHeld: Bool, at now: WireInstant)

    /// Notes that outbound bytes are given to the stream.
    ///
    /// - Parameters:
    ///   - isRest: Whether an earlier write has left them; otherwise they are all of ``outbound``.
    ///   - now: The current time.
    mutating func noteGiven(isRest: Bool, at now: WireInstant)

    /// Notes that the peer's system has taken more of the bytes that waited in this one's.
    ///
    /// Told before ``advance(to:)``: a peer that takes bytes is alive, even if it has not answered yet.
    mutating func noteProgress(at now: WireInstant)

    /// Notes that the peer will send nothing more.
    mutating func receiveEndOfStream(at now: WireInstant)

    /// Notes that the stream is broken: no more data arrives, and the received data may be incomplete.
    ///
    /// It has the same effect as an orderly end, unless the protocol distinguishes the two.
    mutating func receiveLoss(at now: WireInstant)

    /// Sets the current time.
    mutating func advance(to now: WireInstant)

    /// Takes the waiting events, in order.
    mutating func takeEvents() -> [Event]
}

extension ProtocolCore {
    package var outboundByteCount: Int { outbound.count }

    package var isUnanswered: Bool { false }

    package var openCallCount: Int { 0 }

    package var hasMoreInput: Bool { false }

    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {}

    package mutating func noteGiven(isRest: Bool, at now: WireInstant) {}

    package mutating func noteProgress(at now: WireInstant) {}

    package mutating func receiveLoss(at now: WireInstant) {
        receiveEndOfStream(at: now)
    }
}

/// The limits of the events of one call of ``ProtocolCore/receive(_:at:)``.
package enum ReceiveTurn {
    /// The number of events: 4,096.
    ///
    /// A read of 64 KiB contains fewer events, except with the smallest messages.
    package static let maximumEventCount = 4_096
    /// The bytes of the events of a core that decompresses: 1 MiB, plus one message.
    package static let maximumByteCount = 1 << 20
}
