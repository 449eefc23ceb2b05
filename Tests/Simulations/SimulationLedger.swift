import Waybill
import WaybillTesting

/// A record of all messages and of their arrivals, which checks what may not happen.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulationLedger: @unchecked Sendable {
    /// The messages of one sender on a topic of its own, sent one after another.
    private struct Lane {
        var qos = QoS.atMostOnce
        var begunCount = 0
        var acknowledged: Set<Int> = []
        /// Messages whose send failed with an error that excludes an arrival, and the error.
        var denied: [Int: String] = [:]
        var arrived: [Int] = []
        /// The MQTT client that subscribes to the topic; nil when the broker receives the messages.
        var listener: String?
        /// The number of arrivals of each number since that client connected last.
        var copies: [Int: Int] = [:]
        /// The last number that the broker has published.
        var lastPublished = -1
        /// The first number that no earlier stream of the app can have had.
        var firstOfStream = 0
    }

    /// A stream that ends while its reader rests has a copy in the batch that was taken, and the repetition over the next
    /// connection in its buffer, from which earlier copies are removed. Both are read late, since a stream that has ended
    /// keeps what it has. The server sends the message once more to the stream that follows.
    private static let longestRepetition = 3

    /// The number of all messages that are sent while the apps are idle.
    static let idleNumber = 1_000_000
    /// The first number of the messages that are sent after all faults.
    static let firstProbe = 100_000

    private let world: SimulatedWorld
    private var lanes: [String: Lane] = [:]
    private(set) var openCallCount = 0
    /// The number of calls for each outcome.
    private(set) var outcomes: [String: Int] = [:]
    /// True when the messages of a topic must arrive in the order in which they were sent.
    ///
    /// A queue keeps no order: messages that went to a dead connection are delivered after later ones.
    var keepsOrder = true
    /// True when a broker has lost its state. It may then treat a repetition as a new message.
    var hasForgotten = false
    /// The clients that know their session.
    private var informed: Set<String> = []
    /// Those whose session the broker has lost, without a CONNACK that has told them.
    private var uninformed: Set<String> = []
    /// Those that have gone on in another session, and cannot know it.
    private var foreign: Set<String> = []
    /// True when there are no faults and every dead connection was detected. From then on each message must arrive.
    var isWell = false

    init(_ world: SimulatedWorld) {
        self.world = world
    }

    // MARK: Calls

    /// Opens a topic.
    func open(_ topic: String, _ qos: QoS, listener: String? = nil) {
        lanes[topic] = Lane(qos: qos, listener: listener)
    }

    /// Records that the broker publishes a number.
    func publish(_ number: Int, to topic: String) { lanes[topic]?.lastPublished = number }

    /// Records that the app listens to a topic again, after its stream has ended.
    ///
    /// What came between the two streams was dropped. Where its PUBACK was lost, the server sends it again, behind
    /// messages that the new stream has had.
    func beginAnotherStream(of topic: String) {
        guard let lane = lanes[topic] else { return }
        lanes[topic]?.firstOfStream = lane.lastPublished + 1
    }

    /// Records that a client has connected. The broker sends it each unacknowledged message once more.
    func beginConnection(of listener: String, sessionPresent: Bool) {
        if !sessionPresent {
            if informed.contains(listener) { uninformed.insert(listener) }
        } else if uninformed.contains(listener) {
            count("resumed in another session")
            foreign.insert(listener)
        }
        for (topic, lane) in lanes where lane.listener == listener { lanes[topic]?.copies = [:] }
    }

    /// Records that a client has had the CONNACK of its connection.
    func inform(_ listener: String) {
        informed.insert(listener)
        uninformed.remove(listener)
    }

    /// True when a message of QoS 2 may look to the client like a repetition of one from a session that the broker has
    /// lost (Documentation/Simulation.md, What no client can know).
    func isInForeignSession(_ listener: String) -> Bool { foreign.contains(listener) }

    /// Makes a call that sends a number, and records its outcome.
    ///
    /// - Parameters:
    ///   - number: The number.
    ///   - topic: The destination.
    ///   - limit: The longest duration of the call.
    ///   - mustSucceed: True when the call must succeed once there are no more faults.
    ///   - body: The call.
    func send(
        _ number: Int,
        to topic: String,
        within limit: Duration,
        mustSucceed: Bool,
        _ body: () async throws -> Void
    ) async {
        let wasWell = isWell
        let begun = world.elapsed
        lanes[topic]?.begunCount += 1
        openCallCount += 1
        defer {
            openCallCount -= 1
            let time = world.elapsed - begun
            world.expect(time <= limit, "\(topic) \(number) took \(time), more than \(limit)")
        }
        do {
            try await body()
            lanes[topic]?.acknowledged.insert(number)
            count("sent")
        } catch let error as WaybillError {
            world.note("\(topic) \(number): \(error)")
            count("\(error.code)")
            world.expect(
                !wasWell || !mustSucceed,
                "\(topic) \(number) could not be sent though all was well: \(error)"
            )
            checkUnbroken(error, "\(topic) \(number)")
            guard !Self.mayHaveArrived(error) else { return }
            lanes[topic]?.denied[number] = "\(error)"
            checkDenied(number, topic)
        } catch is CancellationError {
            count("cancelled")
        } catch {
            world.fail("\(topic) \(number) was told \(type(of: error)), which no call throws")
        }
    }

    /// Checks that the error is not a protocol violation: neither side violates the protocol here.
    func checkUnbroken(_ error: WaybillError?, _ what: @autoclosure () -> String) {
        guard let error, error.code == .protocolViolation else { return }
        world.fail("\(what()): \(error)")
    }

    /// Counts an outcome.
    func count(_ outcome: String) {
        outcomes[outcome, default: 0] += 1
    }

    /// True when the error leaves open whether the message has arrived.
    private static func mayHaveArrived(_ error: WaybillError) -> Bool {
        error.mayHaveArrived || error.underlying is HTTPRefusal
    }

    private func checkDenied(_ number: Int, _ topic: String) {
        guard let reason = lanes[topic]?.denied[number],
            lanes[topic]?.arrived.contains(number) == true
        else { return }
        world.fail("\(topic) \(number) has arrived, and its sender was told: \(reason)")
    }

    // MARK: Arrivals

    /// Records the arrival of a message at the broker or at a subscriber.
    func arrive(_ number: Int?, at topic: String) {
        guard var lane = lanes[topic] else { return }
        guard let number else {
            return world.fail("\(topic) has received a message that was never sent")
        }
        // Idle messages share one number and are not counted.
        if number == Self.idleNumber { return }
        let isFirst = !lane.arrived.contains(number)
        if !isFirst, lane.qos == .exactlyOnce, !hasForgotten {
            world.fail("\(topic) \(number) has arrived twice")
        }
        if isFirst, keepsOrder, number >= lane.firstOfStream, let highest = lane.arrived.max(),
            highest > number
        {
            world.fail("\(topic) \(number) has come behind \(highest)")
        }
        lane.arrived.append(number)
        if lane.listener != nil, !hasForgotten {
            lane.copies[number, default: 0] += 1
            world.expect(
                lane.copies[number, default: 0] <= Self.longestRepetition,
                "\(topic) \(number) has come again and again over one connection"
            )
        }
        lanes[topic] = lane
        checkDenied(number, topic)
    }

    /// The numbers of the range that have not arrived at the topic.
    func missing(_ topic: String, _ range: Range<Int>) -> [Int] {
        let arrived = Set(lanes[topic]?.arrived ?? [])
        return range.filter { !arrived.contains($0) }
    }

    func hasArrived(_ number: Int, at topic: String) -> Bool {
        lanes[topic]?.arrived.contains(number) ?? false
    }

    // MARK: The end

    /// Checks what must be true when all apps have finished.
    func checkEnd() {
        world.expect(openCallCount == 0, "\(openCallCount) calls have not ended")
        for (topic, lane) in lanes.sorted(by: { $0.key < $1.key }) where lane.qos != .atMostOnce {
            let lost = lane.acknowledged.subtracting(lane.arrived).sorted()
            world.expect(
                lost.isEmpty,
                "\(topic): acknowledged and never arrived: \(lost.prefix(5))"
            )
        }
    }
}
