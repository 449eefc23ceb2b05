import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSession
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("Several hosts", .inSimulation, .timeLimit(.minutes(30))) struct FailoverTests {
    private static func failure(_ code: WaybillError.Code) -> WaybillError {
        WaybillError(code, "not today", peerReason: code.name)
    }

    /// Fails with these codes, host by host, and returns the hosts that were tried.
    private func run(
        _ codes: [WaybillError.Code?],
        hosts: [String] = ["b", "c:1"]
    ) async -> (tried: [String], error: WaybillError?) {
        var rest = codes[...]
        var tried: [String] = []
        do {
            try await Failover.fixture(FailoverOptions(hosts: hosts)).first { route in
                tried.append(route.address.endpoint.description)
                if let code = rest.removeFirst() { throw Self.failure(code) }
            }
            return (tried, nil)
        } catch {
            return (tried, error as? WaybillError)
        }
    }

    @Test("The URL's host first, then the others, until one accepts")
    func inOrder() async {
        #expect(await run([nil]).tried == ["a:1883"])
        #expect(await run([.connectionRefused, nil]).tried == ["a:1883", "b:1883"])
        #expect(await run([.timedOut, .tls, nil]).tried == ["a:1883", "b:1883", "c:1"])
    }

    @Test("A host that has sent its clients elsewhere comes last, until another one does so")
    func avoided() async throws {
        let failover = Failover.fixture(FailoverOptions(hosts: ["b", "c"]))
        let nowhere = ServerRedirect(isPermanent: false, servers: [])
        func order() async -> [String] {
            let hosts = Locked<[String]>([])
            try? await failover.first(isReconnection: true) { route in
                hosts.withLock { $0.append(route.address.endpoint.host) }
                throw Self.failure(.timedOut)
            }
            return hosts.withLock { $0 }
        }
        #expect(failover.note(nowhere, by: failover.routes[0]).hasAlternatives)
        #expect(await order() == ["b", "c", "a"])
        #expect(failover.note(nowhere, by: failover.routes[1]).hasAlternatives)
        #expect(await order() == ["a", "c", "b"])
        let alone = Failover.fixture(FailoverOptions())
        #expect(!alone.note(nowhere, by: alone.routes[0]).hasAlternatives)
    }

    @Test("A server that another one names has the same scheme, path and credentials, and its port")
    func named() async throws {
        let failover = Failover.fixture(FailoverOptions(), maximumHops: 1)
        let tried = Locked<[ServiceAddress]>([])
        let redirect = ServerRedirect(
            isPermanent: false,
            servers: [.init(name: "x", port: nil), .init(name: "::1", port: 7)]
        )
        let error = await #expect(throws: WaybillError.self) {
            try await failover.first { route in
                tried.withLock { $0.append(route.address) }
                if route.address.endpoint.host == "a" { _ = failover.note(redirect, by: route) }
                throw Self.failure(.rejected)
            }
        }
        let addresses = tried.withLock { $0 }
        #expect(addresses.map(\.endpoint.description) == ["a:1883", "x:1883"])
        #expect(addresses.allSatisfy { $0.moved(to: addresses[0].endpoint) == addresses[0] })
        // The refusal of a server that was referred to is as final as that of a host.
        #expect(error?.code == .rejected && error?.underlying == nil)
    }

    @Test(
        "What may be one host's own leads to the next, any other no is final",
        arguments: [
            (WaybillError.Code.connectionRefused, true), (.connectionLost, true),
            (.timedOut, true), (.tls, true), (.protocolViolation, true),
            (.unauthorized, false), (.rejected, false), (.unsupported, false),
            (.invalidEntry, false), (.limitExceeded, false), (.notConnected, false),
            (.shutDown, false),
        ]
    )
    func goingOn(code: WaybillError.Code, goesOn: Bool) async {
        let (tried, error) = await run([code, nil, nil])
        #expect(tried.count == (goesOn ? 2 : 1))
        #expect(error?.code == (goesOn ? nil : code))
        #expect(error?.underlying == nil)
    }

    @Test(
        "What this side lacks no other host can give",
        arguments: [
            TLSFailure.Reason.libraryMissing, .invalidOptions,
        ]
    )
    func ownFault(reason: TLSFailure.Reason) {
        var error = Self.failure(.tls)
        error.underlying = TLSFailure(reason)
        #expect(!error.mayBeOneHostsOwn)
        error.underlying = TLSFailure(.expired)
        #expect(error.mayBeOneHostsOwn)
    }

    @Test("When all fail the error says how each did, and has the code that gives most hope")
    func allFail() async throws {
        let (tried, error) = await run([.timedOut, .connectionRefused, .tls])
        #expect(tried.count == 3)
        #expect(error?.code == .connectionRefused)
        #expect(error?.peerReason == "connectionRefused")
        #expect(
            error?.message == """
                no host could be connected to: a:1883: not today; b:1883: not today; c:1: not today
                """
        )
        let failure = try #require(error?.underlying as? FailoverFailure)
        #expect(failure.attempts.map(\.host) == ["a:1883", "b:1883", "c:1"])
        #expect(failure.attempts.map(\.error.code) == [.timedOut, .connectionRefused, .tls])
        #expect(await run([.tls, .tls, .tls]).error?.code == .tls)
    }

    @Test("A single host fails as it ever did")
    func single() async {
        let error = await run([.connectionRefused], hosts: []).error
        #expect(error?.message == "not today")
        #expect(error?.underlying == nil)
        // The same host and port again is not another host.
        #expect(await run([.connectionRefused], hosts: ["a", "a:1883"]).tried == ["a:1883"])
    }

    @Test("Shuffled, the order is drawn anew for each connect, and every order may come")
    func shuffled() {
        let generator = Locked(UInt64(1))
        let failover = Failover.fixture(
            FailoverOptions(hosts: ["b", "c"], order: .shuffled),
            random: {
                generator.withLock { state in
                    // SplitMix64.
                    state &+= 0x9E37_79B9_7F4A_7C15
                    var word = state
                    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
                    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
                    return word ^ (word >> 31)
                }
            }
        )
        var counts: [String: Int] = [:]
        for _ in 0..<600 {
            let order = failover.arranged().map(\.address.endpoint.host).joined()
            counts[order, default: 0] += 1
        }
        #expect(counts.count == 6)
        #expect(counts.values.allSatisfy { $0 > 60 })
        #expect(failover.routes.map(\.address.endpoint.host) == ["a", "b", "c"])
        let still = Failover.fixture(FailoverOptions(hosts: ["b"], order: .shuffled))
        #expect(still.arranged().map(\.address.endpoint.host) == ["b", "a"])
    }

    @Test("Cancelled between two hosts, the next is not tried")
    func cancelled() async {
        let tried = Locked(0)
        let task = Task {
            try await Failover.fixture(FailoverOptions(hosts: ["b"])).first { _ in
                tried.withLock { $0 += 1 }
                withUnsafeCurrentTask { $0?.cancel() }
                throw Self.failure(.connectionRefused)
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(tried.withLock { $0 } == 1)
    }

    @Test(
        "How another host is written",
        arguments: [
            ("b", "b:1883"), ("b:1", "b:1"), ("127.0.0.1", "127.0.0.1:1883"),
            ("127.0.0.1:65535", "127.0.0.1:65535"), ("[::1]", "[::1]:1883"), ("[::1]:2", "[::1]:2"),
            ("", nil), (":1", nil), ("b:", nil), ("b:0", nil), ("b:65536", nil), ("b:+1", nil),
            ("b:x", nil), ("::1", nil), ("[::1", nil), ("[::1]x", nil), ("[b]", nil), ("[]", nil),
            ("u:secret@b", nil), ("mqtt://b", nil), ("b/p", nil), ("b c", nil),
        ] as [(String, String?)]
    )
    func writing(host: String, expected: String?) throws {
        let address = try ServiceAddress(
            ServiceAddress.url("mqtt://u:p@a"),
            for: "MQTT",
            schemes: [.tcp("mqtt", port: 1_883)]
        )
        do {
            let moved = try address.moved(to: host)
            #expect(moved.endpoint.description == expected)
            #expect(
                moved.userName == "u" && moved.password == "p" && moved.scheme == address.scheme
            )
        } catch {
            #expect(expected == nil)
            #expect(error.code == .invalidEntry)
            #expect(!error.message.contains("secret"))
        }
    }

    // MARK: In the life cycle

    @Test("A connect goes from host to host, each with its own time and its own session")
    func lifecycle() async throws {
        let busy = FakeConnection { $0.end(Self.failure(.connectionRefused)) }
        let open = FakeConnection { $0.accept() }
        let tried = Locked<[String]>([])
        var fixture = LifecycleFixture([busy, open], hosts: ["b", "c"]) { host, timeout in
            #expect(timeout == .seconds(3))
            tried.withLock { $0.append(host) }
            if host == "a:1883" { throw Self.failure(.timedOut) }
        }
        let receipt = try await fixture.lifecycle.connect("hello", timeout: .seconds(3))
        #expect(receipt.reason == "welcome")
        #expect(tried.withLock { $0 } == ["a:1883", "b:1883", "c:1883"])
        #expect(fixture.lifecycle.connected === open)
        // The connection to the first host is closed. Its end is not taken for the end of the second connection.
        #expect(busy.log == ["begin hello", "disconnect"])
        #expect(open.log == ["begin hello"])
        open.end(Self.failure(.connectionLost))
        let states = await fixture.reported()
        #expect(states.count == 3)
        #expect(states.prefix(2) == ["connecting (attempt 1)", "connected"])
        #expect(states.last?.hasPrefix("disconnected (connectionLost") == true)
    }

    @Test("After a lost connection the next connect begins with the first host again")
    func again() async throws {
        let first = FakeConnection { $0.accept() }
        let second = FakeConnection { $0.accept() }
        let tried = Locked<[String]>([])
        let lifecycle = LifecycleFixture([first, second], hosts: ["b"]) { host, _ in
            let count = tried.withLock { tried in
                tried.append(host)
                return tried.count
            }
            if count == 1 { throw Self.failure(.connectionRefused) }
        }.lifecycle
        _ = try await lifecycle.connect("one", timeout: nil)
        first.end(Self.failure(.connectionLost))
        _ = try await lifecycle.connect("two", timeout: nil)
        #expect(tried.withLock { $0 } == ["a:1883", "b:1883", "a:1883"])
        await lifecycle.shutdown()
    }

    @Test("Hosts that end a connection too soon come last, until a healthy connection has ended")
    func unsteady() {
        typealias Row = (ends: [(String, wasHealthy: Bool)], order: String)
        let rows: [Row] = [
            ([], "abc"),
            ([("a", false)], "bca"),
            ([("b", false)], "acb"),
            ([("a", false), ("b", false)], "cab"),
            // All are unsteady: they take turns.
            ([("a", false), ("b", false), ("c", false)], "abc"),
            ([("a", false), ("b", false), ("c", false), ("a", false)], "bca"),
            ([("a", false), ("a", false)], "bca"),
            ([("a", false), ("b", true)], "abc"),
            ([("b", true)], "abc"),
            ([("x", false)], "abc"),
        ]
        for row in rows {
            var hosts = UnsteadyHosts()
            for (name, wasHealthy) in row.ends {
                hosts.noteEnd(of: Endpoint(host: name, port: 1), wasHealthy: wasHealthy)
            }
            let order = hosts.last(in: ["a", "b", "c"]) { Endpoint(host: $0, port: 1) }
            #expect(order.joined() == row.order)
        }
    }

    @Test("A host that accepts and hangs up, again and again, does not keep its clients")
    func acceptsAndHangsUp() async throws {
        let clock = ManualClock()
        let tried = Locked<[String]>([])
        // Every host does so twice. The third time, the third host keeps its client.
        let sessions = (0..<9).map { number in
            FakeConnection { connection in
                connection.accept()
                if number < 8 { connection.end(Self.failure(.connectionLost)) }
            }
        }
        var policy = ReconnectionPolicy()
        policy.maximumDelay = .seconds(8)
        let lifecycle = LifecycleFixture(
            sessions,
            hosts: ["b", "c"],
            reconnection: policy,
            clock: clock
        ) { host, _ in
            tried.withLock { $0.append(String(host.prefix(1))) }
        }.lifecycle
        let connecting = Task { try await lifecycle.connect("hello", timeout: nil) }
        try await waitUntil(moving: { clock.advance(by: .milliseconds(20)) }) {
            lifecycle.connected === sessions[8]
        }
        _ = try? await connecting.value
        #expect(tried.withLock { $0.joined() } == "abcabcabc")
        await lifecycle.shutdown()
    }

    @Test("Refused credentials are final, and no further host is asked")
    func credentials() async {
        let no = FakeConnection { $0.end(Self.failure(.unauthorized)) }
        let other = FakeConnection { $0.accept() }
        let lifecycle = LifecycleFixture([no, other], hosts: ["b"]).lifecycle
        let error = await #expect(throws: WaybillError.self) {
            try await lifecycle.connect("hello", timeout: nil)
        }
        #expect(error?.code == .unauthorized)
        #expect(other.log == [])
    }

    @Test("Credentials that one host took and the next one refuses are replaced once more")
    func expiredMeanwhile() async throws {
        let no = FakeConnection { $0.end(Self.failure(.unauthorized)) }
        let lost = FakeConnection(refusesToResume: Self.failure(.timedOut)) { $0.accept() }
        let late = FakeConnection { $0.end(Self.failure(.unauthorized)) }
        let fine = FakeConnection { $0.accept() }
        let refusals = Locked(0)
        let lifecycle = LifecycleFixture(
            [no, lost, late, fine],
            hosts: ["b"],
            prepare: { greeting, occasion in
                if occasion.refusal != nil { refusals.withLock { $0 += 1 } }
                return greeting
            },
            canReplaceCredentials: true
        ).lifecycle
        _ = try await lifecycle.connect("hello", timeout: nil)
        #expect(refusals.withLock { $0 } == 2)
        await lifecycle.shutdown()
    }

    @Test("Disconnecting while a host is tried ends the connect; the others are left alone")
    func disconnected() async throws {
        let begun = Promise<Void>()
        let silent = FakeConnection { _ in begun.resolve(.success(())) }
        let other = FakeConnection { $0.accept() }
        let lifecycle = LifecycleFixture([silent, other], hosts: ["b"]).lifecycle
        let connecting = Task { try await lifecycle.connect("hello", timeout: nil) }
        try await begun.value()
        try await lifecycle.disconnect()
        let error = await #expect(throws: WaybillError.self) { try await connecting.value }
        #expect(error?.code == .notConnected)
        #expect(other.log == [])
    }
}
