/// A connection to a service, for requests and messages: MQTT, STOMP, server-sent events, or a mock.
///
/// Every call ends exactly once: answered, failed, timed out or cancelled. A transport throws ``WaybillError``, or
/// `CancellationError` when the calling task was cancelled, and nothing else. It refuses requests that it does not
/// support with `unsupported`, before any input or output. It refuses invalid requests with `invalidEntry`.
public protocol Transport: Sendable {
    /// Performs a request of any command but `subscribe`.
    ///
    /// - Parameter request: The request, after the interceptors.
    /// - Returns: The receipt, after the peer has confirmed the request, as far as the protocol confirms such a
    ///   command.
    /// - Throws: `WaybillError`: `notConnected`, `connectionLost`, `connectionRefused`,
    ///   `unauthorized`, `rejected`, `timedOut`, `unsupported`, `invalidEntry`, `limitExceeded`,
    ///   `tls`, `shutDown`, `protocolViolation`; or `CancellationError`.
    func perform(_ request: Request) async throws -> Receipt

    /// Subscribes.
    ///
    /// - Parameter request: A request with the command `subscribe`.
    /// - Returns: The messages, from the moment of the peer's confirmation. The subscription ends when the last copy of
    ///   the sequence is gone, or when it is cancelled.
    /// - Throws: As ``perform(_:)``.
    func subscribe(_ request: Request) async throws -> Messages<Message>

    /// The state of the connection: the present state first, then each change once.
    var states: ConnectionStates { get }

    /// The events of connections, subscriptions, messages and drops; by default none.
    ///
    /// Return the events of one ``TransportEventSource`` that the transport stores. Its providers then report retries
    /// and tokens to the same source.
    var events: TransportEvents { get }

    /// Every message that arrives at the transport from now on; by default `unsupported`.
    ///
    /// The sequence gets copies: it acknowledges nothing and never stops reading from the peer. It outlives
    /// connections, and ends when the transport is shut down.
    ///
    /// - Parameter policy: What happens when messages arrive faster than the consumer takes them; `holdBack` is
    ///   `unsupported`.
    /// - Returns: The messages, also those without a subscription.
    /// - Throws: `WaybillError`: `unsupported`, `shutDown`.
    func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message>

    /// Whether `connect` opens no connection because each subscription opens its own; false by default.
    var isConnectionless: Bool { get }

    /// What waits in the transport now, and what it has seen; by default a snapshot of nothing.
    var statistics: TransportStatistics { get }

    /// Closes connections until ``resume()``, for example in the background; by default nothing happens.
    ///
    /// Subscriptions stay, and pending calls wait for ``resume()``, as after a lost connection.
    func pause() async

    /// Ends a pause: connections that it closed are opened again at once; by default nothing happens.
    func resume()

    /// Shuts down and removes all stored state; by default it only shuts down.
    ///
    /// Local storage is cleared. If the protocol allows it, the server is told to discard its session.
    func destroy() async

    /// Shuts down: pending calls fail with `shutDown`, messages end, and all resources are released.
    ///
    /// It returns when that is complete. A second call does nothing more.
    func shutdown() async
}

extension Transport {
    /// No events.
    public var events: TransportEvents { TransportEvents() }

    /// Throws `unsupported`.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        throw WaybillError(.unsupported, "this transport shows its messages to subscribers alone")
    }

    /// False.
    public var isConnectionless: Bool { false }

    /// A snapshot of nothing.
    public var statistics: TransportStatistics { TransportStatistics() }

    /// Does nothing.
    public func pause() async {}

    /// Does nothing.
    public func resume() {}

    /// Shuts down.
    public func destroy() async { await shutdown() }
}
