public import WaybillSSE

/// A news feed for an app with handlers.
public final class NewsFeed: Sendable {
    private let source: EventSource

    /// Makes the feed.
    ///
    /// - Parameters:
    ///   - url: The URL of the stream.
    ///   - token: The token for the Authorization header.
    ///   - report: Called with a line for each event, in order.
    /// - Throws: `WaybillError` for an invalid URL.
    public init(
        url: String,
        token: String,
        report: @escaping @Sendable (String) -> Void
    ) throws {
        source = try EventSource(url: url, headers: ["Authorization": "Bearer \(token)"])

        source.onOpen { report("open") }

        source.onMessage { event in
            report("\(event.lastEventID): \(event.data)")
        }

        source.addEventListener("correction") { event in
            report("correction of \(event.lastEventID): \(event.data)")
        }

        source.onComplete { completion in
            let status = completion.status.map { "status \($0)" } ?? "no answer"
            report(completion.willReconnect ? "\(status), again soon" : "\(status), over")
        }
    }

    /// Calls a handler for each event of a type, until ``ignore(_:)`` gets the returned token.
    public func hear(
        _ type: String,
        _ handler: @escaping @Sendable (EventSource.Event) -> Void
    ) -> EventSource.ListenerToken {
        source.addEventListener(type, handler: handler)
    }

    /// Removes a handler.
    public func ignore(_ token: EventSource.ListenerToken) {
        source.removeEventListener(token)
    }

    /// Removes all handlers of a type.
    public func ignoreAll(_ type: String) {
        source.removeEventListeners(named: type)
    }

    /// The events of all types for a loop, until ``stop()``.
    public func events() -> EventSource.Events {
        source.events()
    }

    /// Starts the feed, after the last event of an earlier run if there was one.
    /// - Parameter lastEventID: The result of ``stop()`` in that run.
    public func start(after lastEventID: String? = nil) {
        source.connect(lastEventID: lastEventID)
    }

    /// Stops the feed.
    /// - Returns: The id of the last event, for the next start.
    public func stop() -> String {
        source.disconnect()
        return source.lastEventID
    }
}
