/// The contract of every protocol core: bytes in, events out; commands in, bytes out.
///
/// A core is a value without socket, clock or dice. Whoever drives it feeds it, takes the outbound
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

    /// Whether events wait.
    var hasEvents: Bool { get }

    /// How many calls wait for the peer's answer: with many, what is written is worth gathering.
    var openCallCount: Int { get }

    /// Decodes all that is complete at the front of the buffer and consumes it.
    mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant)

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

    package var openCallCount: Int { 0 }

    package mutating func receiveLoss(at now: WireInstant) {
        receiveEndOfStream(at: now)
    }
}
