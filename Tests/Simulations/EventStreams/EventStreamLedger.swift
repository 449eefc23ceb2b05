import Waybill
import WaybillTesting

/// A record of all events and posts and of their arrivals, which checks what may not happen.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class EventStreamLedger: @unchecked Sendable {
    /// The attempts of one sender to send one number to the server.
    private struct Delivery {
        var attemptCount = 0
        /// The attempts that failed with an error that excludes an arrival.
        var deniedCount = 0
        var arrivalCount = 0
        var isAcknowledged = false
        /// True when the library may send more requests than the app makes, since repeating the method is harmless.
        var isRepeatable = false
    }

    /// The streams of a topic that a single app listens to.
    private struct Opening {
        /// True when the app has had an event. The server sends the reconnection time before it.
        var knowsTime = false
        var earliest = Duration.zero
    }

    private struct Name: Hashable {
        let topic: String
        let number: Int
    }

    let world: SimulatedWorld
    /// The reconnection time that the server sends.
    let reconnectionTime: Duration?
    private var published: [String: Int] = [:]
    private var deliveries: [Name: Delivery] = [:]
    private var openings: [String: Opening] = [:]
    /// The last request of each connection.
    private var requests: [Substring: Substring] = [:]
    private var refusedTokens: Set<String> = []
    private var openCallCount = 0
    private(set) var streamCount = 0
    /// The topics whose events the server keeps.
    private var knownTopics: Set<String> = []
    /// The number of calls for each outcome.
    private(set) var outcomes: [String: Int] = [:]

    init(_ world: SimulatedWorld, reconnectionTime: Duration?) {
        self.world = world
        self.reconnectionTime = reconnectionTime
    }

    func count(_ outcome: String) {
        outcomes[outcome, default: 0] += 1
    }

    // MARK: Events

    /// The number of events of a topic.
    func publishedCount(_ topic: String) -> Int { published[topic] ?? 0 }

    /// True when the server keeps all further events of a topic.
    func isKnown(_ topic: String) -> Bool { knownTopics.contains(topic) }

    /// The number of a topic's next event.
    func takeNumber(_ topic: String) -> Int {
        defer { published[topic, default: 0] += 1 }
        return published[topic] ?? 0
    }

    // MARK: Sends

    /// Makes a call that sends a number, and records its outcome.
    ///
    /// - Parameters:
    ///   - number: The number.
    ///   - topic: The destination.
    ///   - isRepeatable: True when the library may repeat the request by itself.
    ///   - limit: The longest duration of the call.
    ///   - body: The call.
    /// - Returns: True when the number may be sent again, since the sender does not know that it has arrived.
    func send(
        _ number: Int,
        to topic: String,
        isRepeatable: Bool,
        within limit: Duration,
        _ body: () async throws -> Void
    ) async -> Bool {
        let name = Name(topic: topic, number: number)
        deliveries[name, default: Delivery()].attemptCount += 1
        deliveries[name]?.isRepeatable = isRepeatable
        openCallCount += 1
        let begin = world.elapsed
        defer {
            openCallCount -= 1
            let time = world.elapsed - begin
            world.expect(time <= limit, "\(topic) \(number) took \(time) instead of \(limit)")
        }
        do {
            try await body()
            count("sent")
            deliveries[name]?.isAcknowledged = true
            let count = deliveries[name]?.arrivalCount ?? 0
            world.expect(count > 0, "\(topic) \(number) is acknowledged and has not arrived")
            return false
        } catch is CancellationError {
            count("cancelled")
        } catch let error as WaybillError {
            world.note("\(topic) \(number): \(error)")
            count("send: \(error.code)")
            if Self.isDenial(error) {
                deliveries[name]?.deniedCount += 1
            } else if !Self.isOpen(error) {
                world.fail("\(topic) \(number) was told \(error)")
            }
            check(name)
        } catch {
            world.fail("\(topic) \(number) was told \(type(of: error)), which no call throws")
        }
        return true
    }

    /// True when the error excludes that the server has carried out the request.
    private static func isDenial(_ error: WaybillError) -> Bool {
        let codes: [WaybillError.Code] = [.connectionRefused, .notConnected, .unauthorized]
        return codes.contains(error.code)
    }

    /// True when the error leaves open what the server has done.
    private static func isOpen(_ error: WaybillError) -> Bool {
        [.connectionLost, .timedOut, .shutDown].contains(error.code)
    }

    /// Records the arrival of a number at the server.
    func arrive(_ number: Int?, at topic: String) {
        guard let number else {
            return world.fail("\(topic) has received a message that was never sent")
        }
        let name = Name(topic: topic, number: number)
        guard deliveries[name] != nil else {
            return world.fail("\(topic) has received \(number), which was never sent")
        }
        deliveries[name]?.arrivalCount += 1
        check(name)
    }

    private func check(_ name: Name) {
        guard let delivery = deliveries[name], !delivery.isRepeatable else { return }
        let possible = delivery.attemptCount - delivery.deniedCount
        world.expect(
            delivery.arrivalCount <= possible,
            """
            \(name.topic) \(name.number) has arrived \(delivery.arrivalCount) times, of \(delivery.attemptCount) attempts of \
            which \(delivery.deniedCount) have failed for certain
            """
        )
    }

    // MARK: Tokens

    /// Records that the server refuses a token from now on.
    func refuse(_ token: String) {
        refusedTokens.insert(token)
    }

    /// Checks that a token that is to be replaced was refused.
    func checkRefusal(_ token: String?) {
        guard let token else { return }
        world.expect(
            refusedTokens.contains(token),
            "the token \(token) is to be replaced, which was never refused"
        )
    }

    // MARK: What the server sees

    /// Watches a topic that a single app listens to.
    func watch(_ topic: String) {
        openings[topic] = Opening()
    }

    /// Records that the app has had an event of the topic.
    func noteEvent(_ topic: String) {
        openings[topic]?.knowsTime = true
    }

    /// Allows a request for the topic at once.
    func excuse(_ topic: String) {
        openings[topic]?.earliest = .zero
    }

    /// Checks that the app does not request a stream too early.
    func noteRequest(_ text: String) {
        guard let topic = Self.topic(text[...]), let opening = openings[topic] else { return }
        world.expect(
            world.elapsed >= opening.earliest,
            "\(topic) is asked for \(opening.earliest - world.elapsed) too early"
        )
        guard opening.knowsTime, let time = reconnectionTime else { return }
        openings[topic]?.earliest = world.elapsed + time
    }

    /// Evaluates a line of the broker's log.
    func note(_ line: String) {
        world.note("broker: \(line)")
        let words = line.split(separator: " ", maxSplits: 3)
        guard words.count == 4 else { return }
        let (client, text) = (words[1], words[3])
        if words[2] == "←" {
            requests[client] = text
        } else if let topic = requests[client].flatMap(Self.topic) {
            if text.hasPrefix("200 text/event-stream") {
                streamCount += 1
                knownTopics.insert(topic)
            } else if text == "401" {
                // The app repeats the request at once with another token.
                excuse(topic)
            }
        }
    }

    private static func topic(_ request: Substring) -> String? {
        request.hasPrefix("GET /") ? String(request.dropFirst(5)) : nil
    }

    // MARK: The end

    func checkEnd() {
        world.expect(openCallCount == 0, "\(openCallCount) calls have not ended")
        world.note("\(outcomes.sorted { $0.key < $1.key })")
    }
}
