import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// A subscription that the server answers by ending the connection: ERROR without a receipt, or a close.
///
/// The bad one has the id 1 and the destination `/queue/a`, the good one 2 and `/queue/b`.
@Suite("STOMP transport: a poison subscription", .inSimulation, .timeLimit(.minutes(30)))
struct PoisonSubscriptionTests {
    private let clock = ManualClock()

    private static func subscribe(_ id: Int, _ receipt: Int) -> String {
        "SUBSCRIBE\nid:\(id)\ndestination:/queue/\(id == 1 ? "a" : "b")\nreceipt:\(receipt)\n\n\0"
    }

    private static func receipt(_ number: Int) -> ScriptedByteStream.Step {
        .reply("RECEIPT\nreceipt-id:\(number)\n\n\0")
    }

    private static func error(_ message: String, _ body: String) -> ScriptedByteStream.Step {
        .reply("ERROR\nmessage:\(message)\n\n\(body)\0")
    }

    private static func accepted(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        let connect = "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
        return ScriptedByteStream(
            steps: [.expect(connect), .reply("CONNECTED\nversion:1.2\n\n\0")] + steps
        )
    }

    /// Moves the clock until all scripts have ended, or one has failed.
    private func play(_ scripts: [ScriptedByteStream]) async throws {
        let end = clock.now.advanced(by: .seconds(150))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
                || clock.now >= end
        }
        await untilQuiet()
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
        let rest = scripts.indices.filter { !scripts[$0].isComplete }
        try #require(rest == [], "these connections came to another course")
    }

    /// Subscribes to both, and loses the connection.
    private func subscribing(
        _ next: [ScriptedByteStream]
    ) async throws -> (STOMPTransport, [Messages<Message>]) {
        let first = Self.accepted(
            .expect(Self.subscribe(1, 1)),
            Self.receipt(1),
            .expect(Self.subscribe(2, 2)),
            Self.receipt(2),
            .expect("SEND\ndestination:go\n\n\0"),
            .reset
        )
        let (transport, provider) = try scripted([first] + next, clock: clock)
        let messages = [
            try await provider.messages(.subscribe("/queue/a")),
            try await provider.messages(.subscribe("/queue/b")),
        ]
        try await provider.request(.send("", to: "go", .receipt(.none)))
        try await play([first] + next)
        return (transport, messages)
    }

    private func expectEnd(of messages: Messages<Message>, _ reason: String?) async {
        let error = await expectError(.rejected) { for try await _ in messages {} }
        #expect(error?.topic == "/queue/a" && error?.peerReason == reason)
        #expect(error?.isRetryable == false)
    }

    @Test("Found by five connections and ended; the other one lives", arguments: [true, false])
    func restored(closes: Bool) async throws {
        let both = Self.subscribe(1, 1).utf8.count + Self.subscribe(2, 2).utf8.count
        let end: ScriptedByteStream.Step =
            closes ? .finish : Self.error("Processing error", "not authorized")
        let scripts = [
            Self.accepted(.skip(both), end), Self.accepted(.skip(both), end),
            Self.accepted(.skip(both), end),
            // One at a time, and the suspect last.
            Self.accepted(.expect(Self.subscribe(1, 1)), end),
            Self.accepted(
                .expect(Self.subscribe(2, 1)),
                Self.receipt(1),
                .expect(Self.subscribe(1, 2)),
                end
            ),
            Self.accepted(.expect(Self.subscribe(2, 1)), Self.receipt(1)),
        ]
        let (transport, messages) = try await subscribing(scripts)
        await expectEnd(of: messages[0], closes ? nil : "Processing error")
        #expect(transport.states.current.isConnected)
        withExtendedLifetime(messages) {}
        try await shutDown(transport, moving: clock)
    }

    @Test("A server that ends connections after all are confirmed says nothing about them")
    func confirmed() async throws {
        let both = Self.subscribe(1, 1).utf8.count + Self.subscribe(2, 2).utf8.count
        let receipts = ScriptedByteStream.Step.reply(
            "RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0"
        )
        let scripts = (0..<6).map { _ in Self.accepted(.skip(both), receipts, .finish) }
        let last = Self.accepted(.skip(both), receipts)
        let (transport, messages) = try await subscribing(scripts + [last])
        #expect(transport.states.current.isConnected)
        withExtendedLifetime(messages) {}
        try await shutDown(transport, moving: clock)
    }

    /// RabbitMQ's refusals, which name the queue and not the receipt.
    private static let refusals = [
        ("access_refused", "ACCESS_REFUSED - read access to queue 'a' in vhost '/' refused"),
        ("precondition_failed", "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'a'"),
        ("resource_locked", "RESOURCE_LOCKED - cannot obtain exclusive access to queue 'a'"),
    ]

    @Test("The first SUBSCRIBE is rejected where the text names its queue", arguments: refusals)
    func first(_ message: String, _ body: String) async throws {
        let script = Self.accepted(
            .expect(Self.subscribe(1, 1)),
            Self.error(message, body),
            .finish
        )
        let (transport, provider) = try scripted([script], clock: clock) {
            $0.reconnection = .never
        }
        let error = await expectError(.rejected) {
            try await provider.messages(.subscribe("/queue/a"))
        }
        #expect(error?.peerReason == message)
        try await shutDown(transport, moving: clock)
    }

    @Test("Restored, it ends at once, unless it is locked by another connection")
    func named() async throws {
        let both = Self.subscribe(1, 1).utf8.count + Self.subscribe(2, 2).utf8.count
        let (locked, refused) = (Self.refusals[2], Self.refusals[0])
        let scripts = [
            Self.accepted(.skip(both), Self.error(locked.0, locked.1), .finish),
            Self.accepted(.skip(both), Self.error(refused.0, refused.1), .finish),
            Self.accepted(.expect(Self.subscribe(2, 1)), Self.receipt(1)),
        ]
        let (transport, messages) = try await subscribing(scripts)
        await expectEnd(of: messages[0], "access_refused")
        withExtendedLifetime(messages) {}
        try await shutDown(transport, moving: clock)
    }
}
