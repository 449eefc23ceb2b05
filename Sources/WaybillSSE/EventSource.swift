public import Dispatch
import HTTPWire
public import Waybill
package import WaybillLink
import WaybillSession
import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An event stream with handlers, after the web's `EventSource` (HTML Standard, 9.2.2).
///
/// A thin layer over ``SSETransport``, for apps that are written for the web's interface. Handlers run on threads of
/// the package, one at a time and in order. A slow handler stops the reading from the server. After ``disconnect()``
/// has returned, no handler is called, except one that was already running. ``events()`` gives the events as an
/// asynchronous sequence, beside the handlers.
///
/// The connection is closed when the source is released. The source keeps its handlers, so a handler has to refer to
/// the source weakly.
public final class EventSource: Sendable {
    /// Names a listener, to remove it.
    public struct ListenerToken: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    private typealias EventHandler = @Sendable (Event) -> Void

    private struct Listener: Sendable {
        /// Calls the handler; where it runs on a queue, the closure says there whether it is still wanted.
        typealias Call = @Sendable (Event, @escaping @Sendable () -> Bool) async -> Void

        let token: ListenerToken
        let type: String
        let call: Call
    }

    private struct State: Sendable {
        var readyState = ReadyState.closed
        var lastEventID: String = ""
        var onOpen: (@Sendable () -> Void)?
        var onResponse: (@Sendable (EventStreamResponse) -> Void)?
        var onMessage: EventHandler?
        var onEvent: EventHandler?
        var onComment: (@Sendable (String) -> Void)?
        var onComplete: (@Sendable (Completion) -> Void)?
        var listeners: [Listener] = []
        var lastToken: UInt64 = 0
        /// The sequences of events.
        var feeds: [(number: UInt64, feed: EventFeed)] = []
        var lastFeed: UInt64 = 0
        /// The reconnection time that the server has set for the present stream; nil before.
        var serverTime: Duration?
        /// The stream that counts; nil when none does.
        var stream: Stream?
        var lastNumber: UInt64 = 0
        /// Calls the handlers, and closes the connection after them.
        var task: Task<Void, Never>?

        mutating func takeFeeds() -> [EventFeed] {
            defer { feeds = [] }
            return feeds.map(\.feed)
        }
    }

    /// The stream that a call of `connect` has asked for.
    private struct Stream: Sendable {
        let number: UInt64
        var messages: Messages<Message>?
        /// Asks for the stream of `messages`.
        var engine: SSEEngine?
    }

    /// Where the stream is.
    public let url: URL
    private let base: HTTPTarget
    /// What is asked for at each attempt, but for the last event ID.
    private let request: Request
    private let configuration: SSEConfiguration
    private let links: HTTPLinks
    private let state = Locked(State())

    /// Makes a source; nothing is connected before ``connect(lastEventID:)``.
    ///
    /// - Parameters:
    ///   - url: `http://host:port/path`.
    ///   - method: The HTTP method; nil for `GET`, or `POST` with a body.
    ///   - headers: Further fields of each request, such as an `Authorization`; they win over the
    ///     configuration's.
    ///   - body: The body of each request, as for a query that does not fit a URL.
    ///   - contentType: What kind of body it is; nil says nothing of it.
    ///   - configuration: How it behaves.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL, and for headers that
    ///   cannot be sent.
    public convenience init(
        url: URL,
        method: String? = nil,
        headers: Headers = [:],
        body: Payload = Payload(),
        contentType: String? = nil,
        configuration: SSEConfiguration = SSEConfiguration(),
        configure: (inout SSEConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        var configuration = configuration
        configure(&configuration)
        try self.init(
            url: url,
            method: method,
            headers: headers,
            body: body,
            contentType: contentType,
            configuration,
            environment: .system
        )
    }

    /// Makes a source; nothing is connected before ``connect(lastEventID:)``.
    ///
    /// - Parameters:
    ///   - url: As text; see
    ///     ``init(url:method:headers:body:contentType:configuration:configure:)-(URL,_,_,_,_,_,_)``.
    ///   - method: The HTTP method; nil for `GET`, or `POST` with a body.
    ///   - headers: Further fields of each request.
    ///   - body: The body of each request.
    ///   - contentType: What kind of body it is; nil says nothing of it.
    ///   - configuration: How it behaves.
    ///   - configure: Changes the configuration, as in `{ $0.limits.memory = 1 << 20 }`.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL, and for headers that
    ///   cannot be sent.
    public convenience init(
        url: String,
        method: String? = nil,
        headers: Headers = [:],
        body: Payload = Payload(),
        contentType: String? = nil,
        configuration: SSEConfiguration = SSEConfiguration(),
        configure: (inout SSEConfiguration) -> Void = { _ in }
    ) throws(WaybillError) {
        try self.init(
            url: ServiceAddress.url(url),
            method: method,
            headers: headers,
            body: body,
            contentType: contentType,
            configuration: configuration,
            configure: configure
        )
    }

    /// Makes a source over links, a clock and randomness of one's own.
    package init(
        url: URL,
        method: String? = nil,
        headers: Headers = [:],
        body: Payload = Payload(),
        contentType: String? = nil,
        _ configuration: SSEConfiguration,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        self.url = url
        base = try HTTPTarget(url)
        links = try HTTPLinks(environment, configuration, base: base)
        var configuration = configuration
        configuration.userName = configuration.userName ?? base.address.userName
        configuration.password = configuration.password ?? base.address.password
        let stated = HTTPHeaders(headers)
        var merged = headers
        for header in configuration.headers where stated.first(header.name) == nil {
            merged.append(name: header.name, value: header.value)
        }
        try HTTPRequestPlan.check(merged)
        configuration.headers = merged
        self.configuration = configuration
        var command: EntryCommand = .subscribe
        command[.method] = method
        request = Request(topic: nil, command: command, body: body, contentType: contentType)
        // Refused now, not at the first attempt.
        _ = try SSERequestCheck(base: base, configuration: configuration)
            .plan(ofStream: request, method: method)
    }

    deinit {
        state.withLock { $0.stream }?.messages?.cancel()
    }

    // MARK: Handlers

    /// Sets what is called when the stream opens, each time; it replaces the one before.
    public func onOpen(_ handler: (@Sendable () -> Void)?) {
        state.withLock { $0.onOpen = handler }
    }

    /// Sets what is called with the head of the response when the stream opens, each time; it replaces the one before.
    ///
    /// Called before ``onOpen(_:)``. The head of a response that is no event stream is in ``Completion/error``, as the
    /// `HTTPRefusal` that is its `underlying`.
    public func onResponse(_ handler: (@Sendable (EventStreamResponse) -> Void)?) {
        state.withLock { $0.onResponse = handler }
    }

    /// Sets what is called for each event of any type; it replaces the one before.
    ///
    /// Called before ``onMessage(_:)`` and the listeners of the type.
    public func onEvent(_ handler: (@Sendable (Event) -> Void)?) {
        state.withLock { $0.onEvent = handler }
    }

    /// Sets what is called for each comment (HTML Standard, 9.2.6), with its text; it replaces the one before.
    ///
    /// Servers send comments to keep a connection alive.
    public func onComment(_ handler: (@Sendable (String) -> Void)?) {
        state.withLock { $0.onComment = handler }
    }

    /// Sets what is called for each event of the type `message`; it replaces the one before.
    public func onMessage(_ handler: (@Sendable (Event) -> Void)?) {
        state.withLock { $0.onMessage = handler }
    }

    /// Sets what is called when an attempt or a stream has ended, each time; it replaces the one before.
    ///
    /// Not called for ``disconnect()``. With ``Completion/willReconnect`` false the source is closed, and the
    /// handler may connect again.
    public func onComplete(_ handler: (@Sendable (Completion) -> Void)?) {
        state.withLock { $0.onComplete = handler }
    }

    /// Adds a listener for events of a type, behind those that are there.
    ///
    /// - Parameters:
    ///   - type: The type; compared exactly.
    ///   - handler: Called for each event of the type, after ``onMessage(_:)`` if that is `message`. It may be isolated to
    ///     an actor. No other handler is called until it has returned.
    /// - Returns: What removes it.
    @discardableResult
    public func addEventListener(
        _ type: String,
        handler: @escaping @Sendable (Event) async -> Void
    ) -> ListenerToken {
        addListener(type) { event, _ in await handler(event) }
    }

    /// Adds a listener that is called on a queue, such as `.main`; otherwise as ``addEventListener(_:handler:)``.
    ///
    /// - Parameters:
    ///   - type: The type; compared exactly.
    ///   - queue: Where the handler runs. After its removal or ``disconnect()`` there, it is not called.
    ///   - handler: Called for each event of the type, after ``onMessage(_:)`` if that is `message`. No other handler is
    ///     called until it has returned.
    /// - Returns: What removes it.
    @discardableResult
    public func addEventListener(
        _ type: String,
        on queue: DispatchQueue,
        _ handler: @escaping @Sendable (Event) -> Void
    ) -> ListenerToken {
        addListener(type) { event, isWanted in
            await withCheckedContinuation { continuation in
                queue.async {
                    if isWanted() { handler(event) }
                    continuation.resume()
                }
            }
        }
    }

    private func addListener(_ type: String, _ call: @escaping Listener.Call) -> ListenerToken {
        state.withLock { state in
            state.lastToken += 1
            let token = ListenerToken(number: state.lastToken)
            state.listeners.append(Listener(token: token, type: type, call: call))
            return token
        }
    }

    /// Removes a listener; nothing when it is gone already.
    public func removeEventListener(_ token: ListenerToken) {
        state.withLock { state in state.listeners.removeAll { $0.token == token } }
    }

    /// Removes all listeners for events of a type; the type is compared exactly.
    ///
    /// ``onMessage(_:)`` and ``onEvent(_:)`` are no listeners.
    public func removeEventListeners(named type: String) {
        state.withLock { state in state.listeners.removeAll { $0.type.hasSameBytes(as: type) } }
    }

    // MARK: Events

    /// The events of any type from now on, as an asynchronous sequence; see ``Events``.
    ///
    /// Called before ``connect(lastEventID:)`` it gives every event. After its end, another call makes another sequence.
    /// Each event is in the sequences before the handlers get it, so ``lastEventID`` may be ahead of a loop. To go on from
    /// the loop's place later, store the ``Event/lastEventID`` of the last event that the loop has handled.
    ///
    /// ```swift
    /// let events = source.events()
    /// source.connect()
    /// for try await event in events { print(event.type, event.data) }
    /// ```
    public func events() -> Events {
        let number = state.withLock { state in
            state.lastFeed += 1
            return state.lastFeed
        }
        let feed = EventFeed { [weak self] in
            self?.state.withLock { state in state.feeds.removeAll { $0.number == number } }
        }
        state.withLock { $0.feeds.append((number, feed)) }
        return Events(messages: feed.messages(), source: self)
    }

    // MARK: Connecting

    /// How far it is; what the handlers see agrees with why they are called.
    public var readyState: ReadyState { state.withLock { $0.readyState } }

    /// The last event ID, as far as the handlers have come: what to store, to go on from there later.
    public var lastEventID: String { state.withLock { $0.lastEventID } }

    /// The reconnection time: the least wait that the server has set with `retry`, as far as
    /// ``ReconnectionPolicy/maximumServerDelay`` allows.
    ///
    /// A `retry` shows with the event that follows it, as far as the handlers have come, or with the end of the stream.
    /// Before the server has set one since ``connect(lastEventID:)``, it is ``ReconnectionPolicy/initialDelay`` of
    /// ``SSEConfiguration/reconnection``. The actual wait may be shorter or longer: see ``ReconnectionPolicy``.
    public var retryTime: Duration {
        let policy = configuration.reconnection
        guard let time = state.withLock({ $0.serverTime }) else { return policy.initialDelay }
        return min(time, policy.maximumServerDelay)
    }

    /// Asks for the stream, and asks again when it ends, as the configuration says; nothing while it is
    /// connecting or open.
    ///
    /// - Parameter lastEventID: Where an earlier stream stopped; nil goes on after the last event of this
    ///   source.
    public func connect(lastEventID: String? = nil) {
        let begun = state.withLock { state -> (number: UInt64, lastEventID: String)? in
            guard state.stream == nil else { return nil }
            state.lastNumber += 1
            state.stream = Stream(number: state.lastNumber)
            state.readyState = .connecting
            state.serverTime = nil
            if let lastEventID { state.lastEventID = lastEventID }
            return (state.lastNumber, state.lastEventID)
        }
        guard let (number, lastEventID) = begun else { return }
        let engine = SSEEngine(base: base, configuration: configuration, links: links)
        var request = request
        request.command[.lastEventID] = lastEventID
        // There is nothing to refuse in such a subscription: it was checked in `init`.
        guard let messages = try? engine.listen(request) else { return disconnect() }
        let isCurrent = state.withLock { state in
            // After the handlers of an earlier connection, so that never two run at once.
            state.task = Task { @concurrent [weak self, earlier = state.task] in
                await earlier?.value
                var iterator = messages.makeAsyncIterator()
                // How it ended is told by a notice before, unless its buffer has overflowed.
                do {
                    while let message = try await iterator.next() {
                        await self?.handle(message, number)
                    }
                } catch let error as WaybillError {
                    self?.finish(
                        Completion(status: nil, willReconnect: false, error: error),
                        number
                    )
                } catch {}
                await engine.shutdown()
            }
            guard state.stream?.number == number else { return false }
            state.stream = Stream(number: number, messages: messages, engine: engine)
            return true
        }
        if !isCurrent { messages.cancel() }
    }

    /// Closes the connection and asks for the stream again at once, from the last event on; nothing while it is closed.
    ///
    /// ``onComplete(_:)`` and ``onOpen(_:)`` are called as for a stream that the server has ended.
    public func restart() {
        _ = state.withLock { $0.stream }?.engine?.restart(topic: nil)
    }

    /// Closes the connection, or gives up asking for one; nothing follows.
    ///
    /// The sequences of ``events()`` end, behind the events that wait in them.
    public func disconnect() {
        let (stream, feeds) = state.withLock { state in
            state.readyState = .closed
            return (state.stream.take(), state.takeFeeds())
        }
        stream?.messages?.cancel()
        for feed in feeds { feed.finish() }
    }

    /// As ``disconnect()``, and waits until no handler runs and the connection is closed.
    ///
    /// Not to be waited for by what a handler waits for.
    public func shutdown() async {
        disconnect()
        await state.withLock { $0.task }?.value
    }

    // MARK: Calling

    private func handle(_ message: Message, _ number: UInt64) async {
        switch (message.delivery as? SSENotice)?.kind {
        case .opened(let response)?:
            handler(number) { state in
                state.readyState = .open
                return state.onResponse
            }?(response)
            handler(number) { $0.onOpen }?()
        case .comment?: handler(number) { $0.onComment }?(message.text ?? "")
        case .reconnectionTime(let time)?:
            state.withLock { state in
                if state.stream?.number == number { state.serverTime = time }
            }
        case .ended(let status, let willReconnect, let error, let lastEventID)?:
            let completion = Completion(
                status: status,
                willReconnect: willReconnect,
                error: error
            )
            finish(completion, number, lastEventID)
        case nil: await dispatch(message, number)
        }
    }

    /// Notes the end of an attempt or a stream; the last one ends the sequences, too.
    private func finish(_ completion: Completion, _ number: UInt64, _ lastEventID: String? = nil) {
        var feeds: [EventFeed] = []
        let onComplete: (@Sendable (Completion) -> Void)? = handler(number) { state in
            if let lastEventID { state.lastEventID = lastEventID }
            state.readyState = completion.willReconnect ? .connecting : .closed
            if !completion.willReconnect {
                state.stream = nil
                feeds = state.takeFeeds()
            }
            return state.onComplete
        }
        for feed in feeds { feed.finish(throwing: completion.error) }
        onComplete?(completion)
    }

    private func dispatch(_ message: Message, _ number: UInt64) async {
        let event = Event(message)
        let feeds = state.withLock { state in
            state.stream?.number == number ? state.feeds.map(\.feed) : []
        }
        // Before `lastEventID` counts the event, so that a sequence that ends meanwhile does not lose it.
        for feed in feeds { feed.deliver(message) }
        handler(number) { state in
            state.lastEventID = event.lastEventID
            return state.onEvent
        }?(event)
        if event.type == "message" { handler(number) { $0.onMessage }?(event) }
        let tokens = state.withLock { state in
            state.listeners.filter { $0.type.hasSameBytes(as: event.type) }.map(\.token)
        }
        for token in tokens {
            // One that was removed meanwhile is not called.
            guard let listener = currentListener(token, number) else { continue }
            await listener.call(event) { self.currentListener(token, number) != nil }
        }
        for feed in feeds { await feed.waitForRoom() }
    }

    /// Finds a listener; nil when it was removed, and when another call of `connect`, or none, counts by now.
    private func currentListener(_ token: ListenerToken, _ number: UInt64) -> Listener? {
        handler(number) { state in state.listeners.first { $0.token == token } }
    }

    /// Finds a handler; nil when another call of `connect`, or none, counts by now.
    private func handler<Handler>(
        _ number: UInt64,
        _ find: (inout State) -> Handler?
    ) -> Handler? {
        state.withLock { state in state.stream?.number == number ? find(&state) : nil }
    }
}

extension EventSource: CustomReflectable {
    /// Nothing: passwords and data are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
