import STOMPWire
public import Waybill
package import WaybillLink
package import WaybillSession

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// STOMP 1.0 to 1.2 over TCP or WebSocket, with or without TLS, as a ``Waybill/Transport``.
///
/// One transport keeps one connection, which all its providers share. It connects with an explicit connect, or at
/// the first request. Releasing the last reference closes the connection; ``shutdown()`` also waits until it is
/// closed.
public final class STOMPTransport: Transport, ImmediateTransport, StoringTransport {
    private let engine: STOMPEngine

    /// Makes a transport.
    ///
    /// It does not connect yet.
    ///
    /// - Parameters:
    ///   - url: `stomp://host` or `stomps://host`, by default with the ports 61613 and 61614; or `ws://host/path` or
    ///     `wss://host/path`, by default with the ports 80 and 443. A user name and a password in the URL are used if
    ///     the configuration has none.
    ///   - configuration: The options of the transport.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL, `limitExceeded` if the store cannot be
    ///     read.
    public convenience init(
        url: URL,
        configuration: STOMPConfiguration = STOMPConfiguration(),
        configure: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        var configuration = configuration
        configure(&configuration)
        try self.init(url: url, configuration: configuration, environment: .system)
    }

    /// Makes a transport.
    ///
    /// It does not connect yet.
    ///
    /// - Parameters:
    ///   - url: The URL as text; see ``init(url:configuration:configure:)-(URL,_,_)``.
    ///   - configuration: The options of the transport.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL, `limitExceeded` if the store cannot be
    ///     read.
    public convenience init(
        url: String,
        configuration: STOMPConfiguration = STOMPConfiguration(),
        configure: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        let url = try ServiceAddress.url(url)
        try self.init(url: url, configuration: configuration, configure: configure)
    }

    /// Makes a transport with the given dialer, clock and random numbers.
    package init(
        url: URL,
        configuration: STOMPConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        var configuration = configuration
        let address = try ServiceAddresses.stomp.home(url)
        configuration.userName = configuration.userName ?? address.userName
        configuration.password = configuration.password ?? address.password
        let options = configuration
        let failover = try Failover(address, configuration.failover, in: environment) {
            address throws(WaybillError) in
            var environment =
                try environment.proxied(by: options.proxy)
                .secured(for: address.scheme, by: options.tls)
                .withReadTimeout(options.timeouts.silence)
            guard address.scheme.hasPath else { return environment }
            environment.dialer = WebSocketTunnel.dialer(
                to: address,
                options: options.webSocket,
                subprotocols: options.wireVersions.sorted(by: >).map(\.subprotocol),
                // CONNECTED names the version, whatever the server makes of the offer.
                requiresSubprotocol: false,
                // One frame in each message, as browser clients send them and some servers need them.
                units: .each(STOMPFrameEnd.unitLength),
                environment: environment
            )
            return environment
        }
        engine = try STOMPEngine(
            failover: failover,
            configuration: configuration,
            environment: environment
        )
    }

    package var storesSends: Bool { engine.outbox != nil }

    deinit {
        engine.abandon()
    }

    /// The states of the connection: first the current one, then each change once.
    public var states: ConnectionStates { engine.lifecycle.states.states }

    /// What waits in the transport now, and what it has seen.
    public var statistics: TransportStatistics { engine.statistics }

    /// The requests that wait for replies.
    package var pendingReplies: PendingReplies { engine.replies.pending }

    /// The events of the connection, its subscriptions and messages, and those that the providers report.
    public var events: TransportEvents { engine.events.events }

    /// Performs a request; see ``Waybill/Transport/perform(_:)`` and the mapping table.
    public func perform(_ request: Request) async throws -> Receipt {
        try await engine.perform(request)
    }

    /// Accepts a send if there is a connection.
    package func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        engine.submit(request, completion)
    }

    /// Subscribes; see ``Waybill/Transport/subscribe(_:)``.
    ///
    /// Every call makes a separate subscription with its own id, also for the same destination. Subscriptions to a
    /// topic each get every message; subscriptions to a queue share the messages.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await engine.subscribe(request).keeping(self)
    }

    /// Returns all messages that arrive from now on, for any subscription; see ``Waybill/Transport/allMessages(_:)``.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try engine.catchAll.listen(policy).keeping(self)
    }

    /// Closes the connection until ``resume()``, such as while the app is in the background.
    ///
    /// Waits until it is closed.
    ///
    /// Subscriptions and pending requests stay, as after the loss of a connection. Requests during the pause wait for
    /// its end. An explicit `connect` also ends the pause.
    public func pause() async {
        await engine.lifecycle.pause()
    }

    /// Ends a pause.
    ///
    /// A connection that it has closed is made again at once.
    public func resume() {
        engine.lifecycle.resume()
    }

    /// Disconnects and waits until the connection is closed.
    ///
    /// Pending requests fail with `shutDown`.
    public func shutdown() async {
        await engine.shutdown()
    }
}

extension STOMPTransport: CustomReflectable {
    /// An empty mirror, because passwords and bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
