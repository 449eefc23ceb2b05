import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// The options that name a receipt, a subscription or a transaction, and the one that leaves out a length.
@Suite("STOMP transport: identifiers of the app", .inSimulation, .timeLimit(.minutes(30)))
struct IdentifierTests {
    private let clock = ManualClock()

    private static func receipt(_ id: String) -> ScriptedByteStream.Step {
        .reply("RECEIPT\nreceipt-id:\(id)\n\n\0")
    }

    private static func accepted(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        let connect = "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
        return ScriptedByteStream(
            steps: [.expect(connect), .reply("CONNECTED\nversion:1.2\n\n\0")] + steps
        )
    }

    @Test("The bytes of each command")
    func bytes() async throws {
        let subscribe =
            "SUBSCRIBE\nid:mine\ndestination:/queue/t\nack:client-individual\nreceipt:s\\c1\n\n\0"
        let messages = ["m", "n"].map { id in
            "MESSAGE\nsubscription:mine\nmessage-id:\(id)\nack:\(id)\ndestination:/queue/t\n\nx\0"
        }
        let script = Self.accepted(
            .expect(subscribe),
            .reply("RECEIPT\nreceipt-id:s\\c1\n\n\0" + messages.joined()),
            .expect("ACK\nid:m\nreceipt:a\n\n\0"),
            Self.receipt("a"),
            .expect("NACK\nid:n\nreceipt:n\n\n\0"),
            Self.receipt("n"),
            .expect("BEGIN\ntransaction:tx\nreceipt:4\n\n\0"),
            Self.receipt("4"),
            .expect("SEND\ncontent-length:1\ndestination:/queue/t\ntransaction:tx\n\nx\0"),
            .expect(
                "SEND\ncontent-length:1\ndestination:/queue/t\ntransaction:tx\nreceipt:p\n\ny\0"
            ),
            Self.receipt("p"),
            .expect("COMMIT\ntransaction:tx\nreceipt:6\n\n\0"),
            Self.receipt("6"),
            .expect("UNSUBSCRIBE\nid:mine\nreceipt:u\n\n\0"),
            Self.receipt("u")
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let received = try await provider.messages(
            .subscribe(
                "/queue/t",
                .identifier("mine"),
                .receipt(.identifier("s:1")),
                .ackMode(.clientIndividual),
                .manualAcknowledgement
            )
        )
        let ids = try await take(2, received).compactMap(\.id)
        try #require(ids.count == 2)
        try await provider.request(.command(.ack(ids[0], .receipt(.identifier("a")))))
        try await provider.request(.command(.nack(ids[1], .receipt(.identifier("n")))))
        try await provider.request(.begin("tx"))
        try await provider.request(.send("x", .transaction("tx")))
        let receipt = try await provider.request(
            .send("y", .transaction("tx"), .receipt(.identifier("p")))
        )
        #expect(receipt.headers["receipt-id"] == "p")
        try await provider.request(.commit("tx"))
        await expectError(.invalidEntry) {
            try await provider.request(.send("z", .transaction("tx")))
        }
        try await provider.request(
            .command(.unsubscribe(.receipt(.identifier("u"))), topic: "/queue/t")
        )
        #expect(script.failures == [] && script.isComplete)
        try await shutDown(transport, moving: clock)
    }

    @Test(
        "The length: the entry wins over the configuration",
        arguments: STOMPConfiguration.ContentLength.allCases
    )
    func contentLength(configured: STOMPConfiguration.ContentLength) async throws {
        let destination = "destination:/queue/t\ncontent-type:text/plain"
        let script = Self.accepted(
            .expect("SEND\n\(destination)\nreceipt:1\n\nx\0"),
            Self.receipt("1"),
            .expect("SEND\ncontent-length:1\n\(destination)\nreceipt:2\n\nx\0"),
            Self.receipt("2")
        )
        let (transport, provider) = try scripted([script], clock: clock) {
            $0.contentLength = configured
        }
        for hasLength in [false, true] {
            let body = EntryBody.bytes(Array("x".utf8), contentType: "text/plain")
            try await provider.request(
                .command(.send(.contentLength(hasLength)), topic: "/queue/t", body: body)
            )
        }
        #expect(script.failures == [] && script.isComplete)
        try await shutDown(transport, moving: clock)
    }

    @Test("No two open receipts have one id, whoever made it; afterwards it is free")
    func receipts() async throws {
        let head = "SEND\ncontent-length:1\ndestination:/queue/t\n"
        let script = Self.accepted(
            .expect(head + "receipt:r\n\na\0"),
            .expect(head + "receipt:2\n\nb\0"),
            .expect(head + "\nc\0"),
            // Known as a number on this side alone.
            .reply("RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0"),
            .expect(head + "\nd\0"),
            Self.receipt("r"),
            .expect(head + "receipt:r\n\ne\0"),
            Self.receipt("r")
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let first = Task { try await provider.request(.send("a", .receipt(.identifier("r")))) }
        await untilQuiet()
        let second = Task { try await provider.request(.send("b")) }
        await untilQuiet()
        // Numbers are the transport's.
        for id in ["r", "2", "3"] {
            await expectError(.invalidEntry) {
                try await provider.request(.send("x", .receipt(.identifier(id))))
            }
        }
        try await provider.request(.send("c", .receipt(.none)))
        #expect(try await second.value.headers["receipt-id"] == "2")
        await expectError(.invalidEntry) {
            try await provider.request(.send("x", .receipt(.identifier("r"))))
        }
        try await provider.request(.send("d", .receipt(.none)))
        #expect(try await first.value.headers["receipt-id"] == "r")
        try await provider.request(.send("e", .receipt(.identifier("r"))))
        #expect(script.failures == [] && script.isComplete)
        try await shutDown(transport, moving: clock)
    }

    @Test("An UNSUBSCRIBE whose receipt is taken ends nothing")
    func unsubscribe() async throws {
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:/queue/t\nreceipt:1\n\n\0"),
            Self.receipt("1"),
            .expect("SEND\ncontent-length:1\ndestination:/queue/u\nreceipt:r\n\na\0"),
            .expect("SEND\ncontent-length:1\ndestination:/queue/u\n\nb\0"),
            .reply(
                "RECEIPT\nreceipt-id:r\n\n\0MESSAGE\nsubscription:1\nmessage-id:m\n"
                    + "destination:/queue/t\n\nstill here\0"
            )
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let messages = try await provider.messages(.subscribe())
        let sending = Task {
            try await provider.request(.send("a", to: "/queue/u", .receipt(.identifier("r"))))
        }
        await untilQuiet()
        await expectError(.invalidEntry) {
            try await provider.request(
                .command(.unsubscribe(.receipt(.identifier("r"))), topic: "/queue/t")
            )
        }
        try await provider.request(.send("b", to: "/queue/u", .receipt(.none)))
        _ = try await sending.value
        #expect(try await take(1, messages).map(\.text) == ["still here"])
        #expect(script.failures == [] && script.isComplete)
        try await shutDown(transport, moving: clock)
    }

    @Test("A subscription's identifier is used once, and again over the next connection")
    func subscriptions() async throws {
        let first = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:/queue/a\nreceipt:r\n\n\0"),
            Self.receipt("r"),
            // Not 1, which the app has taken.
            .expect("SUBSCRIBE\nid:2\ndestination:/queue/b\nreceipt:2\n\n\0"),
            Self.receipt("2"),
            .expect("UNSUBSCRIBE\nid:2\n\n\0"),
            .expect("SEND\ndestination:go\n\n\0"),
            .reset
        )
        // The receipt is one of the transport's own.
        let second = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:/queue/a\nreceipt:1\n\n\0"),
            Self.receipt("1")
        )
        let (transport, provider) = try scripted([first, second], clock: clock) {
            $0.replyDestination = "/queue/replies"
        }
        let messages = try await provider.messages(
            .subscribe("/queue/a", .identifier("1"), .receipt(.identifier("r")))
        )
        // That of another subscription, and that of the replies.
        for id in ["1", "/queue/replies"] {
            await expectError(.invalidEntry) {
                try await provider.messages(.subscribe("/queue/b", .identifier(id)))
            }
        }
        let others = try await provider.messages(.subscribe("/queue/b"))
        others.cancel()
        try await provider.request(.send("", to: "go", .receipt(.none)))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            second.isComplete || first.failures + second.failures != []
        }
        await untilQuiet()
        #expect(first.failures == [] && second.failures == [])
        withExtendedLifetime(messages) {}
        try await shutDown(transport, moving: clock)
    }

    @Test("One identifier for several frames is refused")
    func severalTopics() async throws {
        let transport = try STOMPTransport()
        let provider = Provider<AnyEntry>(transport: transport)
        let topics = AnyEntry(topics: ["a", "b"], command: .subscribe(.identifier("i")))
        await expectError(.invalidEntry) { try await provider.messages(topics) }
        let ends = AnyEntry(
            topics: ["a", "b"],
            command: .unsubscribe(.receipt(.identifier("r")))
        )
        await expectError(.invalidEntry) { try await provider.request(ends) }
    }

    @Test("A description shows no identifier")
    func description() {
        let receipt = STOMPReceipt.identifier("secret")
        #expect("\(receipt)" == "identifier" && Mirror(reflecting: receipt).children.isEmpty)
        #expect(receipt != .identifier("other") && receipt == .identifier("secret"))
    }
}
