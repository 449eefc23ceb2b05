/// Carries requests to a service and messages back: MQTT, STOMP, server-sent events, or a mock.
///
/// Every call ends just once: answered, failed, timed out or cancelled. A transport throws
/// ``WaybillError``, or `CancellationError` when the calling task was cancelled, and nothing else.
/// What it cannot do it refuses with `unsupported` before any input or output; what is not a request it
/// could send, with `invalidEntry`.
public protocol Transport: Sendable {
    /// Does what a request says: every command but `subscribe`.
    ///
    /// - Parameter request: The request, as the last interceptor left it.
    /// - Returns: When the peer has confirmed it, as far as the protocol confirms such a command.
    /// - Throws: `WaybillError`: `notConnected`, `connectionLost`, `connectionRefused`,
    ///   `unauthorized`, `rejected`, `timedOut`, `unsupported`, `invalidEntry`, `limitExceeded`,
    ///   `tls`, `shutDown`, `protocolViolation`; or `CancellationError`.
    func perform(_ request: Request) async throws -> Receipt

    /// Subscribes.
    ///
    /// - Parameter request: A request with the command `subscribe`.
    /// - Returns: The messages, from the moment the peer has confirmed the subscription. It ends when
    ///   the last copy of the sequence is gone, or is cancelled.
    /// - Throws: As ``perform(_:)``.
    func subscribe(_ request: Request) async throws -> Messages<Message>

    /// The state of the connection: the present one first, then each change once.
    var states: ConnectionStates { get }

    /// What happens: connections, subscriptions, messages, drops; by default nothing is reported.
    ///
    /// Those of a ``TransportEventSource`` that the transport keeps: its provider then reports there, too.
    var events: TransportEvents { get }

    /// Every message that comes to the transport from now on, whoever has subscribed to it; by default `unsupported`.
    ///
    /// A copy for those who look on: they acknowledge nothing and hold nobody up. It outlives connections, and ends
    /// when the transport is shut down.
    ///
    /// - Parameter policy: What happens when messages come faster than they are taken; holding back is `unsupported`.
    /// - Returns: The messages, also those that nobody has subscribed to.
    /// - Throws: `WaybillError`: `unsupported`, `shutDown`.
    func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message>

    /// Whether there is no connection that `connect` opens, since each subscription opens its own; false by default.
    var isConnectionless: Bool { get }

    /// Closes connections for a while, as in the background; by default nothing happens.
    ///
    /// Streams live on, and what is under way waits for ``resume()``, as when a connection is lost.
    func pause() async

    /// Ends a pause: what it has closed is connected again, at once; by default nothing happens.
    func resume()

    /// Ends everything as ``shutdown()`` does, and leaves nothing behind to go on with: what is stored here is gone, and a
    /// server that keeps the session is told to forget it where the protocol can say so. By default it shuts down.
    func destroy() async

    /// Ends everything: calls under way fail with `shutDown`, streams end, nothing stays behind.
    ///
    /// Returns when that is so. Calling it twice does nothing more.
    func shutdown() async
}

extension Transport {
    /// None.
    public var events: TransportEvents { TransportEvents() }

    /// Refuses.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        throw WaybillError(.unsupported, "this transport shows its messages to subscribers alone")
    }

    /// False.
    public var isConnectionless: Bool { false }

    /// Does nothing.
    public func pause() async {}

    /// Does nothing.
    public func resume() {}

    /// Shuts down.
    public func destroy() async { await shutdown() }
}
