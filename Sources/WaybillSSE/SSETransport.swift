public import Waybill
package import WaybillLink
import WaybillSession

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Server-sent events (HTML Standard, 9.2) as a ``Waybill/Transport``: streams come in, requests go out.
///
/// Every subscription is a stream on a connection of its own, asked for again when it ends, from the last
/// event on. A `send` is an HTTP request, whose response is the reply. Letting go of a stream closes it.
public final class SSETransport: Transport {
    private let engine: SSEEngine

    /// Makes a transport; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - url: `http://host:port/path` or `https`, before which topics are put; user name and password in it count
    ///     where the configuration has none.
    ///   - configuration: How the transport behaves.
    ///   - configure: Changes the configuration, as in `{ $0.memoryLimit = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
    public convenience init(
        url: URL,
        configuration: SSEConfiguration = SSEConfiguration(),
        configure: (inout SSEConfiguration) -> Void = { _ in }
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
        configuration: SSEConfiguration = SSEConfiguration(),
        configure: (inout SSEConfiguration) -> Void = { _ in }
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
        configuration: SSEConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        let base = try HTTPTarget(url)
        var configuration = configuration
        configuration.userName = configuration.userName ?? base.address.userName
        configuration.password = configuration.password ?? base.address.password
        let links = try HTTPLinks(environment, configuration, base: base)
        engine = SSEEngine(base: base, configuration: configuration, links: links)
    }

    deinit {
        engine.abandon()
    }

    /// The state of all streams as one: connected while one is open, else connecting while one is asked for, else waiting for
    /// the next attempt.
    ///
    /// An open stream hides what becomes of the others. When it ends while another one is asked for, the state goes from
    /// connected to connecting, and it goes from one attempt or wait to that of another stream. Without streams it is
    /// disconnected.
    public var states: ConnectionStates { engine.states.source.states }

    /// True: each subscription is a stream of its own.
    public var isConnectionless: Bool { true }

    /// What happens to each stream, and to each connection for sends; see ``Waybill/TransportEvent``.
    public var events: TransportEvents { engine.events.events }

    /// Does what a request says; see ``Waybill/Transport/perform(_:)`` and the mapping table.
    public func perform(_ request: Request) async throws -> Receipt {
        try await engine.perform(request)
    }

    /// Asks for a stream; see ``Waybill/Transport/subscribe(_:)``.
    ///
    /// Returns when the server has begun to stream. From then on the stream is asked for again whenever it
    /// ends, and the messages go on; each has the last event ID as its ``Waybill/Message/id``.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await engine.subscribe(request).keeping(self)
    }

    /// The heads of responses, and comments, of all streams from now on.
    ///
    /// The comments are those of connections that begin after this call. Each call is an observer of its own, which
    /// ends with the transport. It does not keep the transport alive.
    ///
    /// - Parameter count: How many of them may wait, at least 1; the oldest ones make room.
    /// - Returns: What servers say beside their events, in order for each stream.
    public func streamEvents(bufferingNewest count: Int = 1_024) -> AsyncStream<StreamEvent> {
        engine.observers.observe(keeping: count)
    }

    /// Closes the connections of the streams of a topic, and asks for each stream again at once, from its last event
    /// on.
    ///
    /// For an app that knows that the server will answer differently, as after a change of a token. Those who listen
    /// notice nothing. A stream that waits for its next attempt makes it now.
    ///
    /// - Parameter topic: The topic of the subscription.
    /// - Returns: How many streams the topic has.
    @discardableResult
    public func restart(topic: String?) -> Int {
        engine.restart(topic: topic)
    }

    /// Every message that comes from now on, whoever has subscribed to it; see ``Waybill/Transport/allMessages(_:)``.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try engine.catchAll.listen(policy).keeping(self)
    }

    /// Closes the streams for a while, as in the background; those who listen notice nothing.
    ///
    /// A stream that is asked for meanwhile waits for ``resume()``, for the connect timeout at the most. Sends are made
    /// all the same.
    public func pause() async {
        engine.heed(.pause)
    }

    /// Ends a pause: the streams are asked for again, at once, from the last event on.
    public func resume() {
        engine.heed(.resume)
    }

    /// Closes all streams and connections; calls under way fail with `shutDown`.
    public func shutdown() async {
        await engine.shutdown()
    }
}

extension SSETransport: CustomReflectable {
    /// Nothing: passwords and bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
