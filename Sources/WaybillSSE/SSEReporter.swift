import Waybill

/// What observers are told of one stream: of its connections and of its subscription.
struct SSEReporter: Sendable {
    private let topic: String
    private var host: String?
    private var attempt = 1
    /// When the present attempt began, or since when the stream is open.
    private var begun = ContinuousClock.now
    private var isOpen = false
    /// When the stream was asked for, or lost.
    private var wanted = ContinuousClock.now
    private var wasEverOpen = false

    init(topic: String) {
        self.topic = topic
    }

    /// A host is connected to.
    mutating func connecting(to host: String, attempt: Int) -> [TransportEvent] {
        self.host = host
        self.attempt = attempt
        begun = .now
        return [.connecting(to: host, attempt: attempt)]
    }

    /// The request goes to this host, perhaps after a redirect.
    mutating func requesting(_ host: String) -> [TransportEvent] {
        self.host = host
        return []
    }

    /// The server has begun to stream.
    mutating func opened() -> [TransportEvent] {
        defer {
            isOpen = true
            wasEverOpen = true
            begun = .now
        }
        return [
            .connected(to: host, since: begun, attempt: attempt),
            .subscribed(topic: topic, since: wanted, isAgain: wasEverOpen),
        ]
    }

    /// The attempt is over, and with it the stream that it may have opened.
    mutating func ended(_ error: WaybillError?) -> [TransportEvent] {
        if let error, !isOpen {
            return [.connectionFailed(to: host, since: begun, attempt: attempt, error: error)]
        }
        defer {
            if isOpen { wanted = .now }
            isOpen = false
        }
        return [.disconnected(from: host, since: isOpen ? begun : nil, cause: error)]
    }

    /// The subscription is over.
    func finished(_ error: WaybillError?) -> TransportEvent {
        if let error, !wasEverOpen {
            return .subscriptionRefused(topic: topic, since: wanted, error: error)
        }
        return .subscriptionEnded(topic: topic, cause: error)
    }
}
