import WaybillLink
import WireCore

/// The hosts of a simulated world and what lies between them.
///
/// `@unchecked Sendable`, because: only the thread that simulates touches it.
final class SimulatedNetwork: @unchecked Sendable {
    private struct Line {
        weak var line: SimulatedLine?
    }

    private struct Host {
        var isReachable = true
        /// The connections to it, in the order in which they were made.
        var lines: [Line] = []
        var acceptances: [UInt16: @Sendable (any ByteStream) -> Void] = [:]
    }

    let scheduler: SimulationScheduler
    var dice: SimulationDice
    /// For the details of the fault that has just happened: a fault that is left out takes no draw from the others.
    var details: SimulationDice
    private let reduction: SimulationReduction
    /// What goes wrong here, as this run has drawn it.
    private(set) var faults = SimulatedFaults.none
    private var hosts: [String: Host] = [:]
    private(set) var faultCounts: [SimulatedFaults.Kind: Int] = [:]
    private(set) var faultCount = 0
    private(set) var lastFault = WireInstant.zero
    private(set) var connectionCount = 0
    /// How many ends of connections are open.
    var openCount = 0
    /// How many bytes are under way.
    var byteCountUnderWay = 0

    init(_ scheduler: SimulationScheduler, _ reduction: SimulationReduction) {
        self.scheduler = scheduler
        self.reduction = reduction
        dice = SimulationDice(seed: scheduler.seed, use: 3)
        details = dice
    }

    /// The network of the world that the present thread simulates.
    static var current: SimulatedNetwork? {
        (SimulationScheduler.current?.environment?.dialer as? SimulatedDialer)?.network
    }

    // MARK: Faults

    /// Whether anything may still go wrong.
    var isFaulty: Bool { scheduler.now < WireInstant.zero.advanced(by: faults.until) }

    /// What the test has asked for.
    private(set) var wantedFaults = SimulatedFaults.none

    func setFaults(_ faults: SimulatedFaults) {
        wantedFaults = faults
        // The same variation each time, so that a value that is changed in one place only changes there.
        var dice = SimulationDice(seed: scheduler.seed, use: 7)
        self.faults = faults.varied(by: &dice)
    }

    /// Nothing goes wrong from now on, and every host can be reached.
    func heal() {
        faults.until = WireInstant.zero.duration(to: scheduler.now)
        wantedFaults.until = faults.until
        for name in hosts.keys { hosts[name]?.isReachable = true }
    }

    /// Whether something goes wrong that does in so many of a hundred cases.
    func happens(_ kind: SimulatedFaults.Kind, _ percentage: Double) -> Bool {
        guard isFaulty, dice.chance(percentage / 100) else { return false }
        faultCount += 1
        guard reduction.allows(kind, number: faultCount) else { return false }
        faultCounts[kind, default: 0] += 1
        details = SimulationDice(seed: scheduler.seed, use: 1_000 + UInt64(faultCount))
        lastFault = scheduler.now
        return true
    }

    func note(_ text: @autoclosure () -> String) {
        scheduler.trace.note(text(), at: scheduler.now)
    }

    // MARK: Hosts

    /// Lets connections to a port of a host come in.
    func listen(
        _ host: String,
        _ port: UInt16,
        _ accept: @escaping @Sendable (any ByteStream) -> Void
    ) {
        hosts[host, default: Host()].acceptances[port] = accept
    }

    /// Lets connections to a port of a host come in, which must be free.
    ///
    /// - Parameters:
    ///   - host: The host.
    ///   - port: The port; 0 for any free port.
    ///   - accept: Takes the server's end of each connection.
    /// - Returns: The port.
    /// - Throws: `LinkError.system` when the port is taken.
    func listen(
        _ host: String,
        freePort port: UInt16,
        _ accept: @escaping @Sendable (any ByteStream) -> Void
    ) throws(LinkError) -> UInt16 {
        let taken = hosts[host]?.acceptances ?? [:]
        let isFree = { (port: UInt16) in port > 0 && taken[port] == nil }
        let candidates = port > 0 ? port...port : 32_768...UInt16.max
        guard let port = candidates.first(where: isFree) else {
            // EADDRINUSE of Linux.
            throw .system(errorNumber: 98, call: "listen")
        }
        listen(host, port, accept)
        return port
    }

    func stopListening(_ host: String, _ port: UInt16) {
        hosts[host]?.acceptances[port] = nil
    }

    func setReachable(_ isReachable: Bool, _ host: String) {
        hosts[host]?.isReachable = isReachable
    }

    /// How many connections are broken without the knowledge of their clients.
    var brokenCount: Int {
        hosts.values.reduce(0) { $0 + $1.lines.count { $0.line?.isBroken == true } }
    }

    /// Breaks every connection to a host; both ends hear of it in a moment.
    func breakConnections(_ host: String) {
        for line in hosts[host]?.lines ?? [] { line.line?.breakNow() }
    }

    /// Lets go of the hosts, which hold the brokers that listen.
    func dissolve() {
        hosts = [:]
    }

    // MARK: Connections

    fileprivate enum Answer {
        case accepts(@Sendable (any ByteStream) -> Void)
        case fails(LinkError, after: Duration)
    }

    /// What becomes of a connection attempt.
    fileprivate func answer(_ endpoint: Endpoint, within timeout: Duration) -> Answer {
        guard let host = hosts[endpoint.host] else {
            let reason = "no such host in this world"
            return .fails(
                .nameNotResolved(host: endpoint.host, reason: reason),
                after: .milliseconds(1)
            )
        }
        if !host.isReachable {
            return dice.chance(0.5)
                ? .fails(.timedOut, after: timeout)
                : .fails(.unreachable(errorNumber: 113), after: .milliseconds(1))
        }
        if happens(.silence, faults.silences) {
            note("an attempt at \(endpoint) is not answered")
            return .fails(.timedOut, after: timeout)
        }
        guard let accept = host.acceptances[endpoint.port] else {
            return .fails(.refused, after: .milliseconds(1))
        }
        if happens(.refusal, faults.refusals) {
            note("an attempt at \(endpoint) is refused")
            return .fails(.refused, after: details.duration(.zero ... .milliseconds(500)))
        }
        return .accepts(accept)
    }

    fileprivate func connect(
        _ endpoint: Endpoint,
        _ accept: @escaping @Sendable (any ByteStream) -> Void
    ) -> SimulatedStream {
        connectionCount += 1
        let line = SimulatedLine(self, number: connectionCount)
        hosts[endpoint.host]?.lines.removeAll { $0.line == nil }
        hosts[endpoint.host]?.lines.append(Line(line: line))
        let (client, server) = line.open()
        note("connection \(line.number) to \(endpoint)")
        // The server may hear of it before the client or after.
        if dice.chance(0.5) {
            scheduler.calmly { accept(server) }
        } else {
            let delay = dice.duration(.zero ... .milliseconds(50))
            _ = scheduler.schedule(after: delay) { [scheduler] in
                scheduler.calmly { accept(server) }
            }
        }
        return client
    }
}

/// Connects to the hosts of a simulated world.
struct SimulatedDialer: Dialer {
    let network: SimulatedNetwork

    /// The outcome of one attempt, and the task that waits for it.
    ///
    /// `@unchecked Sendable`, because: only the thread that simulates touches it.
    private final class Attempt: @unchecked Sendable {
        private(set) var result: Result<SimulatedStream, LinkError>?
        private var waiter: CheckedContinuation<Void, Never>?

        func conclude(_ result: Result<SimulatedStream, LinkError>) {
            guard self.result == nil else { return }
            self.result = result
            waiter.take()?.resume()
        }

        func wait(_ continuation: CheckedContinuation<Void, Never>) {
            if result != nil { continuation.resume() } else { waiter = continuation }
        }
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let attempt = Attempt()
        begin(attempt, endpoint, within: timeout)
        await withTaskCancellationHandler {
            await withCheckedContinuation { attempt.wait($0) }
        } onCancel: {
            attempt.conclude(.failure(.cancelled))
        }
        guard let result = attempt.result else { throw .cancelled }
        return try result.get()
    }

    private func begin(_ attempt: Attempt, _ endpoint: Endpoint, within timeout: Duration) {
        let scheduler = network.scheduler
        switch network.answer(endpoint, within: timeout) {
        case .fails(let error, let delay):
            _ = scheduler.schedule(after: min(delay, timeout)) {
                attempt.conclude(.failure(error))
            }
        case .accepts(let accept):
            let longest: Duration = network.isFaulty ? .seconds(3) : .milliseconds(10)
            let delay = network.dice.spread(.microseconds(500)...longest)
            _ = scheduler.schedule(after: min(delay, timeout)) { [network] in
                guard delay < timeout else { return attempt.conclude(.failure(.timedOut)) }
                guard attempt.result == nil else { return }
                attempt.conclude(.success(network.connect(endpoint, accept)))
            }
        }
    }

    /// The same: what TLS adds is not simulated.
    func secured(by settings: TLSSettings) -> any Dialer { self }
}
