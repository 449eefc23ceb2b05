import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// A client that keeps its session and a server that may lose it. The connection between them breaks again and again.
@Suite("MQTT: a session over many connections (4.1, 4.3, 4.4)") struct SessionPairTests {
    /// Both cores with their applications, which record the events.
    private struct World {
        let version: MQTTVersion
        let window: Int
        var random: SeededGenerator
        var client = MQTTClientConnection()
        var server = MQTTServerConnection(maximumPacketSize: 1 << 20, at: .zero)
        var clientSession = MQTTSessionState()
        /// The session that the server keeps; nil when it has none.
        var serverSession: MQTTSessionState?
        var losesSessions = false

        private var toServer = ReceiveBuffer(capacity: 64)
        private var toClient = ReceiveBuffer(capacity: 64)
        /// Bytes in transit, which are lost with the connection.
        private var upward: [UInt8] = []
        private var downward: [UInt8] = []
        private var receipts: [MQTTDeliveryReceipt] = []

        /// How many times each of the client's messages arrived at the server.
        var arrived: [Int: Int] = [:]
        /// How many times each of the server's messages arrived at the client.
        var heard: [Int: Int] = [:]
        /// The client's messages in the order of their first arrival.
        var order: [Int] = []
        /// The results that each call got.
        var told: [Int: [String]] = [:]
        var lossCount = 0

        init(_ version: MQTTVersion, window: Int = 20, seed: UInt64) {
            self.version = version
            self.window = window
            random = SeededGenerator(seed: seed)
        }

        mutating func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

        // MARK: The connection

        mutating func connect() throws {
            var configuration = MQTTClientConfiguration()
            configuration.version = version
            configuration.keepsSession = true
            configuration.inflightWindow = window
            client = MQTTClientConnection(configuration: configuration)
            server = MQTTServerConnection(maximumPacketSize: 1 << 20, at: .zero)
            toServer = ReceiveBuffer(capacity: 64)
            toClient = ReceiveBuffer(capacity: 64)
            var request = MQTTConnect(
                version: version,
                clientIdentifier: "c",
                cleanStart: false
            )
            if version == .v5 { request.properties.receiveMaximum = 5 }
            let session = clientSession
            clientSession = MQTTSessionState()
            try client.connect(request, hasSessionState: true, resuming: session, at: .zero)
        }

        /// Cuts the connection. Bytes in transit are lost.
        mutating func cut() {
            upward = []
            downward = []
            client.receiveEndOfStream(at: .zero)
            server.receiveEndOfStream(at: .zero)
            handleClient()
            handleServer()
            clientSession = client.takeSessionState()
            // A server that had not answered CONNECT keeps the session that it had before.
            if hasAccepted { serverSession = server.takeSessionState() }
            hasAccepted = false
            // If the CONNACK that reports a new session is lost, the next CONNACK says "session present" for the new
            // session. The client cannot detect that, and MQTT has no remedy, so the model leaves that case out.
            if isSessionNew, !isNewsReceived { serverSession = nil }
            isSessionNew = false
            isNewsReceived = false
            if losesSessions, below(4) == 0 {
                serverSession = nil
                lossCount += 1
            }
        }

        /// True when the server has answered CONNECT.
        private(set) var hasAccepted = false
        /// True when the CONNACK began a new session. `isNewsReceived` is true when the client has got that CONNACK.
        private var isSessionNew = false
        private var isNewsReceived = false

        /// Carries a few bytes one way.
        mutating func step() {
            upward += client.outbound.takeBytes()
            downward += server.outbound.takeBytes()
            let count = below(60) + 1
            if below(2) == 0 {
                toServer.append(Array(upward.prefix(count)))
                upward.removeFirst(min(count, upward.count))
                server.receive(&toServer, at: .zero)
            } else {
                toClient.append(Array(downward.prefix(count)))
                downward.removeFirst(min(count, downward.count))
                client.receiveAll(&toClient, at: .zero)
            }
            handleServer()
            handleClient()
        }

        /// Carries all bytes until neither end has more to send.
        mutating func settle() {
            repeat {
                for _ in 0..<10 { step() }
                acknowledgeAll()
            } while !upward.isEmpty || !downward.isEmpty || !client.outbound.isEmpty
                || !server.outbound.isEmpty
        }

        // MARK: The applications

        private mutating func handleServer() {
            for event in server.takeEvents() {
                switch event {
                case .connect:
                    let connack = MQTTConnackPacket(sessionPresent: serverSession != nil)
                    server.accept(connack, resuming: serverSession ?? MQTTSessionState())
                    isSessionNew = serverSession == nil
                    serverSession = nil
                    hasAccepted = true
                case .publish(let publish):
                    let number = Self.number(publish)
                    if arrived[number] == nil { order.append(number) }
                    arrived[number, default: 0] += 1
                default: break
                }
            }
        }

        private mutating func handleClient() {
            for event in client.takeEvents() {
                switch event {
                case .connected:
                    isNewsReceived = true
                    // The resumption comes at once or later, as it does when the app waits for a SUBACK.
                    if below(2) == 0 { resume() }
                case .messages(let arrivals):
                    for (publish, receipt) in arrivals.all {
                        heard[Self.number(publish), default: 0] += 1
                        if let receipt { receipts.append(receipt) }
                    }
                case .published(let call, _, _): tell(call, "published")
                case .timedOut(let call): tell(call, "timed out")
                case .mustStore: Issue.record("nothing is stored here")
                case .abandoned(let call): tell(call, "abandoned")
                default: break
                }
            }
        }

        mutating func resume() {
            for dropped in client.resumeSession(at: .zero) {
                guard let call = dropped.call else { continue }
                tell(call, "\(dropped.cause)")
            }
        }

        private mutating func tell(_ call: any MQTTCall, _ outcome: String) {
            told[(call as? Call)?.number ?? -1, default: []].append(outcome)
        }

        private static func number(_ publish: MQTTPublish) -> Int {
            Int(String(decoding: publish.payload.bytes, as: UTF8.self)) ?? -1
        }

        static func message(_ number: Int) -> MQTTOutgoingMessage {
            let quality: MQTTQoS = number % 2 == 0 ? .exactlyOnce : .atLeastOnce
            let publish = MQTTPublish(topic: "t", qos: quality)
            return MQTTOutgoingMessage(publish: publish, payload: Array("\(number)".utf8))
        }

        mutating func publish(_ number: Int) throws {
            try client.publish(Self.message(number), call: Call(number), at: .zero)
        }

        /// Acknowledges a message at random. Works without a connection, too.
        mutating func acknowledgeOne() {
            guard !receipts.isEmpty else { return }
            let receipt = receipts.remove(at: below(receipts.count))
            if client.isFinished {
                clientSession.acknowledge(receipt)
            } else {
                client.acknowledge(receipt, at: .zero)
            }
        }

        private mutating func acknowledgeAll() {
            while !receipts.isEmpty { acknowledgeOne() }
        }
    }

    @Test(
        "Random cuts: QoS 1 is never lost, QoS 2 neither lost nor doubled, each caller told once",
        arguments: MQTTVersion.allCases,
        61...72
    )
    func cuts(version: MQTTVersion, seed: UInt64) throws {
        var world = World(version, window: seed % 3 == 0 ? 3 : 20, seed: seed)
        world.losesSessions = seed % 2 == 0
        var sent = 0
        var served = 0
        try world.connect()
        for _ in 0..<3_000 {
            switch world.below(20) {
            case 0:
                world.cut()
                if world.below(2) == 0 { world.acknowledgeOne() }
                try world.connect()
            case 1...4 where world.client.isConnected:
                try world.publish(sent)
                sent += 1
            case 5, 6:
                // When a session is lost, the server's messages in it are lost, too.
                guard !world.losesSessions, world.hasAccepted else { continue }
                world.server.send(World.message(served))
                served += 1
            case 7: world.resume()
            case 8: world.acknowledgeOne()
            default: world.step()
            }
        }
        world.cut()
        world.losesSessions = false
        try world.connect()
        world.settle()
        world.resume()
        world.settle()
        #expect(sent > 100)
        #expect(!world.client.isFinished)
        #expect(!world.server.isFinished)
        for number in 0..<sent {
            let outcomes = world.told[number, default: []]
            let count = world.arrived[number, default: 0]
            #expect(outcomes.count == 1, "\(number): \(outcomes)")
            if number % 2 == 1 {
                #expect(outcomes == ["published"])
                #expect(count >= 1, "QoS 1 is not lost: \(number)")
            } else if outcomes == ["published"] {
                #expect(count == 1, "QoS 2 arrives once: \(number)")
            } else {
                #expect(outcomes == ["sessionLost"])
                #expect(world.lossCount > 0)
                #expect(count <= 1, "QoS 2 does not arrive twice: \(number)")
            }
        }
        for number in 0..<served {
            let count = world.heard[number, default: 0]
            #expect(number % 2 == 1 ? count >= 1 : count == 1, "heard \(number): \(count)")
        }
        world.cut()
        #expect(world.clientSession.isEmpty)
        #expect(world.serverSession?.isEmpty == true)
    }

    @Test(
        "A thousand messages of mixed quality, cut at every stage, keep identifiers and order (4.6.0-1)",
        arguments: MQTTVersion.allCases,
        [20, 1_000]
    )
    func thousand(version: MQTTVersion, window: Int) throws {
        var world = World(version, window: window, seed: 73)
        try world.connect()
        world.settle()
        for number in 0..<1_000 { try world.publish(number) }
        for _ in 0..<40 {
            for _ in 0..<(world.below(120) + 20) { world.step() }
            world.cut()
            try world.connect()
        }
        world.settle()
        world.resume()
        world.settle()
        #expect(world.order == Array(0..<1_000), "first arrivals are in the order of sending")
        #expect(world.told.count == 1_000)
        #expect(world.told.values.allSatisfy { $0 == ["published"] })
        for number in stride(from: 0, to: 1_000, by: 2) { #expect(world.arrived[number] == 1) }
    }

    @Test(
        "Each message is sent again under its own identifier, wherever the cut was (2.3.1-3)",
        arguments: MQTTVersion.allCases
    )
    func identifiers(version: MQTTVersion) throws {
        for acknowledged in [0, 1, 499, 500, 999, 1_000] {
            for released in [0, 250, 1_000] {
                var harness = try ClientHarness(version) {
                    $0.keepsSession = true
                    $0.inflightWindow = 1_000
                }
                for number in 1...1_000 {
                    try harness.publish(number % 2 == 0 ? .exactlyOnce : .atLeastOnce, number)
                }
                var releases: [MQTTPacket] = []
                var repeated: [MQTTPacket] = []
                for number in UInt16(1)...1_000 {
                    let isSecond = number % 2 == 0
                    if isSecond, number <= released {
                        harness.receive(.pubrec(.ack(number)))
                        if number > acknowledged { releases.append(.pubrel(.ack(number))) }
                    }
                    if number <= acknowledged, !isSecond || number <= released {
                        harness.receive(isSecond ? .pubcomp(.ack(number)) : .puback(.ack(number)))
                    } else if !isSecond || number > released {
                        let quality: MQTTQoS = isSecond ? .exactlyOnce : .atLeastOnce
                        repeated.append(.message("\(number)", quality, id: number, dup: true))
                    }
                }
                try harness.reconnect(sessionPresent: true)
                harness.resume()
                #expect(harness.sent == releases + repeated)
            }
        }
    }

    @Test("A server goes on with its own messages, and drops them without a session")
    func serverSide() throws {
        for keeps in [true, false] {
            var world = World(.v5, seed: 74)
            try world.connect()
            for _ in 0..<20 { world.step() }
            for number in 0..<10 { world.server.send(World.message(number)) }
            #expect(world.server.takeSessionState().isEmpty, "the core has it until its end")
            world.cut()
            #expect(world.serverSession?.messageCount == 10)
            if !keeps { world.serverSession = nil }
            try world.connect()
            world.settle()
            #expect(world.heard.count == (keeps ? 10 : 0))
        }
    }
}
