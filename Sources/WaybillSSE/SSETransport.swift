public import Waybill
package import WaybillLink
import WaybillSession

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Server-sent events (HTML Standard, 9.2) as a ``Waybill/Transport``.
///
/// Every subscription is an event stream on a connection of its own. When the stream ends, it is requested again from
/// the last event on. It is closed when its messages are released. A `send` is an HTTP request, whose response is the
/// reply.
public final class SSETransport: Transport, StoringTransport {
    private let engine: SSEEngine

    /// Makes a transport; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - url: `http://host:port/path` or `https`, to which topics are appended. Its user name and password are used
    ///     if the configuration has none.
    ///   - configuration: The configuration.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL, `limitExceeded` if the store cannot be
    ///     read.
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
    ///   - url: The URL as text; see ``init(url:configuration:configure:)-(URL,_,_)``.
    ///   - configuration: The configuration.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL, `limitExceeded` if the store cannot be
    ///     read.
    public convenience init(
        url: String,
        configuration: SSEConfiguration = SSEConfiguration(),
        configure: (inout SSEConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        let url = try ServiceAddress.url(url)
        try self.init(url: url, configuration: configuration, configure: configure)
    }

    /// Makes a transport in an environment.
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
        let store = configuration.store
        let left = try LeftMessages.reading { try store?.messages() ?? [] }
        engine = SSEEngine(
            base: base,
            configuration: configuration,
            links: links,
            stored: store.map { ($0, left) }
        )
    }

    package var storesSends: Bool { engine.outbox != nil }

    deinit {
        engine.abandon()
    }

    /// The state of all streams together.
    ///
    /// It is connected while a stream is open, else connecting while a stream is requested, else waiting while a stream
    /// waits for its next attempt. Without streams it is disconnected. While one stream is open, the attempts and waits
    /// of the others are not reported.
    public var states: ConnectionStates { engine.states.source.states }

    /// True: each subscription is a stream of its own.
    public var isConnectionless: Bool { true }

    /// The events of each stream, and of each connection for sends; see ``Waybill/TransportEvent``.
    public var events: TransportEvents { engine.events.events }

    /// What waits in the transport now, and what it has seen.
    public var statistics: TransportStatistics { engine.statistics }

    /// Performs a request; see ``Waybill/Transport/perform(_:)`` and the mapping table.
    public func perform(_ request: Request) async throws -> Receipt {
        try await engine.perform(request)
    }

    /// Requests an event stream; see ``Waybill/Transport/subscribe(_:)``.
    ///
    /// Returns when the stream is open. From then on the stream is requested again after each end, and the messages
    /// continue. Each message has the last event ID as its ``Waybill/Message/id``.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await engine.subscribe(request).keeping(self)
    }

    /// The openings and comments of all streams from now on.
    ///
    /// The comments are those of connections that begin after this call. Each call adds an observer, which ends with
    /// the transport and does not keep it alive. Of the stream events that wait, the newest are kept: 1 MiB of them at
    /// the most, and all observers together three quarters of the memory limit, but the last one of each in any case.
    ///
    /// - Parameter count: The number of stream events that may wait, from 1 to 1,024.
    /// - Returns: The stream events, in order for each stream.
    public func streamEvents(bufferingNewest count: Int = 1_024) -> AsyncStream<StreamEvent> {
        engine.observers.observe(keeping: count)
    }

    /// Closes the connections of a topic's streams, and requests each stream again from its last event on.
    ///
    /// For an app that expects another response of the server, such as after a change of the token. The messages
    /// continue. A stream that waits for its next attempt makes the attempt now.
    ///
    /// - Parameter topic: The topic of the subscription.
    /// - Returns: The number of streams of the topic.
    @discardableResult
    public func restart(topic: String?) -> Int {
        engine.restart(topic: topic)
    }

    /// Every message that arrives from now on, of any subscription; see ``Waybill/Transport/allMessages(_:)``.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try engine.catchAll.listen(policy).keeping(self)
    }

    /// Closes the streams until ``resume()``, for example in the background; the subscriptions stay.
    ///
    /// A subscription that begins during the pause waits for ``resume()``, at most for the connect timeout. Sends are
    /// not paused.
    public func pause() async {
        engine.heed(.pause)
        await engine.flush()
    }

    /// Ends a pause: the streams are requested again at once, from the last event on.
    public func resume() {
        engine.heed(.resume)
    }

    /// Closes all streams and connections; pending calls fail with `shutDown`.
    public func shutdown() async {
        await engine.shutdown()
    }
}

extension SSETransport: CustomReflectable {
    /// Nothing: passwords and bodies are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
