import Testing
import TransportTestSupport
import Waybill
import WaybillSession
import WireTestSupport

@Suite("The life cycle of connections", .inSimulation, .timeLimit(.minutes(30)))
struct ConnectionLifecycleTests {
    private static let request = Request(topic: "t", command: .send)
    private static let lost = WaybillError(.connectionLost, "lost")

    private func expect<T>(
        _ code: WaybillError.Code,
        _ location: SourceLocation = #_sourceLocation,
        _ body: () async throws -> T
    ) async {
        do {
            _ = try await body()
            Issue.record("no error", sourceLocation: location)
        } catch {
            let found = (error as? WaybillError)?.code
            #expect(found == code, "\(error)", sourceLocation: location)
        }
    }

    /// A connection that has begun and is not accepted, and a promise for its begin.
    private func silent() -> (FakeConnection, Promise<Void>) {
        let begun = Promise<Void>()
        return (FakeConnection { _ in begun.resolve(.success(())) }, begun)
    }

    @Test("Connect, disconnect: each state once, and the peer's words come back")
    func connectAndDisconnect() async throws {
        let session = FakeConnection { $0.accept() }
        var fixture = LifecycleFixture([session])
        let lifecycle = fixture.lifecycle
        #expect(lifecycle.connected == nil)
        let receipt = try await lifecycle.connect("hello", timeout: nil)
        #expect(receipt.reason == "welcome")
        #expect(lifecycle.connected === session)
        #expect(try lifecycle.requests.current(for: Self.request) === session)
        try await lifecycle.disconnect()
        try await lifecycle.disconnect()
        #expect(lifecycle.connected == nil)
        #expect(session.log == ["begin hello", "disconnect"])
        #expect(
            await fixture.reported() == ["connecting (attempt 1)", "connected", "disconnected"]
        )
    }

    @Test("A second connect is refused while connecting and while connected")
    func connectTwice() async throws {
        let (session, begun) = silent()
        let lifecycle = LifecycleFixture([session]).lifecycle
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        await expect(.rejected) { try await lifecycle.connect("b", timeout: nil) }
        session.accept()
        _ = try await connecting.value
        await expect(.rejected) { try await lifecycle.connect("c", timeout: nil) }
        #expect(session.log == ["begin a"])
        await lifecycle.shutdown()
    }

    @Test("Requests share the connection that the first of them asks for")
    func onDemand() async throws {
        let (session, begun) = silent()
        var fixture = LifecycleFixture([session])
        let lifecycle = fixture.lifecycle
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await lifecycle.requests.connection(for: Self.request) { "on demand" }
                        === session
                }
            }
            try await begun.value()
            session.accept()
            for try await isSame in group { #expect(isSame) }
        }
        #expect(session.log == ["begin on demand"])
        #expect(await fixture.reported() == ["connecting (attempt 1)", "connected"])
        await lifecycle.shutdown()
    }

    @Test("Without connecting on demand, a request waits for an attempt at most")
    func noDemand() async throws {
        let (session, begun) = silent()
        let lifecycle = LifecycleFixture([session], connectsOnDemand: false).lifecycle
        await expect(.notConnected) {
            try await lifecycle.requests.connection(for: Self.request) { "never" }
        }
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        let waiting = Task {
            try await lifecycle.requests.connection(for: Self.request) { "never" }
        }
        session.accept()
        _ = try await connecting.value
        #expect(try await waiting.value === session)
        await lifecycle.shutdown()
    }

    @Test("A request that needs a connection names itself in the error")
    func notConnected() throws {
        let lifecycle = LifecycleFixture([]).lifecycle
        #expect {
            try lifecycle.requests.current(for: Self.request)
        } throws: { error in
            let error = error as? WaybillError
            return error?.code == .notConnected && error?.topic == "t" && error?.command == "send"
        }
    }

    @Test("An attempt that fails tells why, once; the next one starts afresh")
    func refused() async throws {
        let refusing = FakeConnection { $0.end(WaybillError(.unauthorized, "no")) }
        let fine = FakeConnection { $0.accept() }
        var fixture = LifecycleFixture([refusing, fine])
        let lifecycle = fixture.lifecycle
        await expect(.unauthorized) { try await lifecycle.connect("a", timeout: nil) }
        _ = try await lifecycle.connect("b", timeout: nil)
        await lifecycle.shutdown()
        #expect(
            await fixture.reported() == [
                "connecting (attempt 1)", "disconnected (unauthorized: no)",
                "connecting (attempt 1)", "connected", "disconnected",
            ]
        )
    }

    @Test("Disconnecting ends an attempt, and waits until it has cleaned up")
    func disconnectWhileConnecting() async throws {
        let (session, begun) = silent()
        var fixture = LifecycleFixture([session])
        let lifecycle = fixture.lifecycle
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        try await lifecycle.disconnect()
        #expect(session.log == ["begin a", "disconnect"])
        await expect(.notConnected) { try await connecting.value }
        #expect(await fixture.reported() == ["connecting (attempt 1)", "disconnected"])
    }

    @Test(
        "Disconnecting at the moment of acceptance leaves no connection behind",
        arguments: 0..<50
    )
    func disconnectWhileAccepted(round: Int) async throws {
        let (session, begun) = silent()
        var fixture = LifecycleFixture([session])
        let lifecycle = fixture.lifecycle
        let connecting = Task { try? await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        session.accept()
        for _ in 0..<round % 10 { await Task.yield() }
        try await lifecycle.disconnect()
        _ = await connecting.value
        #expect(lifecycle.connected == nil)
        #expect(session.log.contains("disconnect"))
        let states = await fixture.reported()
        #expect(states.first == "connecting (attempt 1)" && states.last == "disconnected")
        #expect(states.count { $0 == "disconnected" } == 1)
    }

    @Test("Shutting down ends an attempt with its reason, and everything after")
    func shutdownWhileConnecting() async throws {
        let (session, begun) = silent()
        var fixture = LifecycleFixture([session])
        let lifecycle = fixture.lifecycle
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        await lifecycle.shutdown()
        await lifecycle.shutdown()
        await expect(.shutDown) { try await connecting.value }
        await expect(.shutDown) { try await lifecycle.connect("b", timeout: nil) }
        await expect(.shutDown) { try await lifecycle.disconnect() }
        await expect(.shutDown) { try lifecycle.requests.current(for: Self.request) }
        await expect(.shutDown) {
            try await lifecycle.requests.connection(for: Self.request) { "c" }
        }
        #expect(session.log == ["begin a", "disconnect"])
        #expect(await fixture.reported() == ["connecting (attempt 1)", "disconnected"])
    }

    @Test("Shutting down a connection fails its calls with shutDown")
    func shutdownWhileConnected() async throws {
        let session = FakeConnection { $0.accept() }
        var fixture = LifecycleFixture([session])
        _ = try await fixture.lifecycle.connect("a", timeout: nil)
        await fixture.lifecycle.shutdown()
        #expect(session.log == ["begin a", "disconnect shutDown"])
        #expect(
            await fixture.reported() == ["connecting (attempt 1)", "connected", "disconnected"]
        )
    }

    @Test("A session that ends by itself is told once, with its cause, and replaced on demand")
    func sessionEnds() async throws {
        let first = FakeConnection { $0.accept() }
        let second = FakeConnection { $0.accept() }
        var fixture = LifecycleFixture([first, second])
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        first.end(Self.lost)
        #expect(lifecycle.connected == nil)
        #expect(try await lifecycle.requests.connection(for: Self.request) { "b" } === second)
        #expect(
            await fixture.reported() == [
                "connecting (attempt 1)", "connected", "disconnected (connectionLost: lost)",
                "connecting (attempt 1)", "connected",
            ]
        )
        await lifecycle.shutdown()
    }

    @Test("A peer that accepts and hangs up at once leaves no dead connection behind")
    func hangsUpAtOnce() async throws {
        let first = FakeConnection {
            $0.accept()
            $0.end(Self.lost)
        }
        let second = FakeConnection { $0.accept() }
        var fixture = LifecycleFixture([first, second])
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        #expect(lifecycle.connected == nil)
        #expect(try await lifecycle.requests.connection(for: Self.request) { "b" } === second)
        #expect(
            await fixture.reported().prefix(3) == [
                "connecting (attempt 1)", "connected", "disconnected (connectionLost: lost)",
            ]
        )
        await lifecycle.shutdown()
    }

    @Test("When all waiting calls are cancelled, the attempt is cancelled, too")
    func everybodyCancelled() async throws {
        let (session, begun) = silent()
        let lifecycle = LifecycleFixture([session]).lifecycle
        let waiting = Task { try await lifecycle.requests.connection(for: Self.request) { "a" } }
        try await begun.value()
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        try await waitUntil { session.log.contains("disconnect") }
    }

    @Test("Abandoned, it closes without waiting")
    func abandoned() async throws {
        let session = FakeConnection { $0.accept() }
        let lifecycle = LifecycleFixture([session]).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        lifecycle.abandon()
        #expect(session.log == ["begin a", "disconnect now"])
        await expect(.shutDown) { try lifecycle.requests.current(for: Self.request) }
    }
}
