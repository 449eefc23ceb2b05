public import WaybillSSE

/// News as an app with handlers hears them.
public final class NewsFeed: Sendable {
    private let source: EventSource

    /// Makes the feed.
    ///
    /// - Parameters:
    ///   - url: Where the stream is.
    ///   - token: Who asks for it.
    ///   - report: Told, in order, what happens.
    /// - Throws: `WaybillError` for what is no such URL.
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

    /// Hears a kind of event until what is returned is given to ``ignore(_:)``.
    public func hear(
        _ type: String,
        _ handler: @escaping @Sendable (EventSource.Event) -> Void
    ) -> EventSource.ListenerToken {
        source.addEventListener(type, handler: handler)
    }

    /// Hears it no longer.
    public func ignore(_ token: EventSource.ListenerToken) {
        source.removeEventListener(token)
    }

    /// Begins, perhaps where an earlier run of the app stopped.
    /// - Parameter lastEventID: What ``stop()`` returned then.
    public func start(after lastEventID: String? = nil) {
        source.connect(lastEventID: lastEventID)
    }

    /// Ends it.
    /// - Returns: What to store, to go on from there.
    public func stop() -> String {
        source.disconnect()
        return source.lastEventID
    }
}
