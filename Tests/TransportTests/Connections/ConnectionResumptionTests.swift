import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Design 5.2: state that the server has kept, refusals, and violations.
@Suite(
    "Every transport: resumption and refusals (design 5.2)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionResumptionTests {
    /// Asks the server to keep the session.
    private func keeping(_ plan: inout Bench.Plan) {
        plan.mqtt = { configuration in
            configuration.session.cleanStart = false
            configuration.session.expiry = configuration.version == .v5 ? .seconds(100) : nil
        }
    }

    /// CONNACK with a reason code.
    private static func connack(_ way: Way, _ code: UInt8 = 0, present: Bool = false) -> [UInt8] {
        let flag: UInt8 = present ? 1 : 0
        return way == .mqtt311 ? [0x20, 2, flag, code] : [0x20, 3, flag, code, 0]
    }

    /// PUBLISH at QoS 0 to `room`.
    private static func publish(_ way: Way, _ text: String) -> [UInt8] {
        let properties: [UInt8] = way == .mqtt311 ? [] : [0]
        let rest = [0, 4] + Array("room".utf8) + properties + Array(text.utf8)
        return [0x30, UInt8(rest.count)] + rest
    }

    // MARK: Sessions

    @Test(
        "5.2: re-subscribed only where the server has lost the session (MQTT; the others keep none)",
        arguments: [Way.mqtt311, .mqtt5],
        [true, false]
    )
    func onlyWhereLost(way: Way, isPresent: Bool) async throws {
        let bench = try Bench(way) { keeping(&$0) }
        try await bench.provider.request(.connect)
        let greeting = bench.dialer.written
        let messages = try await bench.provider.messages(.listen(), as: String.self)
        #expect(bench.dialer.written > greeting)
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.dialer.next(
            .say(Self.connack(way, present: isPresent) + Self.publish(way, "kept"))
        )
        bench.clock.advance(by: Bench.wait)
        if isPresent {
            await watch.until("connected")
            // The server has kept the subscription, which continues.
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next() == "kept")
            #expect(bench.dialer.written == greeting)
        } else {
            // A SUBSCRIBE that gets no answer.
            await until { bench.dialer.count == 2 && bench.dialer.written > greeting }
            #expect("\(bench.transport.states.current)" == "connecting (attempt 1)")
        }
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.2: a broker that says each time that it has no session: subscribed once each time, nothing twice",
        arguments: Way.allMQTT
    )
    func alwaysFalse(way: Way) async throws {
        let bench = try Bench(way) { keeping(&$0) }
        bench.broker.faults.losesSessions = true
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        var watch = bench.watch()
        for round in 1...5 {
            let last = bench.lastClient
            await bench.lose(&watch)
            await bench.comeBack(&watch)
            #expect(bench.count("CONNECT", from: last + 1) == 1)
            #expect(bench.count("SUBSCRIBE", from: last + 1) == 1)
            for text in ["a\(round)", "b\(round)"] {
                try await bench.provider.request(.say(text))
                #expect(try await iterator.next() == text)
            }
        }
    }

    @Test(
        "5.2: a re-subscription refused in part ends that stream alone, the others go on",
        arguments: Way.allCases
    )
    func refusedInPart(way: Way) async throws {
        let bench = try Bench(way)
        let first = try await bench.open("room")
        let refused = try await bench.provider.messages(.listen("lounge"), as: String.self)
        let last = try await bench.provider.messages(.listen("den"), as: String.self)
        let noted = bench.record()
        bench.broker.faults.refusesSubscriptions = ["lounge"]
        var watch = bench.watch()
        let clients = bench.lastClient
        await bench.lose(&watch)
        // Each stream has its own connection and its own wait.
        if way == .events { await until { bench.timerCount(after: Bench.wait) >= 3 } }
        bench.clock.advance(by: Bench.wait)
        if way.isSTOMP {
            // The refusal is an ERROR, after which the server closes the connection.
            await watch.until("waiting")
            bench.clock.advance(by: Bench.wait)
        }
        let error = await failure { for try await _ in refused {} }
        #expect(error?.code == (way == .mqtt311 || way.isSTOMP ? .rejected : .unauthorized))
        await until { noted.count(.resubscribed) >= 2 }
        for (topic, stream) in [("room", first), ("den", last)] {
            try await bench.provider.request(.say("to \(topic)", to: topic))
            var iterator = stream.makeAsyncIterator()
            #expect(try await iterator.next() == "to \(topic)")
        }
        #expect(Set(noted.all(.resubscribed).compactMap(\.topic)) == ["room", "den"])
        #expect(noted.all(.subscriptionEnded).map(\.topic) == ["lounge"])
        let asked = bench.count(way.subscribeWord, from: clients + 1)
        #expect(way.isSTOMP ? asked >= 3 : asked == 3)
    }

    @Test("5.2: subscriptions are made again with the same ids (STOMP)", arguments: Way.allSTOMP)
    func sameIDs(way: Way) async throws {
        let bench = try Bench(way)
        let room = try await bench.open("room")
        let lounge = try await bench.provider.messages(.listen("lounge"), as: String.self)
        let before = bench.sentences("← SUBSCRIBE").map(Self.identity)
        #expect(Set(before).count == 2)
        var watch = bench.watch()
        for _ in 0..<3 {
            let last = bench.lastClient
            await bench.lose(&watch)
            await bench.comeBack(&watch)
            let again = bench.sentences("← SUBSCRIBE", from: last + 1).map(Self.identity)
            #expect(again.sorted() == before.sorted())
        }
        withExtendedLifetime((room, lounge)) {}
    }

    /// The destination and the id of a subscription.
    private static func identity(_ sentence: String) -> String {
        sentence.split(separator: " ")
            .filter { $0.hasPrefix("id") || $0.hasPrefix("destination") }
            .joined(separator: " ")
    }

    @Test("5.2: an event stream goes on after the last event that it has had (Last-Event-ID)")
    func lastEventID() async throws {
        let bench = try Bench(.events)
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        var watch = bench.watch()
        var number = 0
        for _ in 0..<3 {
            for _ in 0..<2 {
                try await bench.provider.request(.say("\(number)"))
                #expect(try await iterator.next() == "\(number)")
                number += 1
            }
            await bench.lose(&watch)
            let speaker = try bench.makeSpeaker()
            for missed in number..<number + 3 {
                try await speaker.request(.say("\(missed)") { $0.qos = .atLeastOnce })
            }
            await bench.comeBack(&watch)
            // The missed messages arrive in order, and nothing before them.
            for _ in 0..<3 {
                #expect(try await iterator.next() == "\(number)")
                number += 1
            }
        }
    }

    // MARK: In flight

    /// The point at which the connection of a QoS 2 message breaks.
    enum Break: CaseIterable, Sendable { case beforeReceived, beforeCompleted }

    @Test(
        "5.2: QoS 2 in flight goes on where it stopped: PUBLISH with DUP, or PUBREL (MQTT)",
        arguments: Break.allCases,
        [MQTTConfiguration.Version.v3_1_1, .v5]
    )
    func exactlyOnceInFlight(at place: Break, version: MQTTConfiguration.Version) async throws {
        let is311 = version == .v3_1_1
        var configuration = MQTTConfiguration(version: version)
        configuration.clientIdentifier = "c"
        configuration.session.cleanStart = false
        configuration.session.expiry = is311 ? nil : .seconds(100)
        // 5 bytes of session expiry, 3 of receive maximum, 5 of packet size, 3 of topic alias maximum, and 1 for their
        // length.
        let greeting = 15 + (is311 ? 0 : 17)
        let properties: [UInt8] = is311 ? [] : [0]
        let rest: [UInt8] = [0, 1, UInt8(ascii: "t"), 0, 1] + properties + [UInt8(ascii: "x")]
        func publish(_ first: UInt8) -> [UInt8] { [first, UInt8(rest.count)] + rest }
        func word(_ first: UInt8) -> [UInt8] { [first, 2, 0, 1] }
        func connack(_ flag: UInt8) -> [UInt8] {
            [0x20, UInt8(2 + properties.count), flag, 0] + properties
        }
        let first: [ScriptedByteStream.Step] =
            [.skip(greeting), .reply(connack(0)), .expect(publish(0x34))]
            + (place == .beforeReceived ? [] : [.reply(word(0x50)), .expect(word(0x62))]) + [.reset]
        let second: [ScriptedByteStream.Step] =
            [.skip(greeting), .reply(connack(1))]
            + (place == .beforeReceived ? [.expect(publish(0x3C)), .reply(word(0x50))] : [])
            + [.expect(word(0x62)), .reply(word(0x70))]
        let clock = ManualClock()
        let scripts = [ScriptedByteStream(steps: first), ScriptedByteStream(steps: second)]
        let transport = try MQTTTransport(
            scripts: scripts[0],
            scripts[1],
            clock: clock,
            configuration: configuration
        )
        let provider = Provider<Line>(transport: transport)
        let line = Line(
            topic: "t",
            command: .send(qos: .exactlyOnce),
            body: .bytes([UInt8(ascii: "x")])
        )
        let call = Call { try await provider.request(line) }
        // No step needs the clock unless a script has failed.
        for _ in 0..<100_000 where !call.isDone { await Task.yield() }
        if !call.isDone { clock.advance(by: .seconds(3_600)) }
        let error = await call.error()
        #expect(error == nil)
        for script in scripts { #expect(script.failures == []) }
        for script in scripts { #expect(script.isComplete) }
        withExtendedLifetime(transport) {}
    }

    // MARK: Refusals and violations

    /// CONNACK codes, and the client's reaction: it waits or gives up.
    private static let codes: [Way: [UInt8: String]] = [
        .mqtt311: [
            1: "disconnected (unsupported", 2: "disconnected (rejected",
            3: "waiting (connectionRefused", 4: "disconnected (unauthorized",
            5: "disconnected (unauthorized",
        ],
        .mqtt5: [
            0x80: "disconnected (rejected", 0x81: "disconnected (rejected",
            0x82: "disconnected (rejected", 0x84: "disconnected (unsupported",
            0x85: "disconnected (rejected", 0x86: "disconnected (unauthorized",
            0x87: "disconnected (unauthorized", 0x88: "waiting (connectionRefused",
            0x89: "waiting (connectionRefused", 0x8A: "disconnected (unauthorized",
            0x8C: "disconnected (unauthorized", 0x95: "disconnected (limitExceeded",
            0x97: "waiting (connectionRefused", 0x9C: "waiting (connectionRefused",
            0x9D: "disconnected (rejected", 0x9F: "waiting (connectionRefused",
        ],
    ]

    @Test(
        "5.2: refusals of a CONNECT that stop it, and refusals that do not (MQTT)",
        arguments: [Way.mqtt311, .mqtt5]
    )
    func connackCodes(way: Way) async throws {
        for (code, outcome) in try #require(Self.codes[way]) {
            let bench = try Bench(way)
            let messages = try await bench.open()
            var watch = bench.watch()
            await bench.lose(&watch)
            bench.dialer.next(.say(Self.connack(way, code)))
            bench.clock.advance(by: Bench.wait)
            #expect(await watch.next() == "connecting (attempt 1)")
            let state = await watch.next()
            #expect(state.hasPrefix(outcome), "\(code)")
            if outcome.hasPrefix("waiting") {
                // A server that is busy, or that sends clients elsewhere, gets a longer wait (table 2-6).
                if way == .mqtt5, [0x89, 0x97, 0x9C, 0x9F].contains(code) {
                    bench.clock.advance(by: .seconds(5) - .nanoseconds(1))
                    await untilQuiet()
                    bench.clock.advance(by: .nanoseconds(1))
                    await untilQuiet()
                    #expect(bench.dialer.count == 2)
                }
                await bench.comeBack(&watch)
            } else {
                let error = await failure { for try await _ in messages {} }
                #expect(error?.isRetryable == false)
                bench.clock.advance(by: .seconds(3_600))
                await untilQuiet()
            }
            #expect(bench.dialer.count == (outcome.hasPrefix("waiting") ? 3 : 2))
            withExtendedLifetime(messages) {}
            await bench.end()
        }
    }

    @Test(
        "5.2: a server that refuses all connections, in the words of each protocol",
        arguments: Way.allCases,
        [true, false]
    )
    func refusals(way: Way, isAboutCredentials: Bool) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.broker.faults.refusesConnections =
            isAboutCredentials ? .notAuthorized : .serverUnavailable
        bench.clock.advance(by: Bench.wait)
        await watch.until("connecting")
        // An ERROR has no code. If it is not about credentials, its cause is unknown.
        let outcome =
            isAboutCredentials
            ? "disconnected (unauthorized"
            : way.isSTOMP ? "disconnected (rejected" : "waiting (connectionRefused"
        #expect(await watch.next().hasPrefix(outcome))
        if outcome.hasPrefix("waiting") {
            bench.broker.faults.refusesConnections = nil
            await bench.comeBack(&watch)
            try await bench.deliver("back", by: messages)
        } else {
            let error = await failure { for try await _ in messages {} }
            #expect(error?.isRetryable == false)
        }
    }

    /// Bytes after the acceptance that violate the protocol.
    private static func nonsense(_ way: Way) -> [UInt8] {
        switch way {
        // PUBLISH with a QoS of 3.
        case .mqtt311, .mqtt5: connack(way) + [0x36, 5, 0, 1, 0x61, 0, 1]
        case .stomp: Array("CONNECTED\nversion:1.2\n\n\0NONSENSE\n\n\0".utf8)
        // The acceptance contains the accept key of another request.
        case .mqttOverWebSocket, .stompOverWebSocket:
            Array(
                ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n").utf8
            )
        case .events:
            Array("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n".utf8)
        }
    }

    @Test(
        "5.2: a peer that breaks the protocol is left, and asked again (but for a page that is no event stream)",
        arguments: Way.allCases
    )
    func violationByPeer(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.dialer.next(.say(Self.nonsense(way)))
        bench.clock.advance(by: Bench.wait)
        if way == .events {
            // The HTML Standard, 9.2.2: "fail the connection", without a retry.
            await watch.until("disconnected (protocolViolation")
            let error = await failure { for try await _ in messages {} }
            #expect(error?.code == .protocolViolation)
            bench.clock.advance(by: .seconds(3_600))
            await untilQuiet()
            #expect(bench.dialer.count == 2)
        } else {
            await watch.until("waiting (protocolViolation")
            await bench.comeBack(&watch)
            try await bench.deliver("back", by: messages)
            #expect(bench.dialer.count == 3)
        }
    }

    @Test("5.2: a server that sets the time between streams is not asked earlier (SSE `retry`)")
    func retryField() async throws {
        let bench = try Bench(.events) { $0.broker = { $0.eventStreamRetry = .seconds(40) } }
        let messages = try await bench.open()
        try await bench.deliver("hello", by: messages)
        var watch = bench.watch()
        let dials = bench.dialer.count
        await bench.lose(&watch)
        bench.clock.advance(by: .seconds(40) - .nanoseconds(1))
        await untilQuiet()
        #expect("\(bench.transport.states.current)".hasPrefix("waiting"))
        #expect(bench.dialer.count == dials)
        bench.clock.advance(by: .nanoseconds(1))
        await watch.until("connected")
    }

    // MARK: Disconnecting

    @Test(
        "5.2: disconnecting while the peer is being dialled, or greeted, ends that, at first and again",
        arguments: Way.allCases.flatMap { [($0, false), ($0, true)] },
        [BenchDialer.Mode.hang, .silent]
    )
    func disconnectDuringHandshake(
        connection: (way: Way, isReconnection: Bool),
        at place: BenchDialer.Mode
    ) async throws {
        let (way, isReconnection) = connection
        let bench = try Bench(way)
        var call: Call<Void>?
        var messages: Messages<String>?
        if isReconnection {
            messages = try await bench.open()
            var watch = bench.watch()
            await bench.lose(&watch)
            bench.dialer.next(place)
            bench.clock.advance(by: Bench.wait)
        } else {
            bench.dialer.next(place)
            call = Call { _ = try await bench.open() }
        }
        let dials = isReconnection ? 2 : 1
        await until { bench.dialer.count == dials }
        if case .silent = place { await until { bench.dialer.written > 0 } }
        let leaving = Call { try await bench.provider.request(.disconnect) }
        // Only the close of a half-open connection may need the clock.
        _ = await bench.advance { leaving.isDone }
        #expect(await leaving.error() == nil)
        if let call { #expect(await call.error()?.code == .notConnected) }
        #expect("\(bench.transport.states.current)".hasPrefix("disconnected"))
        bench.clock.advance(by: .seconds(3_600))
        await untilQuiet()
        #expect(bench.dialer.count == dials)
        withExtendedLifetime(messages) {}
    }
}
