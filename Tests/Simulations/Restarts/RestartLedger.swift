import Waybill
import WaybillTesting

/// A record of messages whose sender and receiver is killed or ended again and again.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class RestartLedger: @unchecked Sendable {
    /// The numbers that the app sends to one topic.
    private struct Outgoing {
        var next = 0
        /// Those that have to arrive, and why.
        var due: [Int: String] = [:]
        /// Those that were acknowledged. A kill may come before the store has noted that.
        var acknowledged: Set<Int> = []
        /// Those that were acknowledged before the clean end of a process.
        var settled: Set<Int> = []
        /// Those whose sends have failed with an error that excludes an arrival, and the error.
        var denied: [Int: String] = [:]
        /// Those whose sends have failed with an error that leaves an arrival open.
        var doubtful: Set<Int> = []
        /// Those that have arrived, with the number of sessions that the broker had lost before.
        var arrived: [Int: Int] = [:]
    }

    /// The numbers that the broker publishes to one topic.
    private struct Incoming {
        var published: Set<Int> = []
        /// Those that were published while the session had all subscriptions, with no loss since.
        var kept: Set<Int> = []
        /// The process that has taken a number last.
        var taken: [Int: Int] = [:]
        /// Those whose exchange is over.
        var completed: Set<Int> = []
    }

    private let world: SimulatedWorld
    private var outgoing: [String: Outgoing] = [:]
    private var incoming: [String: Incoming] = [:]
    private let qualities: [String: QoS]
    /// Whether a session keeps the order over connections. Without one, what a lost connection has under way may arrive
    /// behind what the next one brings.
    private let hasSession: Bool
    private var losses = 0
    private var storedLosses = 0
    /// Whether a client went on in another session than the one of its store, without being able to know it.
    ///
    /// A CONNACK that was lost, or whose process was killed, has said so.
    private var hasForeignSession = false
    /// Whether that was so at any time.
    private(set) var hadForeignSession = false
    /// The number of each outcome.
    private(set) var outcomes: [String: Int] = [:]

    /// - Parameters:
    ///   - qualities: The topics and their quality of service.
    ///   - hasSession: Whether the protocol has sessions.
    init(_ world: SimulatedWorld, _ qualities: [String: QoS], hasSession: Bool) {
        self.world = world
        self.qualities = qualities
        self.hasSession = hasSession
    }

    /// Whether everything has arrived that must.
    var isComplete: Bool { missing.isEmpty && untaken.isEmpty }

    func count(_ outcome: String) { outcomes[outcome, default: 0] += 1 }

    // MARK: What the app sends

    func next(_ topic: String) -> Int {
        defer { outgoing[topic, default: Outgoing()].next += 1 }
        return outgoing[topic, default: Outgoing()].next
    }

    func sentCount(_ topic: String) -> Int { outgoing[topic]?.next ?? 0 }

    /// The server has acknowledged a number.
    func acknowledged(_ number: Int, _ topic: String) {
        count("acknowledged")
        outgoing[topic]?.due[number] = "acknowledged"
        outgoing[topic]?.acknowledged.insert(number)
    }

    /// A send has failed.
    func failed(_ number: Int, _ topic: String, _ error: WaybillError) {
        guard !error.mayHaveArrived else {
            outgoing[topic]?.doubtful.insert(number)
            return
        }
        count("denied")
        outgoing[topic]?.denied[number] = "\(error)"
        checkDenied(number, topic)
    }

    private func checkDenied(_ number: Int, _ topic: String) {
        guard let lane = outgoing[topic], let error = lane.denied[number],
            lane.arrived[number] != nil
        else { return }
        world.fail("\(topic) \(number) has arrived, and its sender was told: \(error)")
    }

    /// A process has ended cleanly: what it was told is acknowledged is not sent again.
    func settle() {
        count("clean ends")
        for (topic, lane) in outgoing { outgoing[topic]?.settled = lane.acknowledged }
    }

    /// The process was killed. What its store has then must arrive.
    func left(_ messages: [StoredMessage]) {
        for message in messages {
            count("left in the store")
            guard let number = Int(String(decoding: message.body, as: UTF8.self)) else {
                world.fail("the store has a message that was never sent")
                continue
            }
            outgoing[message.topic]?.due[number] = "stored"
            outgoing[message.topic]?.acknowledged.remove(number)
        }
    }

    /// A number has arrived at the broker.
    func arrive(_ number: Int?, at topic: String) {
        guard outgoing[topic] != nil else { return }
        guard let number else { return world.fail("\(topic) has got what was never sent") }
        let arrived = outgoing[topic]?.arrived ?? [:]
        if let earlier = arrived[number] {
            count("repeated at the broker")
            world.expect(
                qualities[topic] == .atLeastOnce || earlier < losses,
                "\(topic) \(number) has arrived at the broker twice"
            )
        } else if let highest = arrived.keys.max(), highest > number,
            hasSession || outgoing[topic]?.doubtful.contains(number) == false
        {
            world.fail("\(topic) \(number) has come to the broker behind \(highest)")
        }
        world.expect(
            outgoing[topic]?.settled.contains(number) == false,
            "\(topic) \(number) was sent again after a clean end, though it was acknowledged"
        )
        outgoing[topic]?.arrived[number] = losses
        checkDenied(number, topic)
    }

    /// Those that have to arrive and have not, in words.
    var missing: [String] {
        outgoing.sorted { $0.key < $1.key }.flatMap { topic, lane in
            lane.due.filter { lane.arrived[$0.key] == nil }.sorted { $0.key < $1.key }
                .map { "\(topic) \($0.key), \($0.value)" }
        }
    }

    /// The broker has lost its sessions, with the messages in them.
    func loseSessions() {
        count("sessions lost")
        losses += 1
        hasForeignSession = false
        for topic in incoming.keys { incoming[topic]?.kept = [] }
    }

    /// The store has noted that a session is lost.
    func storedLoss() { storedLosses = losses }

    /// The broker has told a client that it has its session.
    func resumed() {
        guard storedLosses < losses else { return }
        count("resumed in another session")
        hasForeignSession = true
        hadForeignSession = true
    }

    // MARK: What the app receives

    /// - Parameter isKept: Whether the broker has a session with all subscriptions.
    func published(_ number: Int, _ topic: String, isKept: Bool) {
        incoming[topic, default: Incoming()].published.insert(number)
        if isKept { incoming[topic]?.kept.insert(number) }
    }

    /// A process has taken a number.
    func take(_ number: Int?, _ topic: String, by process: Int) {
        guard let number, incoming[topic]?.published.contains(number) == true else {
            return world.fail("\(topic): the app has taken what was never published")
        }
        if let last = incoming[topic]?.taken[number], qualities[topic] == .exactlyOnce {
            count("taken again")
            world.expect(
                last != process,
                "\(topic) \(number): process \(process) has taken it twice"
            )
            world.expect(
                incoming[topic]?.completed.contains(number) == false,
                "\(topic) \(number) was taken again though its exchange was over"
            )
        }
        incoming[topic]?.taken[number] = process
        count("taken")
    }

    /// The exchange of a received number is over.
    func complete(_ number: Int, _ topic: String) {
        incoming[topic]?.completed.insert(number)
    }

    /// Those that the broker has kept and the app has not taken, in words.
    ///
    /// A repetition of QoS 2 in a foreign session may have the identifier of a message that was taken, and then looks
    /// like that message.
    var untaken: [String] {
        incoming.sorted { $0.key < $1.key }.flatMap { topic, lane in
            hasForeignSession && qualities[topic] == .exactlyOnce
                ? [] : lane.kept.subtracting(lane.taken.keys).sorted().map { "\(topic) \($0)" }
        }
    }
}
