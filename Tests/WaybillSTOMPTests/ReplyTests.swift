import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillSession
import WaybillTesting
import WireTestSupport

/// Requests and replies by `reply-to` and `correlation-id`.
@Suite("STOMP transport: request and reply", .inSimulation, .timeLimit(.minutes(30)))
struct ReplyTests {
    // MARK: Byte by byte

    private static let connect =
        "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
    private static let connected = "CONNECTED\nversion:1.2\nserver:ActiveMQ/6.1.0\n\n\0"
    private static let rabbit = "CONNECTED\nversion:1.2\nserver:RabbitMQ/4.0.0\n\n\0"
    private static let temporary = "/temp-queue/waybill-00"

    private static func subscribe(_ destination: String, _ receipt: Int) -> String {
        "SUBSCRIBE\nid:\(destination)\ndestination:\(destination)\nreceipt:\(receipt)\n\n\0"
    }

    private static func request(
        _ destination: String,
        _ correlation: String,
        _ receipt: Int
    ) -> String {
        "SEND\ncontent-length:1\ndestination:/queue/t\nreply-to:\(destination)\n"
            + "correlation-id:\(correlation)\nreceipt:\(receipt)\n\nx\0"
    }

    private static func receipt(_ number: Int) -> String { "RECEIPT\nreceipt-id:\(number)\n\n\0" }

    private static func answer(
        _ destination: String,
        _ correlation: String,
        _ text: String
    ) -> String {
        "MESSAGE\ndestination:/queue/somewhere\nmessage-id:m\nsubscription:\(destination)\n"
            + "correlation-id:\(correlation)\n\n\(text)\0"
    }

    private func client(
        _ first: [ScriptedByteStream.Step],
        _ others: ScriptedByteStream...,
        clock: ManualClock,
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<STOMPEntry>, ScriptedByteStream) {
        let script = ScriptedByteStream(steps: first)
        let (transport, provider) = try scripted([script] + others, clock: clock, change)
        return (transport, provider, script)
    }

    /// Shuts a transport down whose server sends nothing more.
    private func close(_ transport: STOMPTransport, _ clock: ManualClock) async throws {
        let isClosed = Promise<Void>()
        let closing = Task {
            await transport.shutdown()
            isClosed.resolve(.success(()))
        }
        try await waitUntil(moving: { clock.advance(by: .seconds(5)) }) { isClosed.result != nil }
        await closing.value
    }

    @Test("A temporary queue is subscribed to once, before anything is asked")
    func explicit() async throws {
        let clock = ManualClock()
        let queue = Self.temporary
        let (transport, provider, script) = try client(
            [
                .expect(Self.connect), .reply(Self.connected),
                .expect(Self.subscribe(queue, 1)), .reply(Self.receipt(1)),
                .expect(Self.request(queue, "1-00", 2)),
                // The reply may come before the receipt, and other replies before it.
                .reply(Self.answer(queue, "9-00", "?") + Self.answer(queue, "1-00", "y")),
                .reply(Self.receipt(2)),
                .expect(Self.request(queue, "2-00", 3)),
                .reply(Self.receipt(3) + Self.answer(queue, "2-00", "z")),
            ],
            clock: clock
        )
        #expect(try await provider.request(.send("x"), as: String.self) == "y")
        #expect(try await provider.request(.send("x"), as: String.self) == "z")
        #expect(transport.pendingReplies.strayCount == 1 && transport.pendingReplies.count == 0)
        #expect(script.failures == [] && script.isComplete)
        try await close(transport, clock)
    }

    @Test("RabbitMQ subscribes to a temporary queue by itself; to another one it is asked")
    func implicit() async throws {
        let clock = ManualClock()
        let queue = Self.temporary
        let (transport, provider, script) = try client(
            [
                .expect(Self.connect), .reply(Self.rabbit),
                .expect(Self.request(queue, "1-00", 1)),
                .reply(Self.receipt(1) + Self.answer(queue, "1-00", "y")),
            ],
            clock: clock
        )
        #expect(try await provider.request(.send("x"), as: String.self) == "y")
        #expect(script.failures == [])
        try await close(transport, clock)

        let own = "/queue/mine"
        let (other, asking, second) = try client(
            [
                .expect(Self.connect), .reply(Self.rabbit),
                .expect(Self.subscribe(own, 1)), .reply(Self.receipt(1)),
                .expect(Self.request(own, "1-00", 2)),
                .reply(Self.receipt(2) + Self.answer(own, "1-00", "y")),
            ],
            clock: clock
        ) { $0.replyDestination = own }
        #expect(try await asking.request(.send("x"), as: String.self) == "y")
        #expect(second.failures == [])
        try await close(other, clock)
    }

    @Test("A reply above the limit fails its request at once")
    func tooLong() async throws {
        let clock = ManualClock()
        let queue = Self.temporary
        let (transport, provider, script) = try client(
            [
                .expect(Self.connect), .reply(Self.rabbit),
                .expect(Self.request(queue, "1-00", 1)),
                .reply(
                    Self.receipt(1)
                        + Self.answer(queue, "1-00", String(repeating: "y", count: 100))
                ),
            ],
            clock: clock
        ) { $0.limits.bodySize = 64 }
        let answer = Promise<String>()
        answer.resolve { try await provider.request(.send("x"), as: String.self) }
        await untilQuiet()
        #expect(script.failures == [])
        #expect(answer.result != nil)
        try await close(transport, clock)
        await expectError(.limitExceeded) { try await answer.value() }
    }

    @Test("No answer: timedOut after the configured time")
    func timesOut() async throws {
        let clock = ManualClock()
        let (transport, provider, script) = try client(
            [
                .expect(Self.connect), .reply(Self.rabbit),
                .expect(Self.request(Self.temporary, "1-00", 1)), .reply(Self.receipt(1)),
            ],
            clock: clock
        ) { $0.timeouts.reply = .seconds(9) }
        let asking = Task { try await provider.request(.send("x"), as: String.self) }
        try await waitUntil { script.isComplete }
        clock.advance(by: .seconds(9))
        await expectError(.timedOut) { try await asking.value }
        #expect(transport.pendingReplies.count == 0)
        try await close(transport, clock)
    }

    @Test("A temporary queue ends with its connection: pending requests fail; the next one works")
    func lost() async throws {
        let clock = ManualClock()
        let queue = Self.temporary
        let second = ScriptedByteStream(steps: [
            .expect(Self.connect), .reply(Self.connected),
            .expect(Self.subscribe(queue, 1)), .reply(Self.receipt(1)),
            .expect(Self.request(queue, "2-00", 2)),
            .reply(Self.receipt(2) + Self.answer(queue, "2-00", "y")),
        ])
        let (transport, provider, _) = try client(
            [
                .expect(Self.connect), .reply(Self.connected),
                .expect(Self.subscribe(queue, 1)), .reply(Self.receipt(1)),
                .expect(Self.request(queue, "1-00", 2)), .reply(Self.receipt(2)), .reset,
            ],
            second,
            clock: clock
        )
        await expectError(.connectionLost) {
            try await provider.request(.send("x"), as: String.self)
        }
        #expect(transport.pendingReplies.count == 0)
        #expect(try await provider.request(.send("x"), as: String.self) == "y")
        #expect(second.failures == [])
        try await close(transport, clock)
    }

    @Test(
        "A queue that lasts is subscribed to again, and the answer over the next connection counts"
    )
    func lasting() async throws {
        let clock = ManualClock()
        let queue = "/queue/mine"
        let second = ScriptedByteStream(steps: [
            .expect(Self.connect), .reply(Self.connected),
            .expect(Self.subscribe(queue, 1)),
            .reply(Self.receipt(1) + Self.answer(queue, "1-00", "y")),
        ])
        let (transport, provider, _) = try client(
            [
                .expect(Self.connect), .reply(Self.connected),
                .expect(Self.subscribe(queue, 1)), .reply(Self.receipt(1)),
                .expect(
                    Self.request(queue, "1-00", 2)
                        .replacing("receipt:2\n", with: "")
                ),
                .reset,
            ],
            second,
            clock: clock
        ) { $0.replyDestination = queue }
        let entry = STOMPEntry.send("x", .receipt(.none))
        #expect(try await provider.request(entry, as: String.self) == "y")
        #expect(second.failures == [] && transport.pendingReplies.count == 0)
        try await close(transport, clock)
    }

    @Test("A connection that does not come back fails pending requests; a shutdown does, too")
    func concludes() async throws {
        let clock = ManualClock()
        let queue = "/queue/mine"
        let start: [ScriptedByteStream.Step] = [
            .expect(Self.connect), .reply(Self.connected),
            .expect(Self.subscribe(queue, 1)), .reply(Self.receipt(1)),
            .expect(Self.request(queue, "1-00", 2)), .reply(Self.receipt(2)),
        ]
        let (lost, provider, _) = try client(start + [.reset], clock: clock) {
            $0.replyDestination = queue
            $0.reconnection = .never
        }
        await expectError(.connectionLost) {
            try await provider.request(.send("x"), as: String.self)
        }
        #expect(lost.pendingReplies.count == 0)

        let (transport, other, script) = try client(start, clock: clock) {
            $0.replyDestination = queue
        }
        let asking = Task { try await other.request(.send("x"), as: String.self) }
        try await waitUntil { script.isComplete }
        try await close(transport, clock)
        await expectError(.shutDown) { try await asking.value }
        #expect(transport.pendingReplies.count == 0)
    }

    // MARK: Refused before any I/O

    @Test("What cannot be is refused before there is a connection")
    func refusedBefore() async throws {
        let transport = try STOMPTransport()
        let provider = Provider<STOMPEntry>(transport: transport)
        let unreadable = EntryCommand.send(.correlationData([0xFF]))
        let answerable = EntryCommand.send(.correlationData([0xFF]), .responseTopic("r"))
        let entries: [(STOMPEntry, WaybillError.Code)] = [
            (.command(unreadable, topic: "t"), .invalidEntry),
            (.command(answerable, topic: "t"), .invalidEntry),
            (.send("x", headers: ["reply-to": "/queue/r"]), .invalidEntry),
            (.send("x", headers: ["correlation-id": "1"]), .invalidEntry),
            (.send("x", headers: ["transaction": "1"]), .unsupported),
            (.connect, .unsupported),
        ]
        for (entry, code) in entries {
            await expectError(code) { try await provider.request(entry, as: String.self) }
        }
        // The byte FF is not UTF-8, so no header can carry it.
        await expectError(.invalidEntry) {
            try await provider.request(.command(answerable, topic: "t"))
        }
        #expect("\(transport.states.current)" == "idle")
    }

    // MARK: Over sockets

    @Test("A thousand at once, answered in reverse order", arguments: services)
    func thousand(_ service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (responder, answers) = try fixture.provider()
        let (transport, provider) = try fixture.provider()
        let asked = try await answers.messages(.subscribe("/queue/ask"))
        let answering = Task {
            for message in try await take(1_000, asked).reversed() {
                try await answers.request(
                    .command(
                        .reply(to: message),
                        topic: message.replyTopic,
                        body: .text(message.text ?? "")
                    )
                )
            }
        }
        try await withThrowingTaskGroup { group in
            for number in 0..<1_000 {
                group.addTask {
                    let text: String = try await provider.request(
                        .send("\(number)", to: "/queue/ask")
                    )
                    #expect(text == "\(number)")
                }
            }
            try await group.waitForAll()
        }
        try await answering.value
        #expect(transport.pendingReplies.count == 0 && transport.pendingReplies.strayCount == 0)
        await fixture.end(transport, responder)
    }

    @Test("A caller that is cancelled leaves nothing; the answer that follows is counted")
    func cancelled() async throws {
        let fixture = try Fixture()
        let (responder, answers) = try fixture.provider()
        let (transport, provider) = try fixture.provider()
        let asked = try await answers.messages(.subscribe("/queue/ask"))
        let asking = Task {
            try await provider.request(.send("x", to: "/queue/ask"), as: String.self)
        }
        let message = try #require(try await take(1, asked).first)
        asking.cancel()
        await #expect(throws: CancellationError.self) { try await asking.value }
        #expect(transport.pendingReplies.count == 0)
        try await answers.request(.command(.reply(to: message), topic: message.replyTopic))
        try await waitUntil { transport.pendingReplies.strayCount != 0 }
        await fixture.end(transport, responder)
    }
}
