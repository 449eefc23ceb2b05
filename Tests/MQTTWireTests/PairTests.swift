import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// A client core and a server core, joined by arrays of bytes.
@Suite("MQTT: a client and a server") struct PairTests {
    private struct Pair {
        var client: MQTTClientConnection
        var server = MQTTServerConnection(maximumPacketSize: 1 << 20, at: .zero)
        private var toServer = ReceiveBuffer(capacity: 64)
        private var toClient = ReceiveBuffer(capacity: 64)
        var heard: [String] = []
        var done: [Int] = []
        var closures: [String] = []
        private var generator: SeededGenerator

        init(_ version: MQTTVersion, seed: UInt64) {
            var configuration = MQTTClientConfiguration()
            configuration.version = version
            client = MQTTClientConnection(configuration: configuration)
            generator = SeededGenerator(seed: seed)
        }

        /// Carries bytes both ways in pieces of random length until neither end has more to send.
        mutating func run() {
            while !client.outbound.isEmpty || !server.outbound.isEmpty {
                for byte in pieces(client.outbound.takeBytes()) {
                    toServer.append(byte)
                    server.receive(&toServer, at: .zero)
                    answer()
                }
                for byte in pieces(server.outbound.takeBytes()) {
                    toClient.append(byte)
                    client.receiveAll(&toClient, at: .zero)
                    note()
                }
            }
        }

        private mutating func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
            var rest = bytes[...]
            var pieces: [[UInt8]] = []
            while !rest.isEmpty {
                let count = Int(generator.next() % 50) + 1
                pieces.append(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            return pieces
        }

        /// The server's application: accepts every request and sends each message back with the same QoS.
        private mutating func answer() {
            for event in server.takeEvents() {
                switch event {
                case .connect: server.accept()
                case .publish(let publish):
                    var copy = publish
                    copy.packetIdentifier = 0
                    server.send(MQTTOutgoingMessage(publish: copy, payload: publish.payload))
                case .subscribe(let subscribe):
                    server.answer(
                        MQTTSuback(
                            packetIdentifier: subscribe.packetIdentifier,
                            reasonCodes: subscribe.subscriptions.map { _ in .grantedQoS2 }
                        )
                    )
                case .unsubscribe, .authenticate, .trace: break
                case .closed(let closure): closures.append("\(closure)")
                }
            }
        }

        private mutating func note() {
            for event in client.takeEvents() {
                switch event {
                case .messages(let arrivals):
                    for (publish, receipt) in arrivals.all {
                        heard.append(String(decoding: publish.payload.bytes, as: UTF8.self))
                        if let receipt { client.acknowledge(receipt, at: .zero) }
                    }
                case .published(let call, let code, _):
                    #expect(code == .success)
                    done.append((call as? Call)?.number ?? -1)
                default: break
                }
            }
        }
    }

    @Test(
        "Messages of all qualities go there and back, in order",
        arguments: MQTTVersion.allCases,
        51...53
    )
    func echo(version: MQTTVersion, seed: UInt64) throws {
        var pair = Pair(version, seed: seed)
        let request = MQTTConnect(version: version, clientIdentifier: "c")
        try pair.client.connect(request, hasSessionState: false, at: .zero)
        pair.run()
        #expect(pair.client.isConnected)
        for quality in MQTTQoS.allCases {
            pair.heard = []
            pair.done = []
            for number in 0..<200 {
                let publish = MQTTPublish(topic: "t", qos: quality)
                let payload = Array("\(number)".utf8)
                if quality == .atMostOnce {
                    try pair.client.publishAtMostOnce(publish, payload: payload, at: .zero)
                } else {
                    let message = MQTTOutgoingMessage(publish: publish, payload: payload)
                    try pair.client.publish(message, call: Call(number), at: .zero)
                }
                if number % 37 == 0 { pair.run() }
            }
            pair.run()
            #expect(pair.heard == (0..<200).map { "\($0)" })
            #expect(pair.done == (quality == .atMostOnce ? [] : Array(0..<200)))
        }
        pair.client.disconnect(at: .zero)
        pair.run()
        #expect(pair.closures.count == 1)
        #expect(pair.server.isFinished)
    }

    @Test("A server gives a silent client one and a half intervals (3.1.2-22)")
    func serverKeepAlive() throws {
        var pair = Pair(.v5, seed: 54)
        let request = MQTTConnect(clientIdentifier: "c", keepAlive: 10)
        try pair.client.connect(request, hasSessionState: false, at: .zero)
        pair.run()
        #expect(pair.server.deadline == WireInstant.zero.advanced(by: .seconds(15)))
        pair.server.advance(to: WireInstant.zero.advanced(by: .seconds(15)))
        #expect(pair.server.isFinished)
    }
}
