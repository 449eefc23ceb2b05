import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

/// Sends whose messages are in a store. A message that is there before the transport is made was left by another process.
@Suite("STOMP transport: sends in a store", .inSimulation, .timeLimit(.minutes(30)))
struct StoredSendTests {
    private let clock = ManualClock()
    private let store = InMemorySessionStore()

    private static func send(
        _ body: String,
        _ receipt: Int,
        to topic: String = "/queue/t",
        token: String? = nil
    ) -> ScriptedByteStream.Step {
        let header = token.map { "token:\($0)\n" } ?? ""
        return .expect(
            "SEND\ncontent-length:1\ndestination:\(topic)\n\(header)receipt:\(receipt)\n\n\(body)\0"
        )
    }

    private static func receipt(_ number: Int) -> ScriptedByteStream.Step {
        .reply("RECEIPT\nreceipt-id:\(number)\n\n\0")
    }

    private static func accepted(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        accepted(steps)
    }

    private static func accepted(_ steps: [ScriptedByteStream.Step]) -> ScriptedByteStream {
        let connect = "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
        return ScriptedByteStream(
            steps: [.expect(connect), .reply("CONNECTED\nversion:1.2\n\n\0")] + steps
        )
    }

    private func client(
        _ scripts: [ScriptedByteStream],
        _ store: (any SessionStore)? = nil,
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<STOMPEntry>) {
        try scripted(scripts, clock: clock) {
            $0.store = store ?? self.store
            change(&$0)
        }
    }

    /// Leaves messages in the store, as a process that has ended.
    private func leave(_ bodies: String..., to topic: String = "/queue/t") {
        for body in bodies {
            _ = store.insert(StoredMessage(topic: topic, body: Array(body.utf8), qos: 1))
        }
    }

    private var bodies: [String] {
        store.messages().map { String(decoding: $0.body, as: UTF8.self) }
    }

    /// Adds a header to each send, or fails for one body.
    private struct Stamp: Interceptor {
        let value: String
        var failing: String?

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .send else { return }
            if request.body.text == failing { throw WaybillError(.interceptorFailed, "no token") }
            request.headers.append(name: "token", value: value)
        }
    }

    /// Lets time pass until all scripts have ended, or one has failed.
    private func play(_ scripts: ScriptedByteStream...) async throws {
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
        }
        await untilQuiet()
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
    }

    // MARK: In this process

    @Test(
        "Stored before it is sent, as the entry states it; removed at its receipt, or its failure"
    )
    func stored() async throws {
        let script = Self.accepted(
            Self.send("a", 1, token: "one"),
            Self.receipt(1),
            Self.send("b", 2, token: "one")
        )
        let (transport, provider) = try client([script])
        let stamped = provider.intercepted(Stamp(value: "one"))
        try await stamped.request(.send("a"))
        #expect(bodies == [])
        let sending = Task { try await stamped.request(.send("b")) }
        await untilQuiet()
        #expect(bodies == ["b"])
        #expect(store.messages().map(\.headers) == [[]])
        clock.advance(by: .seconds(15))
        let error = await expectError(.timedOut) { try await sending.value }
        #expect(error?.mayHaveArrived == true)
        #expect(bodies == [] && script.failures == [])
        try await shutDown(transport, moving: clock)
    }

    @Test("Neither a send in a transaction nor one without a receipt is stored")
    func notStored() async throws {
        let begin = "BEGIN\ntransaction:tx\nreceipt:1\n\n\0"
        let inside =
            "SEND\ncontent-length:1\ndestination:/queue/t\ntransaction:tx\nreceipt:2\n\nx\0"
        let script = Self.accepted(
            .expect(begin),
            Self.receipt(1),
            .expect(inside),
            .expect("SEND\ncontent-length:1\ndestination:/queue/t\n\ny\0")
        )
        let (transport, provider) = try client([script])
        try await provider.request(.begin("tx"))
        let sending = Task {
            try await provider.request(
                .send("x", headers: ["transaction": "tx"], .receipt(.automatic))
            )
        }
        await untilQuiet()
        try await provider.request(.send("y", .receipt(.none)))
        await untilQuiet()
        #expect(bodies == [] && script.failures == [] && script.isComplete)
        sending.cancel()
        try await shutDown(transport, moving: clock)
    }

    @Test(
        "A lost connection fails the send, which may have arrived; a refusal says that it has not",
        arguments: [true, false]
    )
    func failed(isLost: Bool) async throws {
        let error = "ERROR\nmessage:no\nreceipt-id:1\n\n\0"
        let script = Self.accepted(Self.send("x", 1), isLost ? .reset : .reply(error))
        let (transport, provider) = try client([script, Self.accepted()]) {
            $0.store = LazyStore()
        }
        let found = await expectError(isLost ? .connectionLost : .rejected) {
            try await provider.request(.send("x"))
        }
        #expect(found?.mayHaveArrived == isLost)
        try await shutDown(transport, moving: clock)
    }

    @Test("A removal that cannot be written within a second leaves it open whether it arrives")
    func unwritten() async throws {
        let lazy = LazyStore(hangs: true)
        let error = "ERROR\nmessage:no\nreceipt-id:1\n\n\0"
        let script = Self.accepted(Self.send("x", 1), .reply(error))
        let (transport, provider) = try client([script], lazy) { $0.reconnection = .never }
        let sending = Task { try await provider.request(.send("x")) }
        await untilQuiet()
        clock.advance(by: .seconds(1))
        let found = await expectError(.rejected) { try await sending.value }
        #expect(found?.mayHaveArrived == true)
        lazy.write()
        await transport.shutdown()
    }

    @Test("With a store on disk a send waits for any connection; the next transport sends it")
    func waits() async throws {
        let lazy = LazyStore()
        let (transport, provider) = try client([], lazy)
        let sending = Task { try await provider.request(.send("x")) }
        for _ in 0..<100 {
            clock.advance(by: .seconds(120))
            await untilQuiet()
        }
        await transport.shutdown()
        let error = await expectError(.shutDown) { try await sending.value }
        #expect(error?.mayHaveArrived == true)
        let next = Self.accepted(Self.send("x", 1), Self.receipt(1))
        let (second, other) = try client([next], lazy)
        try await other.connect()
        try await play(next)
        #expect(lazy.unwrittenCount == 1)
        try await shutDown(second, moving: clock)
        #expect(lazy.messages() == [])
    }

    @Test("A frame that was held when its connection ended waits for the next one")
    func held() async throws {
        let first = Self.accepted(Self.send("a", 1), .reset)
        let second = Self.accepted(Self.send("b", 1), Self.receipt(1))
        let (transport, provider) = try client([first, second], LazyStore()) {
            $0.limits.inFlight = 1
        }
        let sent = Task { try await provider.request(.send("a")) }
        await untilQuiet()
        let held = Task { try await provider.request(.send("b")) }
        try await play(first, second)
        await expectError(.connectionLost) { try await sent.value }
        _ = try await held.value
        try await shutDown(transport, moving: clock)
    }

    enum Ending: CaseIterable { case disconnect, shutdown, pause }

    @Test("An answered message is gone from the store after each end", arguments: Ending.allCases)
    func ends(_ ending: Ending) async throws {
        let script = Self.accepted(
            Self.send("x", 1),
            Self.receipt(1),
            .expect("DISCONNECT\nreceipt:2\n\n\0"),
            Self.receipt(2)
        )
        let lazy = LazyStore()
        let (transport, provider) = try client([script], lazy)
        try await provider.request(.send("x"))
        switch ending {
        case .disconnect: try await provider.disconnect()
        case .shutdown: await transport.shutdown()
        case .pause: await provider.pause()
        }
        #expect(lazy.messages() == [] && script.failures == [])
        await transport.shutdown()
    }

    // MARK: What an earlier process has left

    @Test("Sent first, in order, with the interceptors of the connection's provider, and reported")
    func left() async throws {
        leave("a", "b")
        let script = Self.accepted(
            Self.send("a", 1, token: "two"),
            Self.send("b", 2, token: "two"),
            Self.send("c", 3, token: "two"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0"),
            Self.receipt(3)
        )
        let (transport, provider) = try client([script])
        var events = transport.events.makeAsyncIterator()
        try await provider.intercepted(Stamp(value: "two")).request(.send("c"))
        try await play(script)
        #expect(bodies == [])
        var kinds: [TransportEvent.Kind] = []
        while kinds.count(where: { $0 == .acknowledged }) < 3, let event = await events.next() {
            if [.sent, .acknowledged].contains(event.kind) { kinds.append(event.kind) }
        }
        #expect(kinds == [.sent, .sent, .sent, .acknowledged, .acknowledged, .acknowledged])
        try await shutDown(transport, moving: clock)
    }

    @Test("Sent with the options of the entry, except for the id of the receipt")
    func options() async throws {
        let first = Self.accepted(.expect("SEND\ndestination:/queue/t\nreceipt:mine\n\na\0"))
        let (transport, provider) = try client([first])
        let entry = STOMPEntry.send("a", .receipt(.identifier("mine")), .contentLength(false))
        let sending = Task { try await provider.request(entry) }
        try await play(first)
        let options = [
            StoredOption("contentLength", .flag(false)), StoredOption("receipt", .flag(true)),
        ]
        #expect(store.messages().map(\.options) == [options])
        try await shutDown(transport, moving: clock)
        await expectError(.shutDown) { try await sending.value }

        let next = Self.accepted(
            .expect("SEND\ndestination:/queue/t\nreceipt:1\n\na\0"),
            Self.receipt(1)
        )
        let (second, other) = try client([next])
        try await other.connect()
        try await play(next)
        #expect(bodies == [])
        try await shutDown(second, moving: clock)
    }

    @Test("Sent again by the next connection without an answer, or if an interceptor has failed")
    func again() async throws {
        leave("a", "b")
        let first = Self.accepted(Self.send("b", 1, token: "one"), .reset)
        let second = Self.accepted(
            Self.send("a", 1, token: "two"),
            Self.send("b", 2, token: "two"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0")
        )
        let (transport, provider) = try client([first, second]) { $0.reconnection = .never }
        var events = transport.events.makeAsyncIterator()
        try await provider.intercepted(Stamp(value: "one", failing: "a")).connect()
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.mayHaveArrived == true)
        try await play(first)
        #expect(bodies == ["a", "b"])
        try await provider.intercepted(Stamp(value: "two")).connect()
        try await play(second)
        #expect(bodies == [])
        try await shutDown(transport, moving: clock)
    }

    @Test("One that the server refuses, or that cannot be sent, is given up and reported")
    func refused() async throws {
        leave("a", to: "/bad")
        leave("b", to: "")
        leave("c")
        let first = Self.accepted(
            Self.send("a", 1, to: "/bad"),
            Self.send("c", 2),
            .reply("ERROR\nmessage:no\n\n'/bad' is not a valid destination\0")
        )
        let second = Self.accepted(Self.send("c", 1), Self.receipt(1))
        let (transport, provider) = try client([first, second])
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        var errors: [WaybillError] = []
        while errors.count < 2, let event = await events.next() {
            if event.kind == .sendFailed, let error = event.error { errors.append(error) }
        }
        #expect(errors.map(\.code) == [.invalidEntry, .rejected])
        #expect(errors.map(\.mayHaveArrived) == [false, false])
        try await play(first, second)
        #expect(bodies == [])
        try await shutDown(transport, moving: clock)
    }

    @Test("One that the server answers by closing is found by four connections of two processes")
    func poison() async throws {
        leave("a", "b")
        // Both, as the end does not say which one it is about.
        let both = (1...2).map { _ in
            Self.accepted(Self.send("a", 1), Self.send("b", 2), .finish)
        }
        let (transport, provider) = try client([both[0]]) { $0.reconnection = .never }
        try await provider.connect()
        try await play(both[0])
        #expect(store.messages().map(\.suspiciousEnds) == [1, 0])
        try await shutDown(transport, moving: clock)

        let third = Self.accepted(Self.send("a", 1), Self.send("b", 2), .finish)
        let alone = Self.accepted(Self.send("a", 1), .finish)
        let good = Self.accepted(Self.send("b", 1), Self.receipt(1))
        let (second, other) = try client([both[1], third, alone, good])
        var events = second.events.makeAsyncIterator()
        try await other.connect()
        try await play(both[1], third, alone, good)
        let failure = await take(to: .sendFailed, &events).last
        #expect(failure?.error?.code == .rejected && failure?.error?.mayHaveArrived == true)
        #expect(bodies == [])
        try await shutDown(second, moving: clock)
    }

    @Test("One that is sent alone and outlives ten seconds is no longer suspected")
    func outlives() async throws {
        var suspect = StoredMessage(topic: "/queue/t", body: [0x61], qos: 1)
        suspect.suspiciousEnds = 3
        _ = store.insert(suspect)
        leave("b")
        let script = Self.accepted(Self.send("a", 1), Self.send("b", 2))
        let (transport, provider) = try client([script])
        let connecting = Task { try await provider.connect() }
        await untilQuiet()
        #expect(!script.isComplete && transport.states.current.isConnected == false)
        clock.advance(by: .seconds(10))
        _ = try await connecting.value
        #expect(script.isComplete && store.messages().map(\.suspiciousEnds) == [0, 0])
        try await shutDown(transport, moving: clock)
    }
}
