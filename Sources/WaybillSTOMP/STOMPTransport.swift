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
/// One transport keeps one connection, which all its providers share. It connects when it is asked to,
/// or at the first request. Letting go of the last reference closes the connection; ``shutdown()`` also
/// waits for that.
public final class STOMPTransport: Transport, ImmediateTransport {
    private static let schemes: [ServiceAddress.Scheme] = [
        .tcp("stomp", port: 61_613), .tcp("stomps", port: 61_614, isSecure: true),
        .http("ws", port: 80), .http("wss", port: 443, isSecure: true),
    ]

    private let engine: STOMPEngine

    /// Makes a transport; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - url: `stomp://host` or `stomps://host`, with the ports 61613 and 61614 unless it names another, or
    ///     `ws://host/path` or `wss://host/path`, with the ports 80 and 443; user name and password in it count
    ///     where the configuration has none.
    ///   - configuration: How the transport behaves.
    ///   - configure: Changes the configuration, as in `{ $0.memoryLimit = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
    public convenience init(
        url: URL,
        configuration: STOMPConfiguration = STOMPConfiguration(),
        configure: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        var configuration = configuration
        configure(&configuration)
        try self.init(url: url, configuration: configuration, environment: .system)
    }

    /// Makes a transport; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - url: As text; see ``init(url:configuration:configure:)-(URL,_,_)``.
    ///   - configuration: How the transport behaves.
    ///   - configure: Changes the configuration, as in `{ $0.memoryLimit = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
    public convenience init(
        url: String,
        configuration: STOMPConfiguration = STOMPConfiguration(),
        configure: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        var configuration = configuration
        configure(&configuration)
        try self.init(
            url: ServiceAddress.url(url),
            configuration: configuration,
            environment: .system
        )
    }

    /// Makes a transport over links, a clock and randomness of one's own.
    package init(
        url: URL,
        configuration: STOMPConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        var configuration = configuration
        let address = try ServiceAddress(url, for: "STOMP", schemes: Self.schemes)
        configuration.login = configuration.login ?? address.userName
        configuration.passcode = configuration.passcode ?? address.password
        let failover = try Failover(address, configuration.failover, in: environment) {
            address throws(WaybillError) in
            var environment =
                try environment.proxied(by: configuration.proxy)
                .secured(for: address.scheme, by: configuration.tls)
                .losingPatience(after: configuration.readTimeout)
            guard address.scheme.hasPath else { return environment }
            environment.dialer = WebSocketTunnel.dialer(
                to: address,
                options: configuration.webSocket,
                subprotocols: configuration.wireVersions.sorted(by: >).map(\.subprotocol),
                // One frame in each message, as clients in browsers do and some servers need.
                units: .each(STOMPFrameEnd.unitLength),
                maximumUnitSize: configuration.maximumBodySize,
                environment: environment
            )
            return environment
        }
        engine = STOMPEngine(
            failover: failover,
            configuration: configuration,
            environment: environment
        )
    }

    deinit {
        engine.abandon()
    }

    /// The state of the connection: the present one first, then each change once.
    public var states: ConnectionStates { engine.states }

    /// Who waits for answers.
    package var pendingReplies: PendingReplies { engine.replies.credentials }

    /// What happens to the connection, its subscriptions and messages; and what the providers that share it report.
    public var events: TransportEvents { engine.events.events }

    /// Does what a request says; see ``Waybill/Transport/perform(_:)`` and the mapping table.
    public func perform(_ request: Request) async throws -> Receipt {
        try await engine.perform(request)
    }

    /// Takes a send over, if there is a connection.
    package func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        engine.submit(request, completion)
    }

    /// Subscribes; see ``Waybill/Transport/subscribe(_:)``.
    ///
    /// Every call makes a subscription of its own, with an id of its own, also to the same destination: for
    /// a topic each gets every message, for a queue they share them.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await engine.subscribe(request).keeping(self)
    }

    /// Every message that comes from now on, whoever has subscribed to it; see ``Waybill/Transport/allMessages(_:)``.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try engine.catchAll.listen(policy).keeping(self)
    }

    /// Closes the connection for a while, as in the background, and waits until that is done.
    ///
    /// Streams live on, and what is under way waits, as when a connection is lost. Whoever sends
    /// meanwhile waits for it, too; an explicit `connect` ends the pause.
    public func pause() async {
        await engine.pause()
    }

    /// Ends a pause: the connection that it has closed is made again, at once.
    public func resume() {
        engine.resume()
    }

    /// Disconnects and waits until the connection is closed; calls under way fail with `shutDown`.
    public func shutdown() async {
        await engine.shutdown()
    }
}

extension STOMPTransport: CustomReflectable {
    /// Nothing: passwords and bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
