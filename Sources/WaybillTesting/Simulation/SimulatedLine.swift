import WaybillLink
import WireCore

/// What lies between the two ends of a simulated connection.
///
/// `@unchecked Sendable`, because: only the thread that simulates touches it.
final class SimulatedLine: @unchecked Sendable {
    /// What one end sends to the other.
    struct Direction {
        /// When the last of it arrives: nothing overtakes.
        var lastArrival = WireInstant.zero
        var byteCountUnderWay = 0
        /// Whether nothing more gets through.
        var isCut = false
    }

    /// When the system's TCP keep-alive has found out that the peer of a silent end has gone: with the first probe where
    /// the peer's system answers with a reset, else 15 seconds after the fourth.
    private static let keepAliveTime = (
        answered: Duration.seconds(60), unanswered: Duration.seconds(120)
    )

    /// How long an end takes to hear of a reset.
    private static let hearing = Duration.zero ... .milliseconds(50)

    let network: SimulatedNetwork
    let number: Int
    /// How many bytes an end takes that the other has not read.
    let capacity: Int
    private let latency: Duration
    private var isReset = false
    private(set) var isBlackHole = false
    private weak var client: SimulatedStream?
    private weak var server: SimulatedStream?

    init(_ network: SimulatedNetwork, number: Int) {
        self.network = network
        self.number = number
        capacity = network.dice.pick([64, 1_000, 65_536, 1 << 20])
        latency = network.dice.pick([
            .milliseconds(2), network.faults.latency / 4, network.faults.latency,
        ])
    }

    private var scheduler: SimulationScheduler { network.scheduler }

    /// The two ends, the client's first.
    func open() -> (SimulatedStream, SimulatedStream) {
        let client = SimulatedStream(self, isServer: false)
        let server = SimulatedStream(self, isServer: true)
        client.peer = server
        server.peer = client
        self.client = client
        self.server = server
        planFault()
        return (client, server)
    }

    // MARK: Faults

    private func planFault() {
        guard network.isFaulty, let life = network.faults.connectionLife else { return }
        let delay = network.dice.wait(mean: life)
        _ = scheduler.schedule(after: delay) { [weak self] in self?.breakDown() }
    }

    private func breakDown() {
        guard !isReset, !isBlackHole, client?.isClosed == false || server?.isClosed == false
        else { return }
        switch network.dice.below(6) {
        case 0, 1:
            guard network.happens(.reset, 100) else { return }
            reset("is reset", canBeMissed: true)
        case 2:
            guard network.happens(.blackHole, 100) else { return }
            network.note("connection \(number) leads nowhere any more")
            isBlackHole = true
            for end in [client, server] {
                guard let end else { continue }
                let count = end.writtenByteCount
                _ = scheduler.schedule(after: Self.keepAliveTime.unanswered) { [weak end] in
                    if let end, end.writtenByteCount == count { end.fail(.reset) }
                }
            }
            // A kernel gives up what is not acknowledged in the end.
            _ = scheduler.schedule(
                after: network.details.duration(.seconds(20) ... .seconds(900))
            ) { [weak self] in
                self?.reset("is given up by the system")
            }
        case 3, 4:
            guard network.happens(.halfClose, 100) else { return }
            let isServer = network.details.chance(0.5)
            network.note(
                "connection \(number): the \(isServer ? "server" : "client")'s half is closed"
            )
            (isServer ? server : client)?.cutOff()
        default:
            guard network.happens(.close, 100) else { return }
            network.note("connection \(number) is closed on the way")
            client?.cutOff()
            server?.cutOff()
        }
    }

    /// Breaks the connection; an end that does not hear of it learns when it writes, or from its system.
    private func reset(_ how: String, canBeMissed: Bool = false) {
        guard !isReset else { return }
        isReset = true
        network.note("connection \(number) \(how)")
        for end in [client, server] {
            guard let end, !end.isClosed else { continue }
            // Drawn in any case, or a run without this kind of fault would be another one from here on.
            let delay = network.dice.duration(Self.hearing)
            // An end that waits for room would wait for ever.
            guard canBeMissed, !end.isBlocked,
                network.happens(.unheardReset, network.faults.unheardResets)
            else {
                _ = scheduler.schedule(after: delay) { end.fail(.reset) }
                continue
            }
            network.note("connection \(number): the \(end.name) does not hear of it")
            _ = scheduler.schedule(after: Self.keepAliveTime.answered) { [weak end] in
                end?.fail(.reset)
            }
        }
    }

    /// Whether the client's end is open and leads nowhere: the client does not know that yet.
    var isBroken: Bool {
        guard let client, !client.isClosed else { return false }
        return isReset || isBlackHole || client.direction.isCut || server?.direction.isCut != false
            || server?.isClosed != false
    }

    /// Breaks the connection, and loses what is under way.
    func breakNow() {
        // An end that has not heard of an earlier reset hears of this one.
        if isReset { for end in [client, server].compactMap(\.self) { fail(end) } }
        reset("is broken")
    }

    /// Tells an end, in a moment, that the connection is broken.
    func fail(_ end: SimulatedStream) {
        let delay = network.dice.duration(Self.hearing)
        _ = scheduler.schedule(after: delay) { end.fail(.reset) }
    }

    /// Tells the other end that the connection is broken, behind what is under way from this one.
    func failLate(behind sender: SimulatedStream) {
        guard let peer = sender.peer else { return }
        _ = scheduler.schedule(at: sender.direction.lastArrival) { [self] in fail(peer) }
    }

    // MARK: What is under way

    private func drawDelay() -> Duration {
        guard network.isFaulty else {
            return network.dice.duration(.microseconds(200) ... .milliseconds(2))
        }
        var delay = network.dice.duration(.microseconds(200)...max(latency, .milliseconds(1)))
        if network.happens(.stall, network.faults.stalls) {
            let range = .milliseconds(100)...max(network.faults.longestStall, .milliseconds(100))
            delay += network.details.spread(range)
        }
        return delay
    }

    /// Carries bytes from one end to the other.
    func carry(_ bytes: [UInt8], from sender: SimulatedStream) {
        guard !isReset else { return fail(sender) }
        guard !isBlackHole, !sender.direction.isCut else { return }
        var rest = bytes[...]
        while !rest.isEmpty {
            var count = rest.count
            if count > 1, network.happens(.split, network.faults.splits) {
                count = 1 + network.details.below(count - 1)
            }
            let piece = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            sender.direction.byteCountUnderWay += count
            network.byteCountUnderWay += count
            schedule(from: sender) { [self] peer in
                sender.direction.byteCountUnderWay -= piece.count
                network.byteCountUnderWay -= piece.count
                if isReset { fail(sender) }
                guard !isReset, !isBlackHole, !sender.isLost else { return }
                mix(piece)
                // The peer's socket is closed: its system answers with a reset.
                guard let peer, !peer.isClosed else { return fail(sender) }
                network.note("connection \(number) \(sender.arrow) \(Self.described(piece))")
                peer.arrive(piece)
                sender.mayWriteOn()
            }
        }
    }

    /// Tells the other end that nothing more comes from this one.
    func finish(from sender: SimulatedStream) {
        guard !isReset, !isBlackHole else { return }
        schedule(from: sender) { [self] peer in
            guard !isReset, !isBlackHole, !sender.isLost else { return }
            peer?.arriveEnd()
        }
    }

    /// In order, behind all that the end has sent before.
    private func schedule(
        from sender: SimulatedStream,
        _ action: @escaping @Sendable (SimulatedStream?) -> Void
    ) {
        let arrival = max(
            sender.direction.lastArrival,
            scheduler.now.advanced(by: drawDelay())
        )
        sender.direction.lastArrival = arrival
        let peer = sender.peer
        _ = scheduler.schedule(at: arrival) { [weak peer] in action(peer) }
    }

    private func mix(_ bytes: [UInt8]) {
        var hash: UInt64 = 0xBB67_AE85_84CA_A73B
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        scheduler.mix(hash)
    }

    private static func described(_ bytes: [UInt8]) -> String {
        let digits = bytes.prefix(16)
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
            .joined(separator: " ")
        return "\(bytes.count) B: \(digits)\(bytes.count > 16 ? " …" : "")"
    }
}
