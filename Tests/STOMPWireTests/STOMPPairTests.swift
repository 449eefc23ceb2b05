import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// A client core and a server core, joined by arrays of bytes.
@Suite("STOMP: a client and a server") struct STOMPPairTests {
    private struct Pair {
        var client = STOMPClientConnection()
        var server = STOMPServerConnection(at: .zero)
        var now = WireInstant.zero
        private var toServer = ReceiveBuffer(capacity: 64)
        private var toClient = ReceiveBuffer(capacity: 64)
        private var subscriptions: [String: (destination: String, mode: STOMPAckMode)] = [:]
        private var generator: SeededGenerator
        private var nextMessage = 1
        var heard: [String] = []
        var done: [Int] = []
        var acknowledged: [String] = []
        var closures: [String] = []

        init(_ versions: [STOMPVersion], seed: UInt64) throws {
            generator = SeededGenerator(seed: seed)
            try client.connect(STOMPConnect(versions: versions, host: "h"), at: .zero)
        }

        /// Carries bytes both ways in pieces of random length until neither end has more to send.
        mutating func run() throws {
            while !client.outbound.isEmpty || !server.outbound.isEmpty {
                for piece in pieces(client.outbound.takeBytes()) {
                    toServer.append(piece)
                    server.receive(&toServer, at: now)
                    try answer()
                }
                for piece in pieces(server.outbound.takeBytes()) {
                    toClient.append(piece)
                    client.receiveAll(&toClient, at: now)
                    try note()
                }
            }
        }

        /// Moves the time on, and stops at every deadline of either end.
        mutating func wait(_ duration: Duration) throws {
            let end = now.advanced(by: duration)
            while let next = [client.deadline, server.deadline].compactMap({ $0 }).min(),
                next <= end
            {
                now = next
                client.advance(to: now)
                server.advance(to: now)
                try answer()
                try note()
                try run()
            }
            now = end
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

        /// The server's application: a broker that sends each message to all subscriptions of its destination.
        private mutating func answer() throws {
            for event in server.takeEvents() {
                switch event {
                case .connect:
                    let second = STOMPHeartBeat(outgoing: .seconds(1), incoming: .seconds(1))
                    server.accept(heartBeat: second, at: now)
                case .send(let destination, let frame, _, let receipt):
                    for (id, entry) in subscriptions.sorted(by: { $0.key < $1.key })
                    where entry.destination == destination {
                        try server.message(
                            headers(id, entry.mode, frame),
                            body: frame.body,
                            at: now
                        )
                    }
                    if let receipt { server.receipt(receipt, at: now) }
                case .subscribe(let id, let destination, let mode, _, let receipt):
                    subscriptions[id] = (destination, mode)
                    if let receipt { server.receipt(receipt, at: now) }
                case .unsubscribe(let id, let receipt):
                    subscriptions[id] = nil
                    if let receipt { server.receipt(receipt, at: now) }
                case .acknowledge(let ack, let receipt):
                    acknowledged.append("ack \(ack.identifier)")
                    if let receipt { server.receipt(receipt, at: now) }
                case .refuse(let ack, let receipt):
                    acknowledged.append("nack \(ack.identifier)")
                    if let receipt { server.receipt(receipt, at: now) }
                case .begin(_, let receipt), .commit(_, let receipt), .abort(_, let receipt):
                    if let receipt { server.receipt(receipt, at: now) }
                case .disconnect, .trace: break
                case .closed(let closure): closures.append("server \(closure)")
                }
            }
        }

        private mutating func headers(
            _ id: String,
            _ mode: STOMPAckMode,
            _ frame: STOMPFrame
        ) -> STOMPHeaders {
            defer { nextMessage += 1 }
            var headers: STOMPHeaders = [
                "destination": frame.headers.destination ?? "", "message-id": "m\(nextMessage)",
                "subscription": id,
            ]
            if mode != .auto, server.version == .v1_2 { headers.append("ack", "a\(nextMessage)") }
            headers.append("x", frame.headers.first("x") ?? "")
            return headers
        }

        private mutating func note() throws {
            for event in client.takeEvents() {
                switch event {
                case .connected: heard.append("connected")
                case .message(let id, let frame, let token):
                    let body = String(decoding: frame.body.bytes, as: UTF8.self)
                    heard.append("\(id) \(body) \(frame.headers.first("x") ?? "-")")
                    if let token { try client.send(.acknowledge(token), at: now) }
                case .receipt(let call, _): done.append((call as? Call)?.number ?? -1)
                case .closed(let closure): closures.append("client \(closure)")
                default: heard.append("\(event)")
                }
            }
        }
    }

    @Test(
        "Messages with every kind of byte come back, all receipts with them",
        arguments: STOMPVersion.allCases
    )
    func messages(version: STOMPVersion) throws {
        var pair = try Pair([version], seed: 7)
        try pair.run()
        #expect(pair.client.version == version)
        try pair.client.send(.subscribe(id: "s", destination: "/q:1"), call: Call(0), at: .zero)
        let texts = version == .v1_0 ? ["plain", "a:\\b"] : ["plain", "a:\\b", "line\nbreak", "ü"]
        var expected = ["connected"]
        for number in 1...200 {
            let text = texts[number % texts.count]
            let body = String(repeating: "\0\n\(number)", count: number % 40)
            try pair.client.send(
                ["destination": "/q:1", "x": text],
                body: Array(body.utf8),
                call: Call(number),
                at: .zero
            )
            expected.append("s \(body) \(text)")
        }
        try pair.run()
        #expect(pair.heard == expected)
        #expect(pair.done == Array(0...200))
        pair.client.disconnect(at: .zero)
        try pair.run()
        #expect(pair.closures == ["server disconnected", "client disconnected"])
    }

    @Test(
        "Acknowledgements reach the server as the version names them",
        arguments: STOMPVersion.allCases
    )
    func acknowledgements(version: STOMPVersion) throws {
        var pair = try Pair([version], seed: 8)
        try pair.run()
        try pair.client.send(.subscribe(id: "1", destination: "/q", ackMode: .client), at: .zero)
        try pair.client.send(.subscribe(id: "2", destination: "/q"), at: .zero)
        try pair.client.send(.begin(transaction: "t"), call: Call(1), at: .zero)
        try pair.client.send(
            ["destination": "/q", "transaction": "t"],
            body: Array("x".utf8),
            at: .zero
        )
        try pair.client.send(.commit(transaction: "t"), call: Call(2), at: .zero)
        try pair.run()
        #expect(pair.heard == ["connected", "1 x ", "2 x "])
        #expect(pair.acknowledged == [version == .v1_2 ? "ack a1" : "ack m1"])
        #expect(pair.done == [1, 2])
    }

    @Test("Both live on heart-beats for an hour, and find each other dead without them")
    func heartBeats() throws {
        var pair = try Pair([.v1_2], seed: 9)
        try pair.run()
        try pair.wait(.seconds(3_600))
        #expect(pair.closures == [])
        // Both agreed on ten seconds, the longer of the two intervals.
        let silence = pair.now.advanced(by: .seconds(21))
        pair.client.advance(to: silence)
        #expect(pair.client.isFinished)
        pair.server.advance(to: silence)
        #expect(pair.server.isFinished)
    }
}
