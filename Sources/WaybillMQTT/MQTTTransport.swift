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
/// One transport keeps one connection, which all its providers share. It connects when it is asked to,
/// or at the first request. Letting go of the last reference closes the connection; ``shutdown()`` also
/// waits for that.
public final class MQTTTransport: Transport, ImmediateTransport {
    /// What can be spoken, with the ports of IANA.
    private static let schemes: [ServiceAddress.Scheme] = [
        .tcp("mqtt", port: 1_883), .tcp("mqtts", port: 8_883, isSecure: true),
        .http("ws", port: 80), .http("wss", port: 443, isSecure: true),
    ]

    private let engine: MQTTEngine

    /// Makes a transport; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - url: `mqtt://host` or `mqtts://host`, with the ports 1883 and 8883 unless it names another, or
    ///     `ws://host/path` or `wss://host/path`, with the ports 80 and 443; user name and password in it count
    ///     where the configuration has none.
    ///   - configuration: How the transport behaves.
    ///   - configure: Changes the configuration, as in `{ $0.memoryLimit = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
    public convenience init(
        url: URL,
        configuration: MQTTConfiguration = MQTTConfiguration(),
        configure: (inout MQTTConfiguration) -> Void = { _ in }
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

    /// Makes a transport over links, a clock and randomness of one's own.
    package init(
        url: URL,
        configuration: MQTTConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        var configuration = configuration
        let address = try ServiceAddress(url, for: "MQTT", schemes: Self.schemes)
        configuration.userName = configuration.userName ?? address.userName
        configuration.password = configuration.password ?? address.password
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
                // MQTT 5, 6: the name that the server must choose.
                subprotocols: ["mqtt"],
                units: .anywhere,
                maximumUnitSize: configuration.maximumPacketSize,
                environment: environment
            )
            return environment
        }
        engine = MQTTEngine(
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
    /// A filter that is subscribed to already is sent again for its retained messages: the new listener gets them, and
    /// what arrives from now on, and the others get no retained message twice. A shared subscription has none. With
    /// `retainAsPublished`, and for a listener that joins while there is no connection, they come only with the first
    /// subscription of a session.
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

    /// Shuts down as ``shutdown()`` does, and leaves nothing to go on with: the store is emptied, and the server, if there
    /// is a connection and it speaks MQTT 5, forgets the session.
    public func destroy() async {
        await engine.destroy()
    }
}

extension MQTTTransport: CustomReflectable {
    /// Nothing: passwords and bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
