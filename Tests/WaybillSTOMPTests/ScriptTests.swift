import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Connections that follow a script, on a clock that stands still.
@Suite("STOMP transport: frames and time", .inSimulation, .timeLimit(.minutes(30)))
struct ScriptTests {
    private static let connect =
        "CONNECT\naccept-version:1.2\nhost:script\nheart-beat:10000,10000\n\n\0"
    private static let connected = "CONNECTED\nversion:1.2\n\n\0"
    private static let beating = "CONNECTED\nversion:1.2\nheart-beat:10000,10000\n\n\0"
    private static let subscribe = "SUBSCRIBE\nid:1\ndestination:t\nreceipt:1\n\n\0"
    private static let subscribed = "RECEIPT\nreceipt-id:1\n\n\0"

    private func client(
        _ script: ScriptedByteStream,
        clock: ManualClock = ManualClock(),
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<STOMPEntry>) {
        try scripted([script], clock: clock) {
            $0.reconnection = .never
            change(&$0)
        }
    }

    /// A script that accepts the client's CONNECT, and then follows the steps.
    private static func accepted(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: [.expect(connect), .reply(connected)] + steps)
    }

    @Test(
        "Receipts that come in one read with the ERROR that ends all count, however many",
        arguments: [1, 6]
    )
    func receiptsBeforeAnError(count: Int) async throws {
        let sends = (1...count).map {
            ScriptedByteStream.Step.expect(
                "SEND\ncontent-length:1\ndestination:t\nreceipt:\($0)\n\nx\0"
            )
        }
        let receipts = (1...count).map { "RECEIPT\nreceipt-id:\($0)\n\n\0" }.joined()
        let script = ScriptedByteStream(
            steps: [.expect(Self.connect), .reply(Self.connected)] + sends
                + [.reply(receipts + "ERROR\nmessage:enough\n\n\0"), .finish]
        )
        let (transport, provider) = try client(script)
        try await withThrowingTaskGroup { group in
            for _ in 0..<count { group.addTask { try await provider.request(.send("x", to: "t")) } }
            try await group.waitForAll()
        }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A message of a subscription that the app has left is told with its destination")
    func unheard() async throws {
        let script = Self.accepted(
            .expect(Self.subscribe),
            .reply(Self.subscribed),
            .expect("UNSUBSCRIBE\nid:1\nreceipt:2\n\n\0"),
            .reply("RECEIPT\nreceipt-id:2\n\n\0"),
            .reply("MESSAGE\ndestination:t\nmessage-id:1\nsubscription:1\n\nab\0")
        )
        let (transport, provider) = try client(script)
        var events = provider.events.makeAsyncIterator()
        let messages = try await provider.messages(.subscribe("t"))
        try await provider.request(.command(.unsubscribe, topic: "t"))
        #expect(script.failures == [])
        while let event = await events.next() {
            guard event.dropReason == .noListener else { continue }
            #expect(event.topic == "t" && event.byteCount == 2 && event.count == 1)
            break
        }
        withExtendedLifetime((transport, messages)) {}
    }

    private static func message(_ number: Int, _ body: String) -> String {
        "MESSAGE\ndestination:t\nmessage-id:\(number)\nsubscription:1\nack:\(number)\n\n\(body)\0"
    }

    @Test(
        "In the mode `client`, skipped messages are acknowledged as soon as all before them are",
        arguments: [false, true]
    )
    func skipped(isManual: Bool) async throws {
        let long = String(repeating: "x", count: 100)
        // A server with `prefetch-count:1` sends nothing more before its ACK.
        let script = Self.accepted(
            .expect("SUBSCRIBE\nid:1\ndestination:t\nack:client\n\n\0"),
            .reply(Self.message(1, long)),
            .expect("ACK\nid:1\n\n\0"),
            .reply(Self.message(2, "first") + Self.message(3, long) + Self.message(4, long)),
            .expect("ACK\nid:2\n\n\0"),
            .expect("ACK\nid:4\n\n\0"),
            .reply(Self.message(5, "last")),
            .expect("ACK\nid:5\n\n\0"),
            .expect("DISCONNECT\nreceipt:1\n\n\0"),
            .finish
        )
        let (transport, provider) = try client(script) {
            $0.limits.bodySize = 64
            $0.receipts = .never
        }
        let subscription = STOMPEntry.command(
            .subscribe(
                options: isManual
                    ? [.ackMode(.client), .manualAcknowledgement] : [.ackMode(.client)]
            ),
            topic: "t"
        )
        let heard = LineLog()
        let reading = Task {
            for try await message in try await provider.messages(subscription) {
                heard.append(message.text ?? "")
                if isManual, let id = message.id { try await provider.request(.ack(id)) }
            }
        }
        await untilQuiet()
        #expect(script.failures == [])
        #expect(script.hasReached(11))
        #expect(heard.all == ["first", "last"])
        await transport.shutdown()
        _ = await reading.result
    }

    @Test("A message that comes before its subscription is restored can be acknowledged at once")
    func acknowledgedWhileRestoring() async throws {
        let subscribe =
            "SUBSCRIBE\nid:1\ndestination:t\nack:client-individual\nreceipt:1\n\n\0"
        let first = Self.accepted(
            .expect(subscribe),
            .reply(Self.subscribed),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0"),
            .reset
        )
        let message = "MESSAGE\ndestination:t\nmessage-id:a\nsubscription:1\nack:a\n\n\0"
        let second = Self.accepted(
            .expect(subscribe),
            .reply(message),
            // The server does not confirm the subscription before it has this.
            .expect("ACK\nid:a\nreceipt:2\n\n\0"),
            .reply(Self.subscribed + "RECEIPT\nreceipt-id:2\n\n\0"),
            .finish
        )
        let clock = ManualClock()
        let (transport, provider) = try scripted([first, second], clock: clock)
        let messages = try await provider.messages(
            .subscribe("t", .ackMode(.clientIndividual), .manualAcknowledgement)
        )
        let reader = Task {
            for try await message in messages {
                try await provider.request(.ack(try #require(message.id)))
            }
        }
        let lost = Task { try await provider.request(.send("x", to: "t")) }
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
        lost.cancel()
        reader.cancel()
        _ = await (lost.result, reader.result)
    }

    @Test("A message of the connection before is acknowledged over no other connection")
    func acknowledgedTooLate() async throws {
        let subscribe =
            "SUBSCRIBE\nid:1\ndestination:t\nack:client-individual\nreceipt:1\n\n\0"
        func message(_ name: String) -> String {
            "MESSAGE\ndestination:t\nmessage-id:\(name)\nsubscription:1\nack:\(name)\n\n\(name)\0"
        }
        let first = Self.accepted(
            .expect(subscribe),
            .reply(Self.subscribed + message("a")),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0"),
            .reset
        )
        let second = Self.accepted(
            .expect(subscribe),
            .reply(Self.subscribed + message("b")),
            .expect("ACK\nid:b\n\n\0"),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\ny\0"),
            .reply("RECEIPT\nreceipt-id:2\n\n\0"),
            .expect("DISCONNECT\nreceipt:3\n\n\0"),
            .finish
        )
        let (transport, provider) = try scripted([first, second])
        let messages = try await provider.messages(.subscribe("t", .ackMode(.clientIndividual)))
        await expectError(.connectionLost) { try await provider.request(.send("x", to: "t")) }
        try await waitUntil { second.hasReached(5) || second.failures != [] }
        // Taken over the second connection, which does not know the message `a`.
        let heard = LineLog()
        let reader = Task {
            for try await message in messages { heard.append(message.text ?? "") }
        }
        await untilQuiet()
        #expect(heard.all == ["a", "b"])
        try await provider.request(.send("y", to: "t"))
        await transport.shutdown()
        _ = await reader.result
        #expect(second.isComplete)
    }

    @Test("Messages of the connection before do not count among those that this one waits for")
    func countedTooLate() async throws {
        let subscribe =
            "SUBSCRIBE\nid:1\ndestination:t\nack:client-individual\nreceipt:1\n\n\0"
        func message(_ name: String) -> String {
            "MESSAGE\ndestination:t\nmessage-id:\(name)\nsubscription:1\nack:\(name)\n\n\(name)\0"
        }
        let first = Self.accepted(
            .expect(subscribe),
            .reply(Self.subscribed + message("a") + message("b")),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0"),
            .reset
        )
        let second = Self.accepted(
            .expect(subscribe),
            .reply(Self.subscribed),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\ny\0"),
            .reply("RECEIPT\nreceipt-id:2\n\n\0" + message("c")),
            .expect("ACK\nid:c\n\n\0"),
            .expect("DISCONNECT\nreceipt:3\n\n\0"),
            .finish
        )
        let (transport, provider) = try scripted([first, second])
        let messages = try await provider.messages(.subscribe("t", .ackMode(.clientIndividual)))
        await expectError(.connectionLost) { try await provider.request(.send("x", to: "t")) }
        try await waitUntil { second.hasReached(4) || second.failures != [] }
        let heard = LineLog()
        let reader = Task {
            for try await message in messages { heard.append(message.text ?? "") }
        }
        await untilQuiet()
        #expect(heard.all == ["a", "b"])
        try await provider.request(.send("y", to: "t"))
        await untilQuiet()
        #expect(heard.all == ["a", "b", "c"])
        await transport.shutdown()
        let result = await reader.result
        #expect(throws: Never.self) { try result.get() }
        #expect(second.isComplete)
    }

    @Test(
        "An ERROR that names the destination is the refusal of its request, which no retry can help"
    )
    func unknownDestination() async throws {
        let body = "'/nowhere' is not a valid destination.\n"
        let script = Self.accepted(
            .expect("SEND\ncontent-length:1\ndestination:/nowhere\nreceipt:1\n\nx\0"),
            .reply("ERROR\nmessage:Unknown destination\n\n\(body)\0"),
            .finish
        )
        let (transport, provider) = try client(script)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.send("x", to: "/nowhere"))
        }
        #expect(error?.code == .rejected && error?.isRetryable == false)
        #expect(error?.peerReason == "Unknown destination")
        #expect(error?.topic == "/nowhere")
        let said = error?.underlying as? STOMPServerError
        #expect(said?.body.text == body)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test(
        "Requests beyond the window wait for receipts; those never sent try another connection"
    )
    func window() async throws {
        let script = Self.accepted(
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:1\n\nx\0"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0"),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:2\n\nx\0"),
            .reply("RECEIPT\nreceipt-id:2\n\n\0"),
            .expect("SEND\ncontent-length:1\ndestination:t\nreceipt:3\n\nx\0"),
            .finish
        )
        let (transport, provider) = try client(script) { $0.limits.inFlight = 1 }
        try await provider.request(.connect)
        let sends = (0..<5).map { _ in
            Task { try await provider.request(.send("x", to: "t")) }
        }
        var codes: [String] = []
        for send in sends {
            do {
                _ = try await send.value
                codes.append("sent")
            } catch let error as WaybillError { codes.append(error.code.name) }
        }
        // The third SEND may have arrived. The others have not: they connect again, and find the end of the script. A
        // call that begins later finds the transport waiting before its next attempt.
        let refused = codes.filter { ["connectionRefused", "notConnected"].contains($0) }
        #expect(codes.count { $0 == "sent" } == 2 && codes.contains("connectionLost"))
        #expect(refused.count == 2)
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("The bytes of a session, from CONNECT to DISCONNECT")
    func bytes() async throws {
        let script = Self.accepted(
            .expect(
                "SUBSCRIBE\nid:1\ndestination:t\nack:client-individual\nselector:a = 1\nreceipt:1\n\n\0"
            ),
            .reply(Self.subscribed),
            .expect(
                "SEND\ncontent-length:1\ndestination:t\ncontent-type:text/plain\nx:\\c\\n\nreceipt:2\n\nx\0"
            ),
            .reply("RECEIPT\nreceipt-id:2\n\n\0"),
            .reply("MESSAGE\ndestination:t\nmessage-id:m\nsubscription:1\nack:a1\n\ny\0"),
            .expect("ACK\nid:a1\n\n\0"),
            .expect("UNSUBSCRIBE\nid:1\nreceipt:3\n\n\0"),
            .reply("RECEIPT\nreceipt-id:3\n\n\0"),
            .expect("DISCONNECT\nreceipt:4\n\n\0"),
            .reply("RECEIPT\nreceipt-id:4\n\n\0")
        )
        let (_, provider) = try client(script)
        let messages = try await provider.messages(
            .subscribe("t", headers: ["selector": "a = 1"], .ackMode(.clientIndividual))
        )
        try await provider.request(
            .command(
                .send,
                topic: "t",
                body: .text("x"),
                headers: ["x": ":\n", "content-type": "text/plain"]
            )
        )
        #expect(try await texts(1, messages) == ["y"])
        try await provider.request(.unsubscribe("t"))
        try await provider.request(.disconnect)
        #expect(script.failures == [])
        #expect(script.isComplete)
    }

    private static let head = "MESSAGE\ndestination:t\nmessage-id:m\nsubscription:1\n"

    /// The server's bytes after the receipt of the subscription, and the bodies of the messages in them.
    static let wires: [(name: String, pieces: [String], bodies: [String])] = [
        ("a body with newlines", [head + "\n\na\n\nb\n\0"], ["\na\n\nb\n"]),
        ("NUL in a body, by content-length", [head + "content-length:3\n\na\0b\0"], ["a\0b"]),
        (
            "CR LF ends lines",
            ["MESSAGE\r\ndestination:t\r\nmessage-id:m\r\nsubscription:1\r\n\r\nx\0\r\n"], ["x"]
        ),
        ("line ends between frames", ["\n\n" + head + "\nx\0\n\n\n" + head + "\ny\0"], ["x", "y"]),
        ("two frames in one piece", [head + "\nx\0" + head + "\ny\0"], ["x", "y"]),
        (
            "one frame in two pieces", [String(head.prefix(20)), head.dropFirst(20) + "\nx\0"],
            ["x"]
        ),
        ("one frame byte by byte", (head + "\nx\0").map { String($0) }, ["x"]),
        ("a first header that counts", [head + "subscription:2\n\nx\0"], ["x"]),
        (
            "no such subscription", ["MESSAGE\ndestination:t\nmessage-id:m\nsubscription:9\n\n\0"],
            []
        ),
    ]

    @Test("Frames in every shape", arguments: wires.map(\.name))
    func frames(name: String) async throws {
        let wire = try #require(Self.wires.first { $0.name == name })
        let start: [ScriptedByteStream.Step] = [
            .expect(Self.connect), .reply(Self.connected), .expect(Self.subscribe),
            .reply(Self.subscribed),
        ]
        let pieces = wire.pieces + [Self.head + "\nend\0"]
        let script = ScriptedByteStream(steps: start + pieces.map { .reply($0) })
        let (_, provider) = try client(script)
        let messages = try await provider.messages(.subscribe("t"))
        #expect(try await texts(wire.bodies.count + 1, messages) == wire.bodies + ["end"])
        #expect(script.failures == [] && script.isComplete)
    }

    @Test("An escaped header comes out as it went in; an undefined escape ends the connection")
    func escapes() async throws {
        let script = Self.accepted(
            .expect(Self.subscribe),
            .reply(Self.subscribed + Self.head + "a\\cb:1\\n2\\\\3\\r\n\nx\0"),
            .reply(Self.head + "a:\\t\n\nx\0")
        )
        let (transport, provider) = try client(script)
        let messages = try await provider.messages(.subscribe("t"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.headers["a:b"] == "1\n2\\3\r")
        let error = await expectError(.protocolViolation) { try await iterator.next() }
        #expect(error?.message == "the server broke the protocol: undefined escape sequence")
        #expect("\(transport.states.current)".hasPrefix("disconnected (protocolViolation"))
    }

    @Test("Limits hold: a line and a head that are too long end the connection")
    func limits() async throws {
        for frame in [
            Self.head + "a:" + String(repeating: "x", count: 101) + "\n\n\0",
            Self.head + String(repeating: "a:1\n", count: 20) + "\n\0",
        ] {
            let script = Self.accepted(.expect(Self.subscribe), .reply(Self.subscribed + frame))
            let (_, provider) = try client(script) {
                $0.limits.headerLineSize = 100
                $0.limits.headerCount = 20
            }
            let messages = try await provider.messages(.subscribe("t"))
            await expectError(.limitExceeded) { for try await _ in messages {} }
        }
    }

    // MARK: Time

    @Test(
        "Heart-beats: given when there is nothing to say, and missed after twice the interval and a margin"
    )
    func heartBeats() async throws {
        let clock = ManualClock()
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.beating),
            .expect("\n"),
            .reply("\n"),
            .expect("\n"),
            .expect("\n")
        )
        let (transport, provider) = try client(script, clock: clock)
        try await provider.request(.connect)
        clock.advance(by: .seconds(8))
        clock.advance(by: .seconds(8))
        // The last beat of the server, if it sends any, came at 7.5 seconds.
        clock.advance(by: .milliseconds(12_499))
        #expect("\(transport.states.current)" == "connected")
        clock.advance(by: .milliseconds(2))
        #expect("\(transport.states.current)".hasPrefix("disconnected (connectionLost: nothing"))
        #expect(script.failures == [] && script.isComplete)
        await expectError(.connectionRefused) { try await provider.request(.send("x")) }
    }

    @Test("While a slow consumer holds the server back, its silence is no sign of death")
    func heldBack() async throws {
        let clock = ManualClock()
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(Self.beating),
            .expect(Self.subscribe),
            .reply(Self.subscribed + String(repeating: Self.head + "\nx\0", count: 3)),
            .expect("\n"),
            .expect("\n")
        )
        let (transport, provider) = try client(script, clock: clock)
        let messages = try await provider.messages(
            .subscribe("t", .buffering(BufferPolicy(.holdBack, messageLimit: 2)))
        )
        clock.advance(by: .seconds(300))
        #expect("\(transport.states.current)" == "connected")
        #expect(try await texts(3, messages) == ["x", "x", "x"])
        // The app has taken everything, so the transport reads again.
        clock.advance(by: .seconds(20))
        #expect("\(transport.states.current)" == "connected")
        clock.advance(by: .seconds(2))
        #expect("\(transport.states.current)".hasPrefix("disconnected (connectionLost: nothing"))
        #expect(script.failures == [] && script.hasReached(7))
    }

    @Test("A disconnect gets its receipt, although a slow consumer held the server back")
    func leaveWhileHeldBack() async throws {
        let script = Self.accepted(
            .expect(Self.subscribe),
            .reply(Self.subscribed + String(repeating: Self.head + "\nx\0", count: 3)),
            .expect("DISCONNECT\nreceipt:2\n\n\0"),
            .reply("RECEIPT\nreceipt-id:2\n\n\0")
        )
        let (transport, provider) = try client(script)
        let messages = try await provider.messages(
            .subscribe("t", .buffering(BufferPolicy(.holdBack, messageLimit: 2)))
        )
        // The clock stands still, so this call ends only with the RECEIPT.
        try await provider.request(.disconnect)
        #expect("\(transport.states.current)" == "disconnected")
        #expect(try await texts(3, messages) == ["x", "x", "x"])
        #expect(script.failures == [] && script.isComplete)
    }

    @Test("A receipt that does not come: the call fails, the connection stays")
    func receiptTimeout() async throws {
        let clock = ManualClock()
        let send = "SEND\ncontent-length:1\ndestination:/queue/t\nreceipt:"
        let script = Self.accepted(
            .expect(send + "1\n\nx\0"),
            .expect(send + "2\n\ny\0"),
            .reply("RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0")
        )
        let (transport, provider) = try client(script, clock: clock) {
            $0.timeouts.confirmation = .seconds(15)
        }
        try await provider.request(.connect)
        let call = Task { try await provider.request(.send("x")) }
        try await waitUntil { script.hasReached(4) }
        clock.advance(by: .seconds(14))
        clock.advance(by: .seconds(1))
        let error = await expectError(.timedOut) { try await call.value }
        #expect(error?.topic == "/queue/t" && error?.command == "send")
        #expect("\(transport.states.current)" == "connected")
        // The late receipt is ignored.
        try await provider.request(.send("y"))
        #expect(script.failures == [] && script.isComplete)
    }

    @Test("No CONNECTED in time; and a disconnect while connecting")
    func connecting() async throws {
        let clock = ManualClock()
        let silent = ScriptedByteStream(.expect(Self.connect), .expect("\n"))
        let (slow, provider) = try client(silent, clock: clock)
        let call = Task { try await provider.request(.connect) }
        try await waitUntil { silent.hasReached(2) }
        clock.advance(by: .seconds(10))
        await expectError(.timedOut) { try await call.value }
        #expect("\(slow.states.current)".hasPrefix("disconnected (timedOut"))

        let other = ScriptedByteStream(.expect(Self.connect), .expect("\n"))
        let (left, second) = try client(other, clock: clock)
        let waiting = Task { try await second.request(.connect) }
        try await waitUntil { other.hasReached(2) }
        try await second.request(.disconnect)
        await expectError(.notConnected) { try await waiting.value }
        #expect("\(left.states.current)".hasPrefix("disconnected"))
    }

    @Test("A server that does not answer DISCONNECT is not waited for longer than allowed")
    func closeTimeout() async throws {
        let clock = ManualClock()
        let script = Self.accepted(.expect("DISCONNECT\nreceipt:1\n\n\0"))
        let (transport, provider) = try client(script, clock: clock)
        try await provider.request(.connect)
        let call = Task { try await provider.request(.disconnect) }
        try await waitUntil { script.isComplete }
        clock.advance(by: .seconds(5))
        _ = try await call.value
        #expect("\(transport.states.current)" == "disconnected")
    }

    // MARK: Logging

    private final class Log: WireLogger {
        let lines = LineLog()

        func log(_ record: WireRecord) {
            lines.append("\(record.kind) \(record.direction) \(record.text)")
        }
    }

    @Test("The wire logger shows every frame, and no secret, body or header of the app")
    func wireLog() async throws {
        let fixture = try Fixture(.stomp) { $0.credentials = ["ada": "hunter2"] }
        let log = Log()
        let (transport, provider) = try fixture.provider {
            $0.userName = "ada"
            $0.password = "hunter2"
            $0.wireLogger = log
        }
        let messages = try await provider.messages(.subscribe("t"))
        try await provider.request(.send("private", to: "t", headers: ["token": "hunter3"]))
        #expect(try await texts(1, messages) == ["private"])
        try await provider.request(.disconnect)
        let text = log.lines.all.joined(separator: "\n")
        for word in [
            "outbound CONNECT ", "inbound CONNECTED ", "outbound SUBSCRIBE ", "outbound SEND ",
            "inbound MESSAGE ", "inbound RECEIPT ", "outbound DISCONNECT ", "(7 bytes)",
        ] {
            #expect(text.contains(word), "\(word)")
        }
        for word in ["hunter", "private", "ada"] { #expect(!text.contains(word), "\(word)") }
        await fixture.end(transport)
    }
}
