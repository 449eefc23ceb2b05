import WireCore

/// An event as it is kept and sent.
package struct LoopbackEvent: Hashable, Sendable {
    /// Increasing over all topics, from 1.
    package let id: UInt64
    package let type: String
    package let data: [UInt8]
}

/// The event streams of the broker: the streams of each topic, and its last events for clients that come back.
///
/// A topic is remembered from its first stream or POST on.
package struct LoopbackEventTopics: Sendable {
    private struct Topic: Sendable {
        var events: [LoopbackEvent] = []
        var byteCount = 0
        var streams: Set<UInt64> = []
    }

    private struct Stream: Sendable {
        let topic: String
        /// The events to send next, which wait here while another thread sends.
        var pending: [LoopbackEvent] = []
        /// Busy from the start, until the head of the response is sent.
        var isBusy = true
        var sentCount = 0
    }

    /// The number of events that a topic keeps.
    private let memory: Int
    private var topics: [WireName: Topic] = [:]
    private var streams: [UInt64: Stream] = [:]
    private var lastID: UInt64 = 0

    /// The number of bytes of data that a topic keeps: 16 MiB.
    private static let memoryByteCount = 16 << 20

    package init(memory: Int) {
        self.memory = max(memory, 0)
    }

    /// Forgets all events and streams; ids begin again.
    package mutating func forget() {
        self = LoopbackEventTopics(memory: memory)
    }

    /// True when no event waits to be sent.
    package var isIdle: Bool { streams.values.allSatisfy(\.pending.isEmpty) }

    /// The bytes of the remembered events, and of those that streams have to send.
    var byteCount: Int {
        topics.values.reduce(0) { $0 + $1.byteCount }
            + streams.values.reduce(0) { sum, stream in
                stream.pending.reduce(sum) { $0 + $1.data.count }
            }
    }

    /// Adds a stream, which gets what came after an event, as far as it is remembered.
    ///
    /// - Parameters:
    ///   - topic: The topic.
    ///   - lastEventID: The last event that the client has had; anything but a number is as good as none.
    ///   - client: The client that asks for the stream.
    package mutating func open(_ topic: String, after lastEventID: String?, _ client: UInt64) {
        var stream = Stream(topic: topic)
        if let last = lastEventID.flatMap({ UInt64($0) }) {
            stream.pending = (topics[topic]?.events ?? []).filter { $0.id > last }
        }
        streams[client] = stream
        topics[WireName(topic), default: Topic()].streams.insert(client)
    }

    /// Removes the stream of a client, if it has one.
    package mutating func remove(_ client: UInt64) {
        guard let stream = streams.removeValue(forKey: client) else { return }
        topics[stream.topic]?.streams.remove(client)
    }

    /// Begins to remember a topic.
    package mutating func note(_ topic: String) {
        if topics[topic] == nil { topics[topic] = Topic() }
    }

    /// Keeps an event and queues it for the streams of its topic.
    /// - Returns: The clients of these streams, in the order of their connections.
    package mutating func publish(_ topic: String, type: String, data: [UInt8]) -> [UInt64] {
        guard var found = topics[topic] else { return [] }
        lastID += 1
        let event = LoopbackEvent(id: lastID, type: type, data: data)
        found.events.append(event)
        found.byteCount += data.count
        while found.events.count > memory || found.byteCount > Self.memoryByteCount,
            let first = found.events.first
        {
            found.byteCount -= first.data.count
            found.events.removeFirst()
        }
        topics[topic] = found
        for client in found.streams { streams[client]?.pending.append(event) }
        return found.streams.sorted()
    }

    /// Takes what is to be sent to a client; the caller sends it and comes back for more.
    ///
    /// - Parameters:
    ///   - client: The client.
    ///   - hasSent: Whether the caller is the one that was sending.
    ///   - isWithheld: Whether nothing is to be sent now.
    /// - Returns: The events, with how many went before them; nil when there are none, or another caller is
    ///   about to send.
    package mutating func take(
        for client: UInt64,
        hasSent: Bool,
        isWithheld: Bool
    ) -> (events: [LoopbackEvent], sentBefore: Int)? {
        guard var stream = streams[client], hasSent || !stream.isBusy else { return nil }
        stream.isBusy = !stream.pending.isEmpty && !isWithheld
        let events = stream.isBusy ? stream.pending : []
        let sentBefore = stream.sentCount
        if stream.isBusy {
            stream.sentCount += events.count
            stream.pending = []
        }
        streams[client] = stream
        return stream.isBusy ? (events, sentBefore) : nil
    }
}
