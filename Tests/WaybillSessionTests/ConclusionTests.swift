import Testing
import TransportTestSupport
import Waybill
import WaybillSession
import WireCore
import WireTestSupport

/// What begins while a connection or an attempt ends.
@Suite("The end of connections, and what begins then", .inSimulation, .timeLimit(.minutes(30)))
struct ConclusionTests {
    private static let request = Request(topic: "t", command: .send)
    private static let lost = WaybillError(.connectionLost, "lost")

    private typealias Lifecycle = ConnectionLifecycle<FakeConnection>

    /// Gives messages without a source, for a subscription that starts offline.
    private static func messages() -> Messages<Message> {
        MessageSource(policy: BufferPolicy(.dropOldest)).messages
    }

    private static func subscribeOffline(
        _ lifecycle: Lifecycle,
        later: @Sendable () -> Void
    ) async throws -> Messages<Message> {
        let request = Request(topic: "t", command: .subscribe(.waitsForConnection))
        return try await lifecycle.requests.subscribe(
            request,
            later: {
                later()
                return messages()
            },
            greeting: { "b" },
            connection: { try await lifecycle.requests.connection(for: request) { "b" } },
            now: { _ in messages() }
        )
    }

    /// The requests that begin a series.
    enum Beginning: CaseIterable, Sendable {
        case connect, request, subscription
    }

    @Test(
        "What begins during a conclusion waits for its end",
        .realTime,
        .outsideSimulation,
        arguments: Beginning.allCases
    )
    func realTimeBeginnings(beginning: Beginning) async throws {
        let order = Locked<[String]>([])
        let begin = Locked<(@Sendable () -> Void)?>(nil)
        let first = FakeConnection { $0.accept() }
        let second = FakeConnection {
            order.withLock { $0.append("begins") }
            $0.accept()
        }
        let fixture = LifecycleFixture(
            [first, second],
            conclude: { _, isForGood in
                guard !isForGood else { return }
                begin.withLock { $0 }?()
                // The request has time to come before the end of the conclusion, which is the fault.
                let end = ContinuousClock.now + .milliseconds(200)
                while order.withLock({ $0.isEmpty }), ContinuousClock.now < end {}
                order.withLock { $0.append("concluded") }
            }
        )
        let lifecycle = fixture.lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        let started = Promise<Task<Void, any Error>>()
        let work: @Sendable () async throws -> Void = {
            switch beginning {
            case .connect: _ = try await lifecycle.connect("b", timeout: nil)
            case .request:
                _ = try await lifecycle.requests.connection(for: Self.request) { "b" }
            case .subscription:
                _ = try await Self.subscribeOffline(lifecycle) {
                    order.withLock { $0.append("begins") }
                }
            }
        }
        begin.withLock { begin in
            begin = { started.resolve(.success(Task { @concurrent in try await work() })) }
        }
        first.end(Self.lost)
        try await started.value().value
        try await waitUntil { lifecycle.connected === second }
        #expect(order.withLock { $0.prefix(2) } == ["concluded", "begins"])
        #expect(second.log == ["begin b"])
        begin.withLock { $0 = nil }
        await lifecycle.shutdown()
    }

    @Test("A request that a shutdown overtakes fails with `shutDown`")
    func overtaken() async throws {
        let connection = FakeConnection { $0.accept() }
        let lifecycle = LifecycleFixture([connection]).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        let error = await #expect(throws: WaybillError.self) {
            try await lifecycle.requests.sending(connection: { connection }) { _ in
                await lifecycle.shutdown()
                throw WaybillError.noConnection.about(topic: "t", command: "send")
            }
        }
        #expect(error?.code == .shutDown && error?.topic == "t" && error?.command == "send")
    }

    @Test("A connect that follows a disconnect waits for the end of the attempt, and connects")
    func connectAfterDisconnect() async throws {
        let (begun, closing) = (Promise<Void>(), Promise<Void>())
        let first = FakeConnection(closing: closing) { _ in begun.resolve(.success(())) }
        let second = FakeConnection { $0.accept() }
        let lifecycle = LifecycleFixture([first, second]).lifecycle
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        let disconnecting = Task { try await lifecycle.disconnect() }
        try await waitUntil { first.log.last == "disconnect" }
        let again = Task { try await lifecycle.connect("b", timeout: nil) }
        let cancelled = Task { try await lifecycle.connect("c", timeout: nil) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let isSubscribed = Locked(false)
        let subscribing = Task {
            try await Self.subscribeOffline(lifecycle) { isSubscribed.withLock { $0 = true } }
        }
        await untilQuiet()
        #expect(!isSubscribed.withLock { $0 })
        closing.resolve(.success(()))
        await #expect(throws: WaybillError.self) { try await connecting.value }
        try await disconnecting.value
        #expect(try await again.value.reason == "welcome")
        #expect(lifecycle.connected === second)
        #expect(second.log == ["begin b"])
        _ = try await subscribing.value
        await lifecycle.shutdown()
    }

    @Test("A connect that waits for the end of an attempt fails when the transport shuts down")
    func shutdownAfterDisconnect() async throws {
        let (begun, closing) = (Promise<Void>(), Promise<Void>())
        let session = FakeConnection(closing: closing) { _ in begun.resolve(.success(())) }
        let lifecycle = LifecycleFixture([session]).lifecycle
        let connecting = Task { try await lifecycle.connect("a", timeout: nil) }
        try await begun.value()
        let disconnecting = Task { try await lifecycle.disconnect() }
        try await waitUntil { session.log.last == "disconnect" }
        let again = Task { try await lifecycle.connect("b", timeout: nil) }
        await untilQuiet()
        let ending = Task { await lifecycle.shutdown() }
        await untilQuiet()
        closing.resolve(.success(()))
        await #expect { try await again.value } throws: {
            ($0 as? WaybillError)?.code == .shutDown
        }
        _ = await connecting.result
        try await disconnecting.value
        await ending.value
    }

    @Test("A send that the ending connection refuses goes over the next one")
    func queuedOverEndingConnection() async throws {
        let (first, second) = (FakeConnection { $0.accept() }, FakeConnection { $0.accept() })
        let lifecycle = LifecycleFixture(
            [first, second],
            reconnection: ReconnectionPolicy(),
            offlineQueue: OfflinePolicy(),
            random: 0
        ).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        let answer = try await lifecycle.requests.queued(
            Self.request,
            timeout: .seconds(10),
            send: { (connection, call: PendingCall<String>) throws(WaybillError) in
                guard connection === first else { return call.succeed("sent") }
                first.end(Self.lost)
                throw WaybillError(.notConnected, "just ending")
            },
            withdraw: { _ in }
        )
        #expect(answer == "sent")
        #expect(lifecycle.requests.queues(isAcknowledged: true, isLasting: false) == false)
        await lifecycle.shutdown()
    }

    @Test("A send that the ending connection refuses fails when no connection follows")
    func queuedAtTheEnd() async throws {
        let session = FakeConnection { $0.accept() }
        let lifecycle = LifecycleFixture([session], offlineQueue: OfflinePolicy()).lifecycle
        _ = try await lifecycle.connect("a", timeout: nil)
        await #expect {
            try await lifecycle.requests.queued(
                Self.request,
                timeout: .seconds(10),
                send: { (_, _: PendingCall<String>) throws(WaybillError) in
                    session.end(Self.lost)
                    throw WaybillError(.notConnected, "just ending")
                },
                withdraw: { _ in }
            )
        } throws: { error in
            let error = error as? WaybillError
            return error?.message == "just ending" && error?.topic == "t"
        }
    }

    /// How a connection comes to its end.
    enum End: CaseIterable, Sendable {
        case loss, disconnect, shutdown
    }

    @Test("After its end a connection is released", arguments: End.allCases)
    func released(end: End) async throws {
        struct Weak {
            weak var connection: FakeConnection?
        }
        func made() async throws -> (Lifecycle, Weak) {
            let connection = FakeConnection { $0.accept() }
            let lifecycle = LifecycleFixture([connection]).lifecycle
            _ = try await lifecycle.connect("a", timeout: nil)
            switch end {
            case .loss: connection.end(Self.lost)
            case .disconnect: try await lifecycle.disconnect()
            case .shutdown: await lifecycle.shutdown()
            }
            return (lifecycle, Weak(connection: connection))
        }
        let (lifecycle, past) = try await made()
        // The task of the series may still be at its end.
        await untilQuiet()
        #expect(past.connection == nil)
        #expect(lifecycle.connected == nil)
    }
}
