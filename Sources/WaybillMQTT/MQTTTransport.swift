import MQTTWire
public import Waybill
package import WaybillLink
package import WaybillSession
import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// MQTT 3.1.1 and 5 over TCP or WebSocket, with or without TLS, as a ``Waybill/Transport``.
///
/// One transport keeps one connection, which all its providers share. It connects with an explicit connect, or at
/// the first request. Releasing the last reference closes the connection; ``shutdown()`` also waits until it is
/// closed.
public final class MQTTTransport: Transport, ImmediateTransport, StoringTransport {
    private let engine: MQTTEngine

    /// Makes a transport.
    ///
    /// It does not connect yet.
    ///
    /// - Parameters:
    ///   - url: `mqtt://host` or `mqtts://host`, by default with the ports 1883 and 8883; or `ws://host/path` or
    ///     `wss://host/path`, by default with the ports 80 and 443. A user name and a password in the URL are used if
    ///     the configuration has none.
    ///   - configuration: The options of the transport.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL, `limitExceeded` for a store that
    ///     cannot be read, with the store's error as `underlying`.
    public convenience init(
        url: URL,
        configuration: MQTTConfiguration = MQTTConfiguration(),
        configure: (inout MQTTConfiguration) -> Void = { _ in }
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
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL, `limitExceeded` for a store that
    ///     cannot be read, with the store's error as `underlying`.
    public convenience init(
        url: String,
        configuration: MQTTConfiguration = MQTTConfiguration(),
        configure: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        var configuration = configuration
        configure(&configuration)
        try self.init(
            url: ServiceAddress.url(url),
            configuration: configuration,
            environment: .system
        )
    }

    /// Makes a transport with the given dialer, clock and random numbers.
    package init(
        url: URL,
        configuration: MQTTConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        var configuration = configuration
        let address = try ServiceAddresses.mqtt.home(url)
        configuration.userName = configuration.userName ?? address.userName
        configuration.password = configuration.password ?? address.password
        let shared = Shared(configuration)
        let failover = try Failover(
            address,
            configuration.failover,
            in: environment,
            maximumHops: { address in
                shared.value.redirects.hops(
                    isSecure: address.scheme.isSecure,
                    shared.value.tls
                )
            }
        ) { address throws(WaybillError) in
            let options = shared.value
            var environment =
                try environment.proxied(by: options.proxy)
                .secured(for: address.scheme, by: options.tls)
                .withReadTimeout(options.timeouts.silence)
            guard address.scheme.hasPath else { return environment }
            environment.dialer = WebSocketTunnel.dialer(
                to: address,
                options: options.webSocket,
                // The subprotocol that the server has to choose (MQTT 5, 6).
                subprotocols: ["mqtt"],
                units: .anywhere,
                environment: environment
            )
            return environment
        }
        engine = try MQTTEngine(
            failover: failover,
            configuration: shared,
            environment: environment
        )
    }

    deinit {
        engine.abandon()
    }

    /// The states of the connection: first the current one, then each change once.
    public var states: ConnectionStates { engine.states }

    /// What the server of the current connection states of it and of its limits (MQTT 5, 3.2.2.3).
    ///
    /// Nil without a connection, and in MQTT 3.1.1. ``Waybill/Receipt/connack`` of `connect` has the same.
    public var connack: MQTTConnack? { engine.connack }

    /// What ``AdaptiveKeepAlive`` has learned so far, for the app to store; empty without that option.
    public var learnedKeepAlive: LearnedKeepAlive { engine.learnedKeepAlive }

    /// The requests that wait for replies.
    package var pendingReplies: PendingReplies { engine.sender.replies.pending }

    /// The events of the connection, its subscriptions and messages, and those that the providers report.
    public var events: TransportEvents { engine.events.events }

    /// What waits in the transport now, and what it has seen.
    public var statistics: TransportStatistics { engine.statistics }

    /// Performs a request; see ``Waybill/Transport/perform(_:)`` and the mapping table.
    public func perform(_ request: Request) async throws -> Receipt {
        try await engine.perform(request)
    }

    package var storesSends: Bool { engine.sender.outbox != nil }

    /// Accepts a send if there is a connection.
    package func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        engine.sender.submit(request, completion)
    }

    /// Subscribes; see ``Waybill/Transport/subscribe(_:)``.
    ///
    /// A SUBSCRIBE for a filter that has a subscription is sent again to get the retained messages. The new listener
    /// gets them and all later messages. The other listeners get no retained message twice. A shared subscription has
    /// no retained messages. With `retainAsPublished`, and for a listener that joins while there is no connection,
    /// retained messages come only with the first subscription of a session.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await engine.subscribe(request).keeping(self)
    }

    /// Returns all messages that arrive from now on, for any subscription; see ``Waybill/Transport/allMessages(_:)``.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try engine.catchAll.listen(policy).keeping(self)
    }

    /// Authenticates the open connection anew, such as before a token expires (MQTT 5, 4.12.1).
    ///
    /// A new exchange of ``MQTTConfiguration/authenticator`` takes place while messages flow. If it fails, or takes
    /// longer than ``MQTTConfiguration/Timeouts/confirmation``, the connection is closed. The next connection
    /// authenticates itself. If the task is cancelled after the exchange has begun, the exchange continues without the
    /// caller.
    ///
    /// - Throws: `unsupported` with MQTT 3.1.1 and without an authenticator; `notConnected`; `rejected` while another
    ///   re-authentication is under way; `unauthorized` if the server refuses the client, or if the server was not verified;
    ///   `timedOut`; `interceptorFailed` and other errors of the authenticator; `connectionLost`; `shutDown`; or
    ///   `CancellationError`.
    public func reauthenticate() async throws {
        try await engine.connector.reauthenticate()
    }

    /// Closes the connection until ``resume()``, such as while the app is in the background.
    ///
    /// Waits until it is closed.
    ///
    /// Subscriptions and pending requests stay, as after the loss of a connection. Requests during the pause wait for
    /// its end. An explicit `connect` also ends the pause.
    public func pause() async {
        await engine.pause()
    }

    /// Ends a pause.
    ///
    /// A connection that it has closed is made again at once.
    public func resume() {
        engine.resume()
    }

    /// Disconnects and waits until the connection is closed.
    ///
    /// Pending requests fail with `shutDown`.
    public func shutdown() async {
        await engine.shutdown()
    }

    /// Shuts down as ``shutdown()`` does, and discards the session.
    ///
    /// The store is emptied; one that takes longer than ``MQTTConfiguration/Timeouts/close`` goes on after this call.
    /// With MQTT 5 and an open connection, the server is told to discard its session, too.
    public func destroy() async {
        await engine.destroy()
    }
}

extension MQTTTransport: CustomReflectable {
    /// An empty mirror, because passwords and bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
