import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// Time limits and cancellation of enhanced authentication, by a manual clock.
@Suite("MQTT transport: time limits of an authentication", .inSimulation, .timeLimit(.minutes(30)))
struct AuthenticationTimeTests {
    /// The length of CONNECT with the client identifier `c` and the method `m`.
    private static let connectByteCount = 31
    private static let challenge = ("F0 06 18 04 15 0001 6D" as Hex).bytes
    private static let connack = ("20 07 00 00 04 15 0001 6D" as Hex).bytes

    /// The step at which something hangs.
    enum Hang: CaseIterable {
        case make, server, respond, finish
    }

    private func script(_ hang: Hang) -> ScriptedByteStream {
        switch hang {
        case .make: ScriptedByteStream()
        case .server: ScriptedByteStream(.skip(Self.connectByteCount))
        case .respond: ScriptedByteStream(.skip(Self.connectByteCount), .reply(Self.challenge))
        case .finish: ScriptedByteStream(.skip(Self.connectByteCount), .reply(Self.connack))
        }
    }

    private func authenticator(
        _ hang: Hang,
        _ entered: Promised,
        _ released: Promised
    ) -> TestAuthenticator {
        TestAuthenticator { steps in
            let wait: @Sendable () async -> Void = {
                entered.resolve()
                await released.wait()
            }
            switch hang {
            case .make: steps.make = { _ in await wait() }
            case .server: entered.resolve()
            case .respond:
                steps.respond = { _ in
                    await wait()
                    return nil
                }
            case .finish: steps.finish = { _ in await wait() }
            }
        }
    }

    @Test("The connect timeout covers each step", arguments: Hang.allCases)
    func connectTimeout(hang: Hang) async throws {
        let clock = ManualClock()
        let (entered, released) = (Promised(), Promised())
        let stream = script(hang)
        let (transport, provider) = try scripted([stream], version: .v5, clock: clock) {
            $0.timeouts.connect = .seconds(10)
            $0.authenticator = authenticator(hang, entered, released)
            $0.reconnection = .never
        }
        let call = Task { try await provider.request(.connect) }
        await entered.wait()
        if hang != .make { try await waitUntil { stream.hasReached(2) } }
        let isDone = Locked(false)
        let watch = Task {
            let result = await call.result
            isDone.withLock { $0 = true }
            return result
        }
        clock.advance(by: .seconds(9))
        #expect(!isDone.withLock { $0 })
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isDone.withLock { $0 } }
        let result = await watch.value
        await expectError(.timedOut) { try result.get() }
        released.resolve()
        await transport.shutdown()
    }

    @Test(
        "A cancelled connect ends at once, although the app's code ignores it",
        arguments: Hang.allCases
    )
    func cancelled(hang: Hang) async throws {
        let (entered, released) = (Promised(), Promised())
        let stream = script(hang)
        let (transport, provider) = try scripted([stream], version: .v5) {
            $0.authenticator = authenticator(hang, entered, released)
        }
        let call = Task { try await provider.request(.connect) }
        await entered.wait()
        if hang != .make { try await waitUntil { stream.hasReached(2) } }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        released.resolve()
        await transport.shutdown()
    }

    @Test(
        "Shutdown ends a connect at once, although the app's code ignores it",
        arguments: Hang.allCases
    )
    func shutdown(hang: Hang) async throws {
        let (entered, released) = (Promised(), Promised())
        let stream = script(hang)
        let (transport, provider) = try scripted([stream], version: .v5) {
            $0.authenticator = authenticator(hang, entered, released)
        }
        let call = Task { try await provider.request(.connect) }
        await entered.wait()
        if hang != .make { try await waitUntil { stream.hasReached(2) } }
        await transport.shutdown()
        await expectError(.shutDown) { try await call.value }
        released.resolve()
    }

    @Test("A server that does not answer a re-authentication loses the connection")
    func reauthentication() async throws {
        let clock = ManualClock()
        let stream = ScriptedByteStream(
            .skip(Self.connectByteCount),
            .reply(Self.connack),
            .expect(("F0 06 19 04 15 0001 6D" as Hex).bytes),
            .expect(("E0 01 80" as Hex).bytes)
        )
        let (transport, provider) = try scripted([stream], version: .v5, clock: clock) {
            $0.authenticator = TestAuthenticator()
            $0.timeouts.confirmation = .seconds(20)
            $0.reconnection = .never
        }
        try await provider.request(.connect)
        let isDone = Locked(false)
        let call = Task {
            defer { isDone.withLock { $0 = true } }
            try await transport.reauthenticate()
        }
        try await waitUntil { stream.hasReached(3) }
        clock.advance(by: .seconds(19))
        #expect(!isDone.withLock { $0 })
        #expect(transport.states.current == .connected)
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isDone.withLock { $0 } }
        await expectError(.timedOut) { try await call.value }
        try await waitUntil { transport.states.current != .connected }
        #expect(stream.failures == [] && stream.isComplete)
        await transport.shutdown()
    }

    @Test("A server that is not verified in time after a re-authentication loses the connection")
    func reauthenticationUnverified() async throws {
        let (clock, entered, released) = (ManualClock(), Promised(), Promised())
        let stream = ScriptedByteStream(
            .skip(Self.connectByteCount),
            .reply(Self.connack),
            .expect(("F0 06 19 04 15 0001 6D" as Hex).bytes),
            .reply(("F0 06 00 04 15 0001 6D" as Hex).bytes),
            .expect(("E0 01 80" as Hex).bytes)
        )
        let authenticator = TestAuthenticator()
        let (transport, provider) = try scripted([stream], version: .v5, clock: clock) {
            $0.authenticator = authenticator
            $0.timeouts.confirmation = .seconds(20)
            $0.reconnection = .never
        }
        try await provider.request(.connect)
        authenticator.change {
            $0.finish = { _ in
                entered.resolve()
                await released.wait()
            }
        }
        let isDone = Locked(false)
        let call = Task {
            defer { isDone.withLock { $0 = true } }
            try await transport.reauthenticate()
        }
        await entered.wait()
        clock.advance(by: .seconds(19))
        #expect(!isDone.withLock { $0 })
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isDone.withLock { $0 } }
        await expectError(.timedOut) { try await call.value }
        try await waitUntil { stream.isComplete || stream.failures != [] }
        #expect(stream.failures == [])
        released.resolve()
        await transport.shutdown()
    }

    @Test("The time limit of a re-authentication covers the server's part and the verification")
    func reauthenticationLimit() async throws {
        let (clock, verifying) = (ManualClock(), Promised())
        let (challenged, answered, released) = (Promised(), Promised(), Promised())
        let stream = ScriptedByteStream(
            .skip(Self.connectByteCount),
            .reply(Self.connack),
            .expect(("F0 06 19 04 15 0001 6D" as Hex).bytes),
            .reply(("F0 06 18 04 15 0001 6D" as Hex).bytes),
            .expect(("F0 06 18 04 15 0001 6D" as Hex).bytes),
            .reply(("F0 06 00 04 15 0001 6D" as Hex).bytes),
            .expect(("E0 01 80" as Hex).bytes)
        )
        let authenticator = TestAuthenticator()
        let (transport, provider) = try scripted([stream], version: .v5, clock: clock) {
            $0.authenticator = authenticator
            $0.timeouts.confirmation = .seconds(20)
            $0.reconnection = .never
        }
        try await provider.request(.connect)
        authenticator.change {
            $0.respond = { data in
                challenged.resolve()
                await answered.wait()
                return data
            }
            $0.finish = { _ in
                verifying.resolve()
                await released.wait()
            }
        }
        let call = Task { try await transport.reauthenticate() }
        await challenged.wait()
        clock.advance(by: .seconds(15))
        answered.resolve()
        await verifying.wait()
        clock.advance(by: .seconds(5))
        await expectError(.timedOut) { try await call.value }
        try await waitUntil { stream.isComplete || stream.failures != [] }
        #expect(stream.failures == [])
        released.resolve()
        await transport.shutdown()
    }

    @Test(
        "A re-authentication that has not begun ends with its connection",
        arguments: [true, false]
    )
    func endWhileBeginning(isShutDown: Bool) async throws {
        let (clock, entered, released) = (ManualClock(), Promised(), Promised())
        let stream = ScriptedByteStream(
            .skip(Self.connectByteCount),
            .reply(Self.connack),
            isShutDown ? .skip(2) : .skip(4),
            .reset
        )
        let authenticator = TestAuthenticator()
        let (transport, provider) = try scripted([stream], version: .v5, clock: clock) {
            $0.authenticator = authenticator
            $0.reconnection = .never
        }
        try await provider.request(.connect)
        authenticator.change {
            $0.begin = {
                entered.resolve()
                await released.wait()
                return nil
            }
        }
        let call = Task { try await transport.reauthenticate() }
        await entered.wait()
        if isShutDown {
            await transport.shutdown()
        } else {
            try await provider.request(.send("x"))
        }
        await expectError(isShutDown ? .shutDown : .connectionLost) { try await call.value }
        released.resolve()
        await transport.shutdown()
    }

    @Test("Messages that come with CONNACK wait for the verification, split at each byte")
    func verification() async throws {
        let publish = ("30 05 0001 74 00 78" as Hex).bytes
        let bytes = Self.connack + publish
        for split in 0..<bytes.count {
            let (entered, released) = (Promised(), Promised())
            let stream = ScriptedByteStream(
                .skip(Self.connectByteCount),
                .reply(Array(bytes[..<split])),
                .reply(Array(bytes[split...]))
            )
            let (transport, provider) = try scripted([stream], version: .v5) {
                $0.authenticator = authenticator(.finish, entered, released)
            }
            let all = try transport.allMessages(.init(.dropOldest))
            let call = Task { try await provider.request(.connect) }
            await entered.wait()
            #expect(transport.states.current != .connected)
            released.resolve()
            _ = try await call.value
            var iterator = all.makeAsyncIterator()
            #expect(try await iterator.next()?.topic == "t")
            await transport.shutdown()
        }
    }
}

/// A moment that one task waits for and another one brings about.
final class Promised: Sendable {
    private struct State: Sendable {
        var isResolved = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    func resolve() {
        let waiters = state.withLock { state in
            state.isResolved = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits, also in a task that is cancelled.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isResolved = state.withLock { state in
                if !state.isResolved { state.waiters.append(continuation) }
                return state.isResolved
            }
            if isResolved { continuation.resume() }
        }
    }
}
