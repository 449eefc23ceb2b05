import Testing
import Waybill
import WaybillLink
import WaybillSession
import WaybillTesting
import WireCore

/// What comes before what when a connection is made, and what is a reason to make one.
@Suite("Precedence of credentials and hints") struct PrecedenceTests {
    private struct NoDialer: Dialer {
        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            throw .refused
        }
    }

    /// A network that changes when a test says so.
    private final class Network: Reachability {
        private let told = Locked<(@Sendable (NetworkReach) -> Void)?>(nil)

        var isWatched: Bool { told.withLock { $0 != nil } }

        func start(_ report: @escaping @Sendable (NetworkReach) -> Void) {
            told.withLock { $0 = report }
        }

        func stop() { told.withLock { $0 = nil } }

        func change(_ isReachable: Bool, _ interface: String?) {
            let report = told.withLock { $0 }
            report?(NetworkReach(isReachable: isReachable, interface: interface))
        }
    }

    private func environment(_ network: Network? = nil) -> LinkEnvironment {
        var reachability: (@Sendable () -> any Reachability)?
        if let network { reachability = { network } }
        return LinkEnvironment(
            dialer: NoDialer(),
            clock: ManualClock().linkTimers,
            random: { 0 },
            makeReachability: reachability
        )
    }

    @Test(
        "What a connect states comes before the credentials of a source, field by field",
        arguments: [(nil, nil), ("ada", nil), (nil, "right"), ("ada", "right")]
    )
    func stated(userName: String?, password: String?) async throws {
        let source = CredentialSource { _ in
            Credentials(
                userName: "bob",
                password: "other",
                headers: ["authorization": "other", "X-More": "2"]
            )
        }
        var request = Request(topic: nil, command: .connect)
        if let userName { request.command[.userName] = userName }
        if let password { request.command[.password] = password }
        request.command[.upgradeHeaders] = ["Authorization": "stated", "X-Own": "1"]
        var occasion = ConnectOccasion(isReconnection: false)
        let adapted = try await occasion.adapted(
            request,
            askingAt: CredentialProvider(source, in: environment()),
            in: ServiceAddresses(for: "MQTT", schemes: [.tcp("mqtt", port: 1_883)])
        )
        #expect(adapted.command[.userName] == userName ?? "bob")
        #expect(adapted.command[.password] == password ?? "other")
        let expected: Headers = ["Authorization": "stated", "X-Own": "1", "X-More": "2"]
        #expect(adapted.command[.upgradeHeaders] == expected)
    }

    @Test("In the offline queue the shorter of its time to live and the message's expiry counts")
    func queueLimit() {
        for (timeToLive, expiry, expected) in [
            (5, 9, 5), (9, 5, 5), (nil, 5, 5), (nil, nil, 30), (60, nil, 60), (nil, 60, 30),
        ] as [(Int?, Int?, Int)] {
            var policy = OfflinePolicy()
            policy.timeToLive = timeToLive.map { .seconds($0) }
            var command = EntryCommand.send
            if let expiry { command[.storedExpiry] = .seconds(expiry) }
            let terms = SendTerms(isLasting: false, command: command, begun: .zero)
            let limit = terms.queueLimit(policy, acknowledgement: .seconds(30), at: .zero)
            #expect(limit == .seconds(expected))
        }
    }

    @Test("The app's own connect tries the credentials again: it may have others by now")
    func ownConnect() throws {
        let connection = FakeConnection()
        var machine = ConnectionMachine<FakeConnection>(ReconnectionPolicy())
        _ = try machine.connect()
        _ = machine.accepted(connection, by: 1, at: .zero, random: { 0 })
        machine.trial.noteReplaced()
        let loss = WaybillError(.connectionLost, "lost")
        _ = machine.ended(connection, of: 1, loss, hasProgress: false, at: .zero, random: { 0 })
        #expect(!machine.trial.asks(after: .silence))
        _ = try machine.connect()
        #expect(machine.trial.asks(after: .silence))
    }

    @Test("A network that is back, or another one, is a reason to connect; the first report is not")
    func network() {
        let (network, listener) = (Network(), HintListener())
        let hints = Locked([ConnectionHint]())
        listener.start([], in: environment(network)) { hint in
            hints.withLock { $0.append(hint) }
        }
        for (isReachable, interface, count) in [
            (true, "a", 0), (true, "a", 0), (true, "b", 1), (false, nil, 1), (true, "b", 2),
            (true, nil, 3),
        ] {
            network.change(isReachable, interface)
            #expect(hints.withLock { $0.count } == count)
        }
        #expect(hints.withLock { $0 }.allSatisfy { $0 == .retryNow })
        listener.stop()
        #expect(!network.isWatched)
    }
}
