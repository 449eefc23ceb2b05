import MQTTWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillTesting
import WireCore
import WireTestSupport

/// The admission of clients, and the broker's reports of their actions.
@Suite("Loopback observation", .inSimulation, .timeLimit(.minutes(30)))
struct LoopbackObservationTests {
    private final class Log: Sendable {
        private let all = Locked<[LoopbackOccurrence]>([])

        func note(_ occurrence: LoopbackOccurrence) { all.withLock { $0.append(occurrence) } }

        func take() -> [LoopbackOccurrence] {
            all.withLock { all in
                defer { all = [] }
                return all
            }
        }
    }

    @Test("Each occurrence of an MQTT client, in its order")
    func mqtt() async throws {
        let log = Log()
        let bench = LoopbackBench { $0.observe = { log.note($0) } }
        let client = try LoopbackPacketClient(bench, connectedAs: "a", subscribing: "t")
        try client.publish("x", to: "t", .exactlyOnce, identifier: 1)
        try client.publish("x", to: "t", .exactlyOnce, identifier: 1, isDuplicate: true)
        try client.send(
            .unsubscribe(MQTTUnsubscribe(packetIdentifier: 3, filters: ["t"]))
        )
        // CONNECT is sent a second time, which is not reported as a second connection.
        try client.send(.connect(MQTTConnect(clientIdentifier: "a")))
        let body = Array("x".utf8)
        let seen = log.take()
        #expect(
            seen.dropLast(2) == [
                .connected(client: 1, service: .mqtt, clientIdentifier: "a", sessionPresent: false),
                .subscribed(client: 1, topic: "t"),
                .published(client: 1, topic: "t", payload: body, qos: 2),
                .unsubscribed(client: 1, topic: "t"),
            ]
        )
        guard case .violation(1, let text)? = seen.dropLast().last else {
            Issue.record("\(seen)")
            return
        }
        #expect(!text.isEmpty && seen.last == .ended(client: 1))
        try LoopbackPacketClient(bench).connect(as: "a")
        #expect(
            log.take().first
                == .connected(
                    client: 2,
                    service: .mqtt,
                    clientIdentifier: "a",
                    sessionPresent: true
                )
        )
        await bench.broker.stop()
    }

    @Test("STOMP and HTTP clients are seen, too")
    func others() async throws {
        let log = Log()
        let bench = LoopbackBench { $0.observe = { log.note($0) } }
        let client = try LoopbackFrameClient(bench)
        try client.subscribe("1", to: "t", ack: "auto")
        try client.send("BEGIN", ["transaction:x"])
        try client.send("x", to: "t", ["transaction:x"])
        #expect(
            log.take() == [
                .connected(
                    client: 1,
                    service: .stomp,
                    clientIdentifier: nil,
                    sessionPresent: false
                ),
                .subscribed(client: 1, topic: "t"),
            ]
        )
        try client.send("COMMIT", ["transaction:x"])
        try client.send("UNSUBSCRIBE", ["id:1"])
        try client.send("NONSENSE")
        let seen = log.take()
        #expect(
            seen.first == .published(client: 1, topic: "t", payload: Array("x".utf8), qos: nil)
        )
        #expect(seen.dropFirst().first == .unsubscribed(client: 1, topic: "t"))
        guard seen.count == 4, case .violation(1, _) = seen[2] else {
            Issue.record("\(seen)")
            return
        }
        #expect(seen[3] == .ended(client: 1))
        let stream = try LoopbackRestartTests.request(bench, "GET /t", "Accept: */*")
        stream.close()
        #expect(
            log.take() == [
                .connected(
                    client: 2,
                    service: .eventStream,
                    clientIdentifier: nil,
                    sessionPresent: false
                ),
                .subscribed(client: 2, topic: "t"), .ended(client: 2),
            ]
        )
        await bench.broker.stop()
    }

    @Test("Connections are dropped in the order of their making")
    func dropped() async throws {
        let log = Log()
        let bench = LoopbackBench { $0.observe = { log.note($0) } }
        for number in 0..<8 { try LoopbackPacketClient(bench).connect(as: "\(number)") }
        _ = log.take()
        bench.broker.dropConnections()
        #expect(log.take() == (1...8).map { .ended(client: $0) })
        await bench.broker.stop()
    }

    @Test("The admission closure is called for each connection, with the fields of its protocol")
    func authentication() async throws {
        let log = Log()
        let asked = Locked<[String]>([])
        let isValid = Locked(true)
        let bench = LoopbackBench {
            $0.credentials = ["nobody": "at all"]
            $0.authenticate = { user, password in
                asked.withLock { $0.append("\(user ?? "-"):\(password ?? "-")") }
                return isValid.withLock { $0 }
            }
            $0.observe = { log.note($0) }
        }
        func connect() throws -> [String] {
            let client = LoopbackPacketClient(bench)
            var connect = MQTTConnect(clientIdentifier: "a")
            (connect.userName, connect.password) = ("m", Array("1".utf8))
            try client.send(.connect(connect))
            let mqtt = try client.received().first ?? ""
            let frames = bench.connect(.stomp)
            try LoopbackRestartTests.write(
                "CONNECT\naccept-version:1.2\nhost:h\nlogin:s\npasscode:2\n\n\0",
                to: frames
            )
            let first = try LoopbackRestartTests.read(frames).prefix { $0 != "\n" }
            var statuses: [Substring] = []
            for header in ["Authorization: Bearer t", "Authorization: Basic aDoz", "X: y"] {
                let stream = try LoopbackRestartTests.request(bench, "POST /t", header)
                statuses.append(try LoopbackRestartTests.read(stream).split(separator: " ")[1])
            }
            return [mqtt, String(first)] + statuses.map(String.init)
        }
        #expect(try connect() == ["new", "CONNECTED", "200", "200", "200"])
        let credentials = ["m:1", "s:2", "-:t", "h:3", "-:-"]
        #expect(asked.withLock { $0 } == credentials)
        _ = log.take()
        isValid.withLock { $0 = false }
        #expect(try connect() == ["refused 134", "ERROR", "401", "401", "401"])
        #expect(asked.withLock { $0 } == credentials + credentials)
        let refused = log.take().filter { if case .refused = $0 { true } else { false } }
        #expect(refused.count == 5)
        await bench.broker.stop()
    }

    @Test(
        "A broker can be looked into: sessions, what they keep, and whether anything is under way"
    )
    func inspection() async throws {
        let bench = LoopbackBench { $0.sessionQueueLimit = 2 }
        let broker = bench.broker
        #expect(broker.isIdle && broker.sessions == [])
        let client = try LoopbackPacketClient(bench, connectedAs: "a", subscribing: "b/#")
        try client.subscribe("$share/g/a", .atLeastOnce)
        let sender = try LoopbackPacketClient(bench, connectedAs: "s", expiry: 0)
        func report() -> String {
            broker.sessions.map { session in
                let place = session.isConnected ? "here" : "away"
                let filters = session.filters.joined(separator: " ")
                return
                    "\(session.clientIdentifier) \(place) [\(filters)] \(session.queuedMessageCount)"
            }.joined(separator: "; ")
        }
        #expect(report() == "a here [$share/g/a b/#] 0; s here [] 0" && broker.isIdle)
        try sender.publish("1", to: "b", .atLeastOnce, identifier: 1)
        #expect(report() == "a here [$share/g/a b/#] 1; s here [] 0" && !broker.isIdle)
        client.stream.close()
        for identifier in 2...5 {
            try sender.publish("x", to: "b", .atLeastOnce, identifier: UInt16(identifier))
        }
        #expect(report() == "a away [$share/g/a b/#] 3; s here [] 0" && broker.isIdle)
        #expect(broker.droppedMessageCount == 2)
        try sender.publish("x", to: "nowhere", .exactlyOnce, identifier: 9)
        #expect(!broker.isIdle)
        try sender.answer(MQTTPacket.pubrel, 9)
        #expect(broker.isIdle)
        sender.stream.close()
        bench.clock.advance(by: .seconds(101))
        #expect(report() == "")
        let subscriber = try LoopbackFrameClient(bench)
        try subscriber.subscribe("1", to: "/queue/q")
        try subscriber.send("x", to: "/queue/q")
        try subscriber.send("y", to: "/queue/else")
        #expect(broker.unacknowledgedCount(of: "/queue/q") == 1 && !broker.isIdle)
        #expect(broker.waitingCount(of: "/queue/else") == 1)
        await broker.stop()
        #expect(broker.isIdle)
    }
}
