import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Servers that lack parts of the protocol, byte by byte: Spring's simple broker, ActiveMQ Classic, and others.
@Suite("STOMP transport: limited servers", .inSimulation, .timeLimit(.minutes(30)))
struct LimitedServerTests {
    private static let connect =
        "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
    private static let connected = "CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0"

    /// A MESSAGE of Spring's simple broker.
    private static func message(_ text: String, of id: Int = 1) -> String {
        "MESSAGE\ndestination:t\ncontent-type:text/plain\nsubscription:\(id)\nmessage-id:s-\(text)"
            + "\ncontent-length:\(text.utf8.count)\n\n\(text)\0"
    }

    private static func accepted(
        _ steps: ScriptedByteStream.Step...,
        server: String? = nil
    ) -> ScriptedByteStream {
        let name = server.map { "server:\($0)\n" } ?? ""
        let connected = connected.replacing("\n\n", with: "\n\(name)\n")
        return ScriptedByteStream(steps: [.expect(connect), .reply(connected)] + steps)
    }

    /// Collects the options that the server is told to lack.
    private static func limits(of transport: STOMPTransport) -> LineLog {
        let found = LineLog()
        let events = transport.events
        Task {
            for await event in events where event.kind == .unsupported {
                found.append(event.error?.option?.description ?? "")
            }
        }
        return found
    }

    private func client(
        _ script: ScriptedByteStream,
        _ clock: ManualClock = ManualClock(),
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<STOMPEntry>) {
        try scripted([script], clock: clock) {
            $0.reconnection = .never
            change(&$0)
        }
    }

    // MARK: Receipts

    @Test("A message confirms its subscription; a second later requests do without receipts")
    func silent() async throws {
        let clock = ManualClock()
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:t\nreceipt:1\n\n\0"),
            .reply(Self.message("a") + Self.message("b")),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0"),
            .expect("SEND\ncontent-length:1\ndestination:t\n\ny\0"),
            .expect("SUBSCRIBE\nid:2\ndestination:u\n\n\0"),
            .expect("UNSUBSCRIBE\nid:1\n\n\0"),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:3\n\nz\0")
        )
        let (transport, provider) = try client(script, clock)
        let limits = Self.limits(of: transport)
        let messages = try await provider.messages(.subscribe("t"))
        let sending = Task { try await provider.request(.send("x", to: "t")) }
        await untilQuiet()
        #expect(limits.all.isEmpty)
        clock.advance(by: .seconds(1))
        #expect(try await sending.value.headers.isEmpty)
        await untilQuiet()
        #expect(limits.all == ["receipt"])
        try await provider.request(.send("y", to: "t"))
        let others = try await provider.messages(.subscribe("u"))
        try await provider.request(.unsubscribe("t"))
        // What came meanwhile is still there.
        #expect(try await texts(3, messages) == ["a", "b"])
        // An entry that asks for a receipt does not end without one.
        let asking = Task { try await provider.request(.send("z", to: "t", .receipt(.automatic))) }
        await untilQuiet()
        clock.advance(by: .seconds(15))
        let error = await expectError(.timedOut) { try await asking.value }
        #expect(error?.message.contains("set receipts to never") == true)
        #expect(script.failures == [] && script.isComplete)
        #expect(transport.states.current.isConnected)
        withExtendedLifetime(others) {}
    }

    @Test("Sends beyond the window leave when receipts are off")
    func window() async throws {
        let clock = ManualClock()
        let sends = (0..<10).map {
            "SEND\ncontent-length:1\ndestination:t\nreceipt:\($0 + 2)\n\n\($0)\0"
        }
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:t\nreceipt:1\n\n\0"),
            .reply(Self.message("a")),
            .expect(sends.joined())
        )
        let (transport, provider) = try client(script, clock) { $0.limits.inFlight = 3 }
        let messages = try await provider.messages(.subscribe("t"))
        let handles = (0..<10).map { provider.enqueue(.send("\($0)", to: "t")) }
        await untilQuiet()
        clock.advance(by: .seconds(1))
        for handle in handles { _ = try await handle.receipt }
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime((transport, messages)) {}
    }

    @Test("Without a message the error of the missing receipt names the setting")
    func unanswered() async throws {
        let clock = ManualClock()
        let script = Self.accepted(.expect("SUBSCRIBE\nid:1\ndestination:t\nreceipt:1\n\n\0"))
        let (transport, provider) = try client(script, clock)
        let subscribing = Task { try await provider.messages(.subscribe("t")) }
        try await waitUntil { script.isComplete }
        clock.advance(by: .seconds(15))
        let error = await expectError(.timedOut) { try await subscribing.value }
        #expect(error?.message.contains("set receipts to never") == true)
        withExtendedLifetime(transport) {}
    }

    @Test("A receipt that comes after all turns receipts on again")
    func late() async throws {
        let clock = ManualClock()
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:t\nreceipt:1\n\n\0"),
            .reply(Self.message("a")),
            .expect("SEND\ncontent-length:1\ndestination:t\n\nx\0"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0"),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\ny\0"),
            .reply("RECEIPT\nreceipt-id:2\n\n\0")
        )
        let (transport, provider) = try client(script, clock)
        let messages = try await provider.messages(.subscribe("t"))
        clock.advance(by: .seconds(1))
        await untilQuiet()
        try await provider.request(.send("x", to: "t"))
        await untilQuiet()
        #expect(try await provider.request(.send("y", to: "t")).headers.first("receipt-id") == "2")
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime((transport, messages)) {}
    }

    @Test(
        "Receipts stay on where they are demanded, and at servers that are known to send them",
        arguments: [nil, "RabbitMQ/4.0.5", "ActiveMQ-Artemis/2.39.0", "ActiveMQ/6.1.0"]
    )
    func kept(server: String?) async throws {
        let clock = ManualClock()
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:t\nreceipt:1\n\n\0"),
            .reply(Self.message("a")),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0"),
            server: server
        )
        let (transport, provider) = try client(script, clock) {
            if server == nil { $0.receipts = .always }
        }
        let limits = Self.limits(of: transport)
        let messages = try await provider.messages(.subscribe("t"))
        clock.advance(by: .seconds(2))
        await untilQuiet()
        let sending = Task { try await provider.request(.send("x", to: "t")) }
        try await waitUntil { script.isComplete }
        clock.advance(by: .seconds(15))
        await expectError(.timedOut) { try await sending.value }
        #expect(limits.all.isEmpty && script.failures == [])
        withExtendedLifetime((transport, messages)) {}
    }

    // MARK: Acknowledgements

    @Test(
        "A message without `ack` is delivered, and one event tells that it cannot be acknowledged"
    )
    func unacknowledged() async throws {
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:t\nack:client-individual\nreceipt:1\n\n\0"),
            .reply(Self.message("a") + Self.message("b")),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0")
        )
        let (transport, provider) = try client(script)
        let limits = Self.limits(of: transport)
        let messages = try await provider.messages(.subscribe("t", .ackMode(.clientIndividual)))
        let taken = try await take(2, messages)
        #expect(taken.map(\.text) == ["a", "b"] && taken.allSatisfy { $0.qos == .atMostOnce })
        await untilQuiet()
        #expect(limits.all == ["ackMode"])
        // Nothing is acknowledged.
        Task { try await provider.request(.send("x", to: "t")) }
        await untilQuiet()
        #expect(script.failures == [] && script.isComplete)
        #expect(transport.states.current.isConnected)
    }

    // MARK: Text

    /// One SEND with a body and a content type.
    private static func send(_ text: String, _ type: String, hasLength: Bool) -> String {
        "SEND\n" + (hasLength ? "content-length:\(text.utf8.count)\n" : "")
            + "destination:t\ncontent-type:\(type)\n\n\(text)\0"
    }

    @Test(
        "Text has no content-length for ActiveMQ Classic, which would make bytes of it",
        arguments: [
            ("ActiveMQ/5.18.3", STOMPConfiguration.ContentLength.automatic, true),
            ("ActiveMQ/5.18.3", .always, false), ("ActiveMQ-Artemis/2.39.0", .automatic, false),
            ("RabbitMQ/4.0.5", .automatic, false), ("RabbitMQ/4.0.5", .unlessText, true),
        ]
    )
    func text(server: String, choice: STOMPConfiguration.ContentLength, isLeftOut: Bool)
        async throws
    {
        let rows: [(String, String, isText: Bool)] = [
            ("hello", "text/plain;charset=utf-8", true), ("{}", "application/json", true),
            ("<a/>", "image/svg+xml", true), ("a\0b", "text/plain", false),
            ("hello", "application/octet-stream", false),
        ]
        let script = ScriptedByteStream(
            steps: [
                .expect(Self.connect),
                .reply("CONNECTED\nversion:1.2\nserver:\(server)\n\n\0"),
            ]
                + rows.map { row in
                    .expect(Self.send(row.0, row.1, hasLength: !(isLeftOut && row.isText)))
                }
        )
        let (transport, provider) = try client(script) {
            $0.contentLength = choice
            $0.receipts = .never
        }
        for (text, type, _) in rows {
            try await provider.request(.send(text, to: "t", headers: ["content-type": type]))
        }
        await untilQuiet()
        #expect(script.failures == [] && script.isComplete)
        withExtendedLifetime(transport) {}
    }

    // MARK: Versions

    @Test(
        "A server that lacks the version is told of at once, and another host is tried",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            "ERROR\nversion:1.0,1.1\ncontent-type:text/plain\n\nSupported protocol versions are 1.0 1.1\0",
            "CONNECTED\nversion:1.1\n\n\0",
        ]
    )
    func version(answer: String) async throws {
        let first = ScriptedByteStream(.expect(Self.connect), .reply(answer), .finish)
        let other = Self.connect.replacing("script", with: "other")
        let second = ScriptedByteStream(
            .expect(other),
            .reply(Self.connected),
            .expect("DISCONNECT\nreceipt:1\n\n\0"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0")
        )
        let (transport, provider) = try scripted([first, second]) {
            $0.failover.hosts = ["other"]
        }
        try await provider.request(.connect)
        await transport.shutdown()
        #expect(first.failures == [] && second.isComplete)

        let alone = ScriptedByteStream(.expect(Self.connect), .reply(answer), .finish)
        let (_, single) = try scripted([alone])
        let error = await expectError(.unsupported) { try await single.request(.connect) }
        #expect(error?.isRetryable == false && error?.message.contains("set ") == true)
    }
}
