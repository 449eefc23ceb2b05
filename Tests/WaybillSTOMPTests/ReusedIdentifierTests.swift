import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

/// A subscription whose id an entry chooses again: what is left of the one before does not reach it.
@Suite("STOMP transport: ids that are chosen again", .inSimulation, .timeLimit(.minutes(30)))
struct ReusedIdentifierTests {
    private let clock = ManualClock()

    private static func receipt(_ id: String) -> String { "RECEIPT\nreceipt-id:\(id)\n\n\0" }

    private static func message(_ text: String) -> String {
        "MESSAGE\nsubscription:mine\nmessage-id:\(text)\nack:\(text)\ndestination:/queue/t\n\n\(text)\0"
    }

    /// A step of the test that the server sees.
    private static func mark(_ receipt: Int) -> ScriptedByteStream.Step {
        .expect("SEND\ndestination:go\nreceipt:\(receipt)\n\n\0")
    }

    private static func subscribe(_ receipt: Int) -> ScriptedByteStream.Step {
        .expect(
            "SUBSCRIBE\nid:mine\ndestination:/queue/t\nack:client-individual\nreceipt:\(receipt)\n\n\0"
        )
    }

    private static func accepted(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        let connect = "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
        return ScriptedByteStream(
            steps: [.expect(connect), .reply("CONNECTED\nversion:1.2\n\n\0")] + steps
        )
    }

    private let mine = STOMPEntry.subscribe(
        "/queue/t",
        .identifier("mine"),
        .ackMode(.clientIndividual)
    )
    private let mark = STOMPEntry.send("", to: "go")

    @Test("The stream before ends nothing, and acknowledges nothing")
    func oldStream() async throws {
        let script = Self.accepted(
            Self.subscribe(1),
            .reply(Self.receipt("1") + Self.message("old")),
            Self.mark(2),
            .reply(Self.receipt("2")),
            .expect("UNSUBSCRIBE\nid:mine\nreceipt:3\n\n\0"),
            .reply(Self.receipt("3")),
            Self.subscribe(4),
            .reply(Self.receipt("4")),
            // Neither ACK nor UNSUBSCRIBE.
            Self.mark(5),
            .reply(Self.receipt("5") + Self.message("new")),
            .expect("ACK\nid:new\n\n\0")
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let old = try await provider.messages(mine)
        // The message has come before the receipt of this.
        try await provider.request(mark)
        try await provider.request(.unsubscribe("/queue/t"))
        let new = try await provider.messages(mine)
        _ = try await take(2, old)
        old.cancel()
        try await provider.request(mark)
        #expect(try await take(1, new).map(\.text) == ["new"])
        await untilQuiet()
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime(new) {}
        try await shutDown(transport, moving: clock)
    }

    @Test("The id of a stream that was released is taken until the server has ended it")
    func released() async throws {
        let script = Self.accepted(
            Self.subscribe(1),
            .reply(Self.receipt("1")),
            .expect("UNSUBSCRIBE\nid:mine\nreceipt:2\n\n\0"),
            Self.mark(3),
            .reply(Self.message("old") + Self.receipt("2") + Self.receipt("3")),
            Self.subscribe(4),
            .reply(Self.receipt("4") + Self.message("new"))
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let old = try await provider.messages(mine)
        old.cancel()
        await expectError(.invalidEntry) { try await provider.messages(mine) }
        try await provider.request(mark)
        let new = try await provider.messages(mine)
        #expect(try await take(1, new).map(\.text) == ["new"])
        await untilQuiet()
        #expect(script.failures == [])
        withExtendedLifetime(new) {}
        try await shutDown(transport, moving: clock)
    }

    @Test("The id of an UNSUBSCRIBE without an answer in time is taken until that comes")
    func late() async throws {
        let script = Self.accepted(
            Self.subscribe(1),
            .reply(Self.receipt("1")),
            .expect("UNSUBSCRIBE\nid:mine\nreceipt:2\n\n\0"),
            Self.mark(3),
            .reply(Self.receipt("3")),
            Self.mark(4),
            .reply(Self.receipt("2") + Self.receipt("4")),
            Self.subscribe(5),
            .reply(Self.receipt("5"))
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let old = try await provider.messages(mine)
        try await expectTimeout { try await provider.request(.unsubscribe("/queue/t")) }
        try await provider.request(mark)
        await expectError(.invalidEntry) { try await provider.messages(mine) }
        try await provider.request(mark)
        let new = try await provider.messages(mine)
        await untilQuiet()
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime((old, new)) {}
        try await shutDown(transport, moving: clock)
    }

    @Test("An UNSUBSCRIBE whose receipt has become taken asks for another one")
    func takenMeanwhile() async throws {
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:/queue/t\nreceipt:1\n\n\0"),
            .reply(Self.receipt("1")),
            .expect("SUBSCRIBE\nid:2\ndestination:/queue/t\nreceipt:2\n\n\0"),
            .reply(Self.receipt("2")),
            .expect("UNSUBSCRIBE\nid:1\nreceipt:u\n\n\0"),
            .expect("UNSUBSCRIBE\nid:2\nreceipt:4\n\n\0"),
            .reply(Self.receipt("4"))
        )
        let (transport, provider) = try scripted([script], clock: clock)
        let first = try await provider.messages(.subscribe())
        let second = try await provider.messages(.subscribe())
        try await expectTimeout {
            try await provider.request(
                .command(.unsubscribe(.receipt(.identifier("u"))), topic: "/queue/t")
            )
        }
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime((first, second)) {}
        try await shutDown(transport, moving: clock)
    }

    private func expectTimeout(_ body: @escaping @Sendable () async throws -> Receipt) async throws
    {
        let isOver = Locked(false)
        let ending = Task {
            defer { isOver.withLock { $0 = true } }
            return try await body()
        }
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            isOver.withLock { $0 }
        }
        await expectError(.timedOut) { try await ending.value }
    }
}
