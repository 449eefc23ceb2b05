import Waybill
import WaybillTesting

/// What was sent, what has arrived, and what may not be said of either.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulationLedger: @unchecked Sendable {
    /// One sender's messages on a topic of its own, which it sends one after another.
    private struct Lane {
        var qos = QoS.atMostOnce
        var begunCount = 0
        var acknowledged: Set<Int> = []
        /// Those whose sender was told that they have not arrived.
        var denied: [Int: String] = [:]
        var arrived: [Int] = []
        /// The MQTT client that listens to the topic; nil where a broker does.
        var listener: String?
        /// How often each number has come since that client connected last.
        var copies: [Int: Int] = [:]
    }

    /// A copy of a dead connection that was waiting to be read, and the repetition over the new one.
    private static let longestRepetition = 2

    /// What is sent while all apps are idle.
    static let idleNumber = 1_000_000
    /// From here on: what is sent to see that all is well.
    static let firstProbe = 100_000

    private let world: SimulatedWorld
    private var lanes: [String: Lane] = [:]
    private(set) var openCallCount = 0
    /// How often each call ended in each way.
    private(set) var outcomes: [String: Int] = [:]
    /// Whether the messages of a topic come in the order in which they were sent.
    ///
    /// A queue keeps none: what went to a connection that is dead and not yet noticed comes after what followed it.
    var keepsOrder = true
    /// Whether a broker has forgotten what it knew: it may take a repetition for something new.
    var hasForgotten = false
    /// Whether all is well, and each dead connection is noticed: what is sent from now on must arrive.
    var isWell = false

    init(_ world: SimulatedWorld) {
        self.world = world
    }

    // MARK: Calls

    /// Opens a topic.
    func open(_ topic: String, _ qos: QoS, listener: String? = nil) {
        lanes[topic] = Lane(qos: qos, listener: listener)
    }

    /// A client has connected, and is sent again what it has not acknowledged: each message once.
    func beginConnection(of listener: String) {
        for (topic, lane) in lanes where lane.listener == listener { lanes[topic]?.copies = [:] }
    }

    /// A call that sends a number.
    ///
    /// - Parameters:
    ///   - number: The number.
    ///   - topic: Where to.
    ///   - limit: How long the call may take at the most.
    ///   - mustSucceed: Whether nothing keeps it from it once all is well.
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

    /// No side breaks a protocol here, so that no side may say so of the other.
    func checkUnbroken(_ error: WaybillError?, _ what: @autoclosure () -> String) {
        guard let error, error.code == .protocolViolation else { return }
        world.fail("\(what()): \(error)")
    }

    /// Counts how something ended.
    func count(_ outcome: String) {
        outcomes[outcome, default: 0] += 1
    }

    /// Whether the errors of this kind leave open what has become of the message.
    private static func mayHaveArrived(_ error: WaybillError) -> Bool {
        let unknown: [WaybillError.Code] = [
            .connectionLost, .timedOut, .shutDown,
        ]
        return unknown.contains(error.code) || error.underlying is HTTPRefusal
    }

    private func checkDenied(_ number: Int, _ topic: String) {
        guard let reason = lanes[topic]?.denied[number],
            lanes[topic]?.arrived.contains(number) == true
        else { return }
        world.fail("\(topic) \(number) has arrived, and its sender was told: \(reason)")
    }

    // MARK: Arrivals

    /// A message has come to the broker, or to a listener.
    func arrive(_ number: Int?, at topic: String) {
        guard var lane = lanes[topic] else { return }
        guard let number else { return world.fail("\(topic) has got what nobody sent") }
        // Many of the same, to see that they are heard.
        if number == Self.idleNumber { return }
        let isFirst = !lane.arrived.contains(number)
        if !isFirst, lane.qos == .exactlyOnce, !hasForgotten {
            world.fail("\(topic) \(number) has arrived twice")
        }
        if isFirst, keepsOrder, let highest = lane.arrived.max(), highest > number {
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

    /// The numbers of a topic from one on that have not arrived, of those that were published up to another.
    func missing(_ topic: String, _ range: Range<Int>) -> [Int] {
        let arrived = Set(lanes[topic]?.arrived ?? [])
        return range.filter { !arrived.contains($0) }
    }

    func hasArrived(_ number: Int, at topic: String) -> Bool {
        lanes[topic]?.arrived.contains(number) ?? false
    }

    // MARK: The end

    /// Checks what must hold when all apps have finished.
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
