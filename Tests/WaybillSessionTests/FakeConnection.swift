import Waybill
import WaybillLink
import WaybillSession
import WaybillTesting
import WireCore

/// A connection without a network, which does what a test says.
final class FakeConnection: TransportConnection {
    private struct State: Sendable {
        var onEnd: (@Sendable (WaybillError?) -> Void)?
        var log: [String] = []
    }

    private let state = Locked(State())
    /// Resolves with the peer's answer.
    let acceptance = Promise<Receipt>()
    /// Called when the connection has begun.
    private let didBegin: @Sendable (FakeConnection) -> Void

    /// True when resuming is logged.
    private let resumesAloud: Bool
    /// Resolves when an orderly end is over; nil for at once.
    private let closing: Promise<Void>?
    /// The error of `resume`; nil when it succeeds.
    private let refusesToResume: WaybillError?
    let hasProgress: Bool

    init(
        resumesAloud: Bool = false,
        refusesToResume: WaybillError? = nil,
        closing: Promise<Void>? = nil,
        hasProgress: Bool = false,
        didBegin: @escaping @Sendable (FakeConnection) -> Void = { _ in }
    ) {
        self.resumesAloud = resumesAloud
        self.refusesToResume = refusesToResume
        self.closing = closing
        self.hasProgress = hasProgress
        self.didBegin = didBegin
    }

    /// The calls in order.
    var log: [String] { state.withLock { $0.log } }

    func begin(
        _ greeting: String,
        onEnd: @escaping @Sendable (WaybillError?) -> Void
    ) async throws -> Receipt {
        state.withLock { state in
            state.onEnd = onEnd
            state.log.append("begin \(greeting)")
        }
        didBegin(self)
        return try await acceptance.value()
    }

    var now: WireInstant { .zero }

    func resume(_ receipt: Receipt) async throws {
        if resumesAloud { note("resume") }
        if let refusesToResume { throw refusesToResume }
    }

    func over() async throws {}

    func drain(within timeout: Duration) async {}

    func disconnect(within timeout: Duration, abandonment: WaybillError?) async {
        note("disconnect" + (abandonment.map { " \($0.code.name)" } ?? ""))
        await closing?.waitUntilResolved()
        end(nil)
    }

    func disconnectNow() {
        note("disconnect now")
        end(nil)
    }

    func accept() {
        acceptance.resolve(.success(Receipt(reason: "welcome")))
    }

    /// Ends the connection; further calls do nothing.
    func end(_ cause: WaybillError?) {
        let failure = cause ?? WaybillError(.notConnected, "ended")
        acceptance.resolve(.failure(failure))
        state.withLock { $0.onEnd.take() }?(cause)
    }

    private func note(_ line: String) {
        state.withLock { $0.log.append(line) }
    }
}

/// What a transport does, as a test says.
struct FakeDialect: ConnectionDialect {
    let canReplaceCredentials: Bool
    let onPrepare: @Sendable (String, inout ConnectOccasion) async throws -> String
    let onOpen: @Sendable (Failover.Route, Duration) throws -> FakeConnection
    let onConclude: @Sendable (WaybillError?, Bool) -> Void

    func prepare(_ greeting: String, _ occasion: inout ConnectOccasion) async throws -> String {
        try await onPrepare(greeting, &occasion)
    }

    func open(
        _ route: Failover.Route,
        within timeout: Duration,
        _ greeting: String
    ) async throws -> FakeConnection {
        try onOpen(route, timeout)
    }

    func conclude(_ cause: WaybillError?, isForGood: Bool) {
        onConclude(cause, isForGood)
    }
}

/// A life cycle over prepared connections, and the states that it reports.
struct LifecycleFixture {
    let lifecycle: ConnectionLifecycle<FakeConnection>
    private var observer: ConnectionStates.AsyncIterator

    /// - Parameters:
    ///   - sessions: One connection for each attempt.
    ///   - hosts: The other hosts.
    ///   - connectsOnDemand: True when a request connects.
    ///   - reconnection: The policy for reconnections.
    ///   - offlineQueue: The policy for sends without a connection.
    ///   - clock: The clock of all waits.
    ///   - random: The random number of every draw.
    ///   - prepare: Prepares greetings.
    ///   - canReplaceCredentials: True when new credentials may end a refusal.
    ///   - conclude: Called at the end.
    ///   - onOpen: Called before each attempt with the host and its time.
    init(
        _ sessions: [FakeConnection],
        hosts: [String] = [],
        connectsOnDemand: Bool = true,
        reconnection: ReconnectionPolicy = .never,
        offlineQueue: OfflinePolicy = .off,
        clock: ManualClock = ManualClock(),
        random: UInt64 = .max,
        onOpen: @escaping @Sendable (String, Duration) throws -> Void = { _, _ in },
        prepare: @escaping @Sendable (String, inout ConnectOccasion) async throws -> String = {
            greeting,
            _ in greeting
        },
        canReplaceCredentials: Bool = false,
        conclude: @escaping @Sendable (WaybillError?, Bool) -> Void = { _, _ in }
    ) {
        let rest = Locked(sessions)
        lifecycle = ConnectionLifecycle(
            ConnectionSettings(
                connectsOnDemand: connectsOnDemand,
                connectTimeout: .seconds(10),
                closeTimeout: .seconds(5)
            ),
            reconnecting: reconnection,
            offlineQueue: offlineQueue,
            Failover.fixture(FailoverOptions(hosts: hosts)),
            in: LinkEnvironment(
                dialer: Failover.NoDialer(),
                clock: clock.linkTimers,
                random: { random }
            ),
            FakeDialect(
                canReplaceCredentials: canReplaceCredentials,
                onPrepare: prepare,
                onOpen: { route, timeout in
                    try onOpen(route.address.endpoint.description, timeout)
                    guard let session = rest.withLock({ $0.isEmpty ? nil : $0.removeFirst() })
                    else {
                        throw WaybillError(.connectionRefused, "no session is left")
                    }
                    return session
                },
                onConclude: conclude
            )
        )
        observer = lifecycle.states.states.makeAsyncIterator()
    }

    /// All states so far. A state of a known kind is reported last, to mark the end.
    mutating func reported() async -> [String] {
        lifecycle.states.report(.idle)
        var found: [String] = []
        _ = await observer.next()
        while let state = await observer.next() {
            if case .idle = state { break }
            found.append("\(state)")
        }
        return found
    }
}

extension Failover {
    /// Hosts that cannot be reached. The first one is `a`.
    static func fixture(
        _ options: FailoverOptions,
        maximumHops: Int = 0,
        random: @escaping @Sendable () -> UInt64 = { 0 }
    ) -> Failover {
        let environment = LinkEnvironment(
            dialer: NoDialer(),
            clock: ManualClock().linkTimers,
            random: random
        )
        do {
            let address = try ServiceAddress(
                ServiceAddress.url("mqtt://a"),
                for: "MQTT",
                schemes: [.tcp("mqtt", port: 1_883)]
            )
            return try Failover(
                address,
                options,
                in: environment,
                maximumHops: { _ in maximumHops }
            ) { _ in environment }
        } catch {
            fatalError("\(error)")
        }
    }

    fileprivate struct NoDialer: Dialer {
        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            throw .unsupported("dialing")
        }
    }
}
