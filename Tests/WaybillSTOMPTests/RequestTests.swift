import STOMPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting

@Suite("STOMP transport: requests", .inSimulation, .timeLimit(.minutes(30))) struct RequestTests {
    @Test("Receipts: by transport, by entry, and the QoS that wants one")
    func receipts() async throws {
        for asks in [true, false] {
            let fixture = try Fixture()
            let (transport, provider) = try fixture.provider {
                $0.receipts = asks ? .always : .never
            }
            let messages = try await provider.messages(.subscribe("t"))
            try await provider.request(.send("default", to: "t"))
            try await provider.request(.send("yes", to: "t", .receipt(.automatic)))
            try await provider.request(.send("no", to: "t", .receipt(.none)))
            try await provider.request(
                .command(.send(qos: .atLeastOnce), topic: "t", body: .text("qos"))
            )
            #expect(try await texts(4, messages) == ["default", "yes", "no", "qos"])
            let sends = fixture.lines.all.filter { $0.contains("← SEND") }
            #expect(sends.map { $0.contains("receipt=") } == [asks, true, false, true])
            let subscribe = fixture.lines.first("← SUBSCRIBE") ?? ""
            #expect(subscribe.contains("receipt=") == asks)
            try await provider.request(.unsubscribe("t"))
            try await provider.request(.begin("x"))
            try await provider.request(.abort("x"))
            try await provider.request(.disconnect)
            // DISCONNECT always has a receipt, so all frames before it have arrived.
            #expect(fixture.lines.first("← DISCONNECT")?.contains("receipt=") == true)
            #expect(fixture.lines.first("← BEGIN")?.contains("receipt=") == asks)
            await fixture.end(transport)
        }
    }

    @Test("Two subscriptions to a destination have ids of their own; each gets every message")
    func severalSubscriptions() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let first = try await provider.messages(.subscribe("t"))
        let second = try await provider.messages(.subscribe("t"))
        let other = try await provider.messages(.subscribe("u"))
        try await provider.request(.send("1", to: "t"))
        #expect(try await texts(1, first) == ["1"])
        #expect(try await texts(1, second) == ["1"])
        #expect(fixture.lines.count("← SUBSCRIBE id=1 ") == 1)
        #expect(fixture.lines.count("← SUBSCRIBE id=2 ") == 1)
        first.cancel()
        try await provider.request(.send("2", to: "t"))
        #expect(try await texts(1, second) == ["2"])
        // UNSUBSCRIBE by destination ends all streams of the destination, and no others.
        let third = try await provider.messages(.subscribe("t"))
        try await provider.request(.unsubscribe("t"))
        #expect(fixture.lines.count("← UNSUBSCRIBE") == 3)
        for messages in [second, third] {
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
        }
        let again = try await provider.request(.unsubscribe("t"))
        #expect(again.reason == "no subscription existed")
        try await provider.request(.send("3", to: "u"))
        #expect(try await texts(1, other) == ["3"])
        await fixture.end(transport)
    }

    @Test("Subscriptions to a queue share its messages")
    func sharedQueue() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let first = try await provider.messages(.subscribe())
        let second = try await provider.messages(.subscribe())
        for number in 1...4 { try await provider.request(.send("\(number)")) }
        let heard = try await texts(2, first) + texts(2, second)
        #expect(heard.sorted() == ["1", "2", "3", "4"])
        await fixture.end(transport)
    }

    @Test("An UNSUBSCRIBE that cannot be sent ends nothing")
    func unsubscribeRefused() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe("t"))
        for headers in [["id": "1"], ["a": "\0"], ["receipt": "1"]] as [Headers] {
            await expectError(.invalidEntry) {
                try await provider.request(.command(.unsubscribe, topic: "t", headers: headers))
            }
        }
        try await provider.request(.send("still here", to: "t"))
        #expect(try await texts(1, messages) == ["still here"])
        await fixture.end(transport)
    }

    @Test("Cancelled while leaving: every subscription of the destination is gone all the same")
    func unsubscribeCancelled() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let streams = [
            try await provider.messages(.subscribe("t")),
            try await provider.messages(.subscribe("t")),
        ]
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await provider.request(.unsubscribe("t"))
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        for messages in streams {
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
        }
        try await provider.request(.send("x", to: "t"))
        #expect(fixture.lines.count("← UNSUBSCRIBE") == 2)
        #expect(fixture.lines.count("→ MESSAGE") == 0)
        await fixture.end(transport)
    }

    @Test("Two providers and a copy share one connection")
    func sharing() async throws {
        let fixture = try Fixture()
        let transport = try fixture.transport()
        let first = Provider<STOMPEntry>(transport: transport)
        let copy = first
        let second = Provider<STOMPEntry>(transport: transport)
        let messages = try await second.messages(.subscribe("t"))
        try await first.request(.send("1", to: "t"))
        try await copy.request(.send("2", to: "t"))
        #expect(try await texts(2, messages) == ["1", "2"])
        #expect(fixture.broker.connectionCount == 1)
        await expectError(.rejected) { try await copy.request(.connect) }
        await transport.shutdown()
        await expectError(.shutDown) { try await second.request(.send("x", to: "t")) }
        await fixture.broker.stop()
    }

    // MARK: Connecting

    @Test("Connect options: heart-beats, host, credentials, headers; the entry wins")
    func connectOptions() async throws {
        let script = ScriptedByteStream(
            .expect(
                "CONNECT\naccept-version:1.2\nhost:v\nlogin:ada\npasscode:s\nheart-beat:3000,3000\nx:1\n\n\0"
            ),
            .reply("CONNECTED\nversion:1.2\nserver:demo/1\nheart-beat:0,0\n\n\0"),
            .expect("DISCONNECT\nreceipt:1\n\n\0"),
            .finish
        )
        let transport = try STOMPTransport(
            scripts: script,
            configuration: {
                var configuration = STOMPConfiguration()
                configuration.versions = [.v1_2]
                configuration.host = "v"
                configuration.userName = "bob"
                configuration.password = "wrong"
                return configuration
            }()
        )
        let provider = Provider<STOMPEntry>(transport: transport)
        let connect = EntryCommand.connect(
            .userName("ada"),
            .password("s"),
            .keepAlive(.seconds(3))
        )
        let receipt = try await provider.request(.command(connect, headers: ["x": "1"]))
        #expect(receipt.reason == "STOMP 1.2, demo/1")
        #expect(receipt.headers["server"] == "demo/1")
        await transport.shutdown()
        #expect(script.failures == [] && script.isComplete)
    }

    @Test("A header of a connect wins over options and configuration; the URL comes last")
    func connectHeaders() async throws {
        let fixture = try Fixture(.stomp) { $0.credentials = ["ada": "secret", "url": "too"] }
        let (transport, provider) = try fixture.provider { $0.userName = "wrong" }
        let error = await expectError(.unauthorized) { try await provider.request(.connect) }
        #expect(error?.peerReason == "Access refused")
        #expect((error?.underlying as? STOMPServerError)?.message == "Access refused")
        try await provider.request(
            .command(.connect, headers: ["login": "ada", "passcode": "secret", "host": "/"])
        )
        #expect(fixture.lines.all.allSatisfy { !$0.contains("secret") })
        await transport.shutdown()
        let port = fixture.broker.port(for: .stomp)
        let byURL = try STOMPTransport(url: "stomp://url:too@127.0.0.1:\(port)") {
            $0.timeouts.connect = .seconds(120)
        }
        try await Provider<STOMPEntry>(transport: byURL).request(.connect)
        await fixture.end(byURL)
    }

    // MARK: Bad input

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let entry: STOMPEntry
        var code = WaybillError.Code.invalidEntry

        var testDescription: String { name }
    }

    static let rows: [Row] = [
        Row(name: "retained", entry: .send("x", to: "t", .retained), code: .unsupported),
        Row(
            name: "QoS 2",
            entry: .command(.send(qos: .exactlyOnce), topic: "t"),
            code: .unsupported
        ),
        Row(name: "expiry", entry: .send("x", to: "t", .expiry(.seconds(1))), code: .unsupported),
        Row(
            name: "QoS 2 of a subscription",
            entry: .command(.subscribe(qos: .exactlyOnce), topic: "t"),
            code: .unsupported
        ),
        Row(name: "noLocal", entry: .subscribe("t", .noLocal), code: .unsupported),
        Row(
            name: "retain handling",
            entry: .subscribe("t", .retainHandling(.doNotSend)),
            code: .unsupported
        ),
        Row(
            name: "manual in auto mode",
            entry: .subscribe("t", .ackMode(.auto), .manualAcknowledgement)
        ),
        Row(name: "unknown ack mode", entry: .subscribe("t", headers: ["ack": "later"])),
        Row(name: "empty destination", entry: .send("x", to: "")),
        Row(name: "no destination", entry: .command(.send)),
        Row(name: "empty destination to hear", entry: .subscribe("")),
        Row(name: "NUL in a destination", entry: .send("x", to: "a\0b")),
        Row(name: "NUL in a destination to hear", entry: .subscribe("a\0b")),
        Row(name: "destination twice", entry: .send("x", to: "t", headers: ["destination": "u"])),
        Row(name: "content-length", entry: .send("x", to: "t", headers: ["content-length": "9"])),
        Row(name: "receipt", entry: .send("x", to: "t", headers: ["receipt": "9"])),
        Row(name: "id of a subscription", entry: .subscribe("t", headers: ["id": "9"])),
        Row(name: "receipt without an id", entry: .send("x", to: "t", .receipt(.identifier("")))),
        Row(name: "a number as a receipt", entry: .send("x", to: "t", .receipt(.identifier("7")))),
        Row(name: "NUL in a receipt", entry: .subscribe("t", .receipt(.identifier("\0")))),
        Row(
            name: "receipt too long for its answer",
            entry: .command(
                .unsubscribe(.receipt(.identifier(String(repeating: "r", count: 40_000)))),
                topic: "t"
            )
        ),
        Row(
            name: "receipt of an ack without an id",
            entry: .command(.ack(.named("m"), .receipt(.identifier(""))))
        ),
        Row(name: "subscription without an id", entry: .subscribe("t", .identifier(""))),
        Row(name: "NUL in an id of a subscription", entry: .subscribe("t", .identifier("\0"))),
        Row(
            name: "transaction twice",
            entry: .send("x", to: "t", headers: ["transaction": "x"], .transaction("x"))
        ),
        Row(name: "empty transaction of a send", entry: .send("x", to: "t", .transaction(""))),
        Row(name: "NUL in a body without a length", entry: .send("\0", .contentLength(false))),
        Row(name: "header without a name", entry: .send("x", to: "t", headers: ["": "9"])),
        Row(name: "NUL in a header", entry: .send("x", to: "t", headers: ["a": "\0"])),
        Row(name: "NUL in a transaction", entry: .begin("\0")),
        Row(name: "transaction without a name", entry: .begin("")),
        Row(
            name: "NUL in a header of a transaction",
            entry: .command(.begin(transaction: "x"), headers: ["a": "\0"])
        ),
        Row(
            name: "second name of a transaction",
            entry: .command(.begin(transaction: "x"), headers: ["transaction": "y"])
        ),
        Row(
            name: "client identifier",
            entry: .command(.connect(.clientIdentifier("c"))),
            code: .unsupported
        ),
        Row(
            name: "will",
            entry: .command(.connect(.will(Will(topic: "w", body: "x")))),
            code: .unsupported
        ),
        Row(
            name: "clean start",
            entry: .command(.connect(.cleanStart(true))),
            code: .unsupported
        ),
        Row(name: "line break in a login", entry: .command(.connect(.userName("a\nb")))),
        Row(name: "NUL in a passcode", entry: .command(.connect(.userName("a"), .password("\0")))),
        Row(
            name: "heart-beat as a header",
            entry: .command(.connect, headers: ["heart-beat": "1,1"])
        ),
        Row(name: "topic of a connect", entry: .command(.connect, topic: "t"), code: .unsupported),
        Row(
            name: "body of a connect",
            entry: .command(.connect, body: .text("x")),
            code: .unsupported
        ),
        Row(
            name: "body of a subscription",
            entry: .command(.subscribe, topic: "t", body: .text("x")),
            code: .unsupported
        ),
        Row(
            name: "body of an unsubscribe",
            entry: .command(.unsubscribe, topic: "t", body: .text("x")),
            code: .unsupported
        ),
        Row(
            name: "headers of a disconnect",
            entry: .command(.disconnect, headers: ["a": "1"]),
            code: .unsupported
        ),
        Row(name: "ack of nothing", entry: .ack(.named("m")), code: .notConnected),
        Row(name: "commit of nothing", entry: .commit("x"), code: .notConnected),
    ]

    private func perform(
        _ entry: STOMPEntry,
        _ provider: Provider<STOMPEntry>
    ) async throws {
        if entry.command.kind == .subscribe {
            _ = try await provider.messages(entry)
        } else {
            try await provider.request(entry)
        }
    }

    @Test("Each is refused before a connection is made", arguments: rows)
    func unconnected(row: Row) async throws {
        // Without a script, a connection attempt would fail with another error.
        let transport = try STOMPTransport()
        await expectError(row.code) {
            try await perform(row.entry, Provider(transport: transport))
        }
        #expect("\(transport.states.current)" == "idle")
    }

    @Test("None of them disturbs a connection", arguments: services)
    func connected(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        try await provider.request(.connect)
        for row in Self.rows {
            if row.entry.command.kind == .connect { continue }
            let code = row.code == .notConnected ? .invalidEntry : row.code
            await expectError(code) { try await perform(row.entry, provider) }
        }
        try await provider.request(.send("x"))
        #expect(fixture.lines.count("← SEND") == 1)
        #expect(fixture.lines.count("← CONNECT") == 1)
        #expect("\(transport.states.current)" == "connected")
        await fixture.end(transport)
    }

    @Test(
        "A send that asks for messages is refused, and so is a subscription that asks for a reply"
    )
    func wrongWay() async throws {
        let transport = try STOMPTransport()
        let provider = Provider<STOMPEntry>(transport: transport)
        await expectError(.invalidEntry) { try await provider.messages(.send("x")) }
        await expectError(.invalidEntry) { try await provider.request(.subscribe()) }
        for (url, code) in [
            ("mqtts://h", WaybillError.Code.unsupported), ("https://h", .unsupported),
            ("stomp://h/path", .invalidEntry), ("stomp://", .invalidEntry),
        ] {
            #expect { try STOMPTransport(url: url) } throws: { ($0 as? WaybillError)?.code == code }
        }
    }
}
