import Foundation
import HTTPWire
import Testing
import Waybill
import WaybillLink
import WaybillTesting
import WaybillWebSocket
import WebSocketWire
import WireCore
import WireTestSupport

@Suite("WebSocket client", .timeLimit(.minutes(30)))
struct WebSocketTests {
    @Test("Text, bytes and data go out and come back, with and without compression")
    func echo() async throws {
        for deflate in [nil, PermessageDeflate()] {
            let peer = Peer(deflate: deflate, Peer.echo)
            let socket = try await peer.connect()
            #expect(socket.isCompressed == (deflate != nil && Compression.isAvailable))
            try await socket.send("text")
            try await socket.send([1, 2, 3])
            try await socket.send(Data([4, 5]))
            try await socket.send(.text(String(repeating: "long ", count: 1_000)))
            var iterator = socket.messages.makeAsyncIterator()
            #expect(try await iterator.next() == .text("text"))
            #expect(try await iterator.next() == .binary([1, 2, 3]))
            #expect(try await iterator.next() == .binary([4, 5]))
            #expect(try await iterator.next() == .text(String(repeating: "long ", count: 1_000)))
            try await socket.close()
            #expect(try await iterator.next() == nil)
            #expect(socket.closure == .init(code: .normalClosure, reason: ""))
            #expect(peer.ends == 1)
        }
    }

    @Test("States, events and records tell of a connection, and show no content")
    func observed() async throws {
        let records = Locked([WireRecord]())
        let peer = Peer(deflate: nil, Peer.echo)
        var socket: WebSocketClient? = try await peer.connect {
            $0.label = "chat"
            $0.wireLogger = ClosureWireLogger { record in records.withLock { $0.append(record) } }
        }
        var states = socket?.states.makeAsyncIterator()
        var events = socket?.events.makeAsyncIterator()
        #expect(await states?.next() == .connected)
        try await socket?.send("secret")
        if let socket {
            var messages = socket.messages.makeAsyncIterator()
            #expect(try await messages.next() == .text("secret"))
        }
        try await socket?.close()
        #expect(await states?.next() == .disconnected(cause: nil))
        #expect(await states?.next() == nil)
        // The events end with the connection, so that none is waited for in vain.
        socket = nil
        var told: [TransportEvent] = []
        while let event = await events?.next() { told.append(event) }
        #expect(told.map(\.kind) == [.sent, .received, .disconnected])
        #expect(told.allSatisfy { $0.label == "chat" })
        let lines = records.withLock { $0 }.map(\.line)
        #expect(
            lines == [
                "[chat] → text  [6 bytes]", "[chat] ← text  [6 bytes]",
                "[chat] ← Close 1000  [0 bytes]",
            ]
        )
    }

    @Test("Sending without end lets the actor's other tasks run") @MainActor
    func turns() async throws {
        let peer = Peer()
        let socket = try await peer.connect()
        let count = try await callsBeforeNeighbour(atMost: 10_000) { number in
            try await socket.send("\(number)")
        }
        #expect(count == 256)
        try await socket.close()
    }

    @Test("A send that waits for room fails when the connection ends before its bytes have left")
    func lostWithoutRoom() async throws {
        let peer = Peer(capacity: 65_536)
        let socket = try await peer.connect()
        peer.stopReading()
        let message = [UInt8](repeating: 1, count: 2 << 20)
        let sending = Task { try await socket.send(message) }
        // Its first bytes are on their way, and nothing takes them.
        try await waitUntil { !peer.pair.isQuiet }
        peer.pair.reset()
        let error = await #expect(throws: WaybillError.self) { try await sending.value }
        #expect(error?.code == .connectionLost)
    }

    @Test("The request says where, and what the configuration adds")
    func request() async throws {
        let peer = Peer { driver, event in
            guard case .requested = event else { return }
            driver.withCore(.immediate) { core, _ in
                core.accept(subprotocol: "chat.v2", headers: ["X-Server": "s"])
            }
        }
        let socket = try await peer.connect {
            $0.subprotocols = ["chat.v2", "chat.v1"]
            $0.headers = ["Authorization": "Bearer t"]
        }
        #expect(socket.subprotocol == "chat.v2")
        #expect(socket.headers.first("X-Server") == "s")
        guard case .requested(let head)? = peer.events.first else {
            Issue.record("no request")
            return
        }
        #expect(head.target == "/chat?room=1")
        #expect(head.headers.first("host") == "example.com")
        #expect(head.headers.first("authorization") == "Bearer t")
    }

    @Test("A refused upgrade is an error with status, fields and body")
    func refused() async throws {
        let rows: [(Int, WaybillError.Code)] = [
            (401, .unauthorized), (403, .unauthorized), (404, .rejected), (429, .connectionRefused),
            (503, .connectionRefused), (200, .rejected), (302, .rejected),
        ]
        for (status, code) in rows {
            let peer = Peer { driver, event in
                guard case .requested = event else { return }
                driver.withCore(.immediate) { core, _ in
                    core.refuse(
                        HTTPResponseHead(status: status, reason: "No", headers: ["X-Why": "w"]),
                        body: Array("because".utf8)
                    )
                }
            }
            let error = await #expect(throws: WaybillError.self) { try await peer.connect() }
            #expect(error?.code == code)
            #expect(error?.peerReason == "\(status) No")
            let refusal = try #require(error?.underlying as? HTTPRefusal)
            #expect(refusal.status == status)
            #expect(refusal.headers.first("X-Why") == "w")
            #expect(refusal.body.text == "because")
        }
    }

    @Test("What cannot be asked for is refused before anything is sent")
    func badRequests() async throws {
        let peer = Peer()
        for configure: (inout WebSocketClient.Configuration) -> Void in [
            { $0.headers = ["Upgrade": "x"] }, { $0.headers = ["A": "b\r\nC: d"] },
            { $0.subprotocols = ["a b"] },
        ] {
            let error = await #expect(throws: WaybillError.self) {
                try await peer.connect(configure)
            }
            #expect(error?.code == .invalidEntry)
        }
        #expect(peer.events.isEmpty)
        for (url, code) in [
            ("http://h", WaybillError.Code.unsupported), ("ws:///", .invalidEntry),
            ("ws://h:0", .invalidEntry), ("ws://h/#f", .invalidEntry), ("", .invalidEntry),
        ] {
            let error = await #expect(throws: WaybillError.self) {
                try await WebSocketClient.connect(to: url)
            }
            #expect(error?.code == code, "\(url)")
        }
    }

    @Test("An abnormal end is thrown once, a normal one is not")
    func ends() async throws {
        let rows: [(UInt16, WaybillError.Code?)] = [
            (1_000, nil), (1_001, nil), (1_011, .connectionLost), (4_000, .connectionLost),
        ]
        for (code, expected) in rows {
            let peer = Peer()
            let socket = try await peer.connect()
            var iterator = socket.messages.makeAsyncIterator()
            peer.act { core, now in
                try? core.send(.text, Array("last".utf8))
                try? core.close(WebSocketCloseCode(rawValue: code), reason: "why", at: now)
            }
            #expect(try await iterator.next() == .text("last"))
            if let expected {
                let error = await #expect(throws: WaybillError.self) { try await iterator.next() }
                #expect(error?.code == expected)
                #expect(error?.peerReason == "\(code) why")
            }
            #expect(try await iterator.next() == nil)
            #expect(socket.closure == .init(code: .init(rawValue: code), reason: "why"))
            await #expect(throws: WaybillError.self) { try await socket.send("late") }
        }
    }

    @Test("A connection that breaks is 1006, and every waiting call gets the error")
    func breaks() async throws {
        let peer = Peer()
        let socket = try await peer.connect()
        let message = Task { try await socket.messages.first { _ in true } }
        let pong = Task { try await socket.ping() }
        try await waitUntil { peer.events.last == .ping([0, 0, 0, 0, 0, 0, 0, 1]) }
        peer.pair.reset()
        let error = await #expect(throws: WaybillError.self) { try await message.value }
        #expect(error?.code == .connectionLost)
        _ = try? await pong.value
        #expect(socket.closure?.code == .abnormalClosure)
    }

    @Test("A message over the limit ends the connection with 1009")
    func limit() async throws {
        let peer = Peer()
        let socket = try await peer.connect { $0.maximumMessageSize = 10 }
        peer.act { core, _ in try? core.send(.text, Array("eleven byte".utf8)) }
        let error = await #expect(throws: WaybillError.self) {
            try await socket.messages.first { _ in true }
        }
        #expect(error?.code == .limitExceeded)
        #expect(peer.events.last == .closed(.closed(.messageTooBig, reason: "", isByPeer: true)))
        #expect(socket.closure?.code == .messageTooBig)
    }

    @Test("Unread messages hold the peer back, and all of them arrive in the end")
    func holdsBack() async throws {
        let peer = Peer(capacity: 65_536)
        let socket = try await peer.connect { $0.maximumWaitingSize = 100_000 }
        let payload = [UInt8](repeating: 1, count: 10_000)
        peer.act { core, _ in
            for _ in 0..<200 { try? core.send(.binary, payload) }
        }
        // The limit of waiting bytes, one more read, and the pair's own capacity. The rest has not left the peer.
        #expect(peer.unsentByteCount > 1_000_000)
        var count = 0
        for try await message in socket.messages {
            #expect(message == .binary(payload))
            count += 1
            if count == 200 { break }
        }
        #expect(count == 200)
        try await socket.close()
    }

    @Test("Messages without a byte take up memory, too, and hold the peer back")
    func holdsBackEmptyMessages() async throws {
        let peer = Peer(capacity: 4_096)
        let socket = try await peer.connect { $0.maximumWaitingSize = 10_000 }
        peer.act { core, _ in
            for _ in 0..<50_000 { try? core.send(.text, [] as [UInt8]) }
        }
        #expect(peer.unsentByteCount > 80_000)
        var iterator = socket.messages.makeAsyncIterator()
        for _ in 0..<50_000 { #expect(try await iterator.next() == .text("")) }
        #expect(peer.unsentByteCount == 0)
    }

    @Test(
        "What the reader answers to good messages leaves before the Close for what is wrong behind them"
    )
    func answersBeforeViolation() async throws {
        let peer = Peer()
        let socket = try await peer.connect()
        let reader = Task {
            for try await message in socket.messages {
                guard case .text(let text) = message else { continue }
                try await socket.send("echo of \(text)")
            }
        }
        peer.act { core, _ in
            try? core.send(.text, Array("one".utf8))
            try? core.send(.text, Array("two".utf8))
            // A frame with a reserved opcode (RFC 6455, 5.2).
            core.outbound.append(contentsOf: [0x83, 0x00])
        }
        await #expect(throws: WaybillError.self) { try await reader.value }
        let heard = peer.events.compactMap { event -> String? in
            switch event {
            case .message(let message): String(decoding: message.payload.bytes, as: UTF8.self)
            case .closed(.closed(let code, _, _)): "closed \(code.rawValue)"
            default: nil
            }
        }
        #expect(heard == ["echo of one", "echo of two", "closed 1002"])
    }

    @Test("A violation behind messages that are not read is answered after the time of a Close")
    func violationBehindUnreadMessages() async throws {
        let peer = Peer()
        let socket = try await peer.connect { $0.closeTimeout = .seconds(3) }
        peer.act { core, _ in
            try? core.send(.text, Array("unread".utf8))
            core.outbound.append(contentsOf: [0x83, 0x00])
        }
        let isClosed = { peer.events.contains { if case .closed = $0 { true } else { false } } }
        #expect(!isClosed())
        peer.clock.advance(by: .seconds(3))
        #expect(isClosed())
        var iterator = socket.messages.makeAsyncIterator()
        #expect(try await iterator.next() == .text("unread"))
        await #expect(throws: WaybillError.self) { try await iterator.next() }
    }

    @Test("A reader that makes room just as the peer is to be held back does not lose it")
    func holdsBackInTurn() async throws {
        let peer = Peer()
        let mayRead = Locked(false)
        let hasRead = Locked(false)
        let hook = HookedDialer(base: peer) {
            mayRead.withLock { $0 = true }
            while !hasRead.withLock({ $0 }) { sched_yield() }
        }
        let socket = try await peer.connect(through: hook) { $0.maximumWaitingSize = 1_000 }
        let reader = Task {
            defer { hasRead.withLock { $0 = true } }
            var iterator = socket.messages.makeAsyncIterator()
            try await waitUntil { mayRead.withLock({ $0 }) }
            let first = try await iterator.next()
            hasRead.withLock { $0 = true }
            return [first, try await iterator.next(), try await iterator.next()]
                .map { $0?.byteCount }
        }
        // The second message exceeds the limit. The reader takes the first before the stream is told to hold back.
        for count in [900, 901, 1] {
            await onThread {
                peer.act { core, _ in
                    try? core.send(.binary, [UInt8](repeating: 1, count: count))
                }
            }
        }
        #expect(try await reader.value == [900, 901, 1])
    }

    @Test("Sending waits while the peer does not read, and ends when the task is cancelled")
    func backPressure() async throws {
        let peer = Peer(capacity: 65_536)
        let socket = try await peer.connect()
        peer.pair.second.setReading(false)
        let payload = [UInt8](repeating: 1, count: 100_000)
        let sent = Locked(0)
        let task = Task {
            while true {
                try await socket.send(payload)
                sent.withLock { $0 += 1 }
            }
        }
        try await waitUntil { sent.withLock({ $0 }) >= 10 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        // Slightly more than the high-water mark of 1 MiB.
        #expect(sent.withLock { $0 } <= 12)
        peer.pair.second.setReading(true)
        try await socket.send("after")
        #expect(
            peer.events.last
                == .message(.init(kind: .text, payload: [0x61, 0x66, 0x74, 0x65, 0x72]))
        )
    }

    @Test("One loop at a time; the next goes on where the last one stopped")
    func loops() async throws {
        let peer = Peer()
        let socket = try await peer.connect()
        peer.act { core, _ in
            for number in 0..<4 { try? core.send(.binary, [UInt8(number)]) }
        }
        do {
            var first = socket.messages.makeAsyncIterator()
            #expect(try await first.next() == .binary([0]))
            var second = socket.messages.makeAsyncIterator()
            let error = await #expect(throws: WaybillError.self) { try await second.next() }
            #expect(error?.code == .invalidEntry)
            #expect(try await first.next() == .binary([1]))
        }
        var third = socket.messages.makeAsyncIterator()
        #expect(try await third.next() == .binary([2]))
        #expect(try await third.next() == .binary([3]))
    }

    @Test("A ping comes back, or does not in time")
    func pings() async throws {
        let peer = Peer()
        let socket = try await peer.connect { $0.pingInterval = nil }
        #expect(try await socket.ping() == .zero)
        peer.pair.second.setReading(false)
        let isDone = Locked(false)
        let task = Task {
            defer { isDone.withLock { $0 = true } }
            try await socket.ping()
        }
        try await waitUntil(moving: { peer.clock.advance(by: .seconds(20)) }) {
            isDone.withLock({ $0 })
        }
        let error = await #expect(throws: WaybillError.self) { try await task.value }
        #expect(error?.code == .timedOut)
    }

    @Test("A ping waits for its time and no longer")
    func pingTime() async throws {
        let peer = Peer()
        let socket = try await peer.connect {
            ($0.pingInterval, $0.pingTimeout) = (nil, .seconds(3))
        }
        peer.pair.second.setReading(false)
        let timers = peer.clock.timerCount
        let task = Task { try await socket.ping() }
        try await waitUntil { peer.clock.timerCount > timers }
        peer.clock.advance(by: .milliseconds(2_999))
        #expect(peer.clock.timerCount > timers)
        peer.clock.advance(by: .milliseconds(1))
        #expect(peer.clock.timerCount == timers, "it goes on waiting")
        // However long it waits, it ends.
        peer.clock.advance(by: .seconds(3_600))
        let error = await #expect(throws: WaybillError.self) { try await task.value }
        #expect(error?.code == .timedOut)
    }

    @Test("The time to connect ends a handshake that is not answered")
    func handshakeTime() async throws {
        let peer = Peer { _, _ in }
        let task = Task { try await peer.connect { $0.connectTimeout = .seconds(3) } }
        // The server has a timer of its own, of 10 seconds.
        try await waitUntil { peer.clock.timerCount == 2 }
        peer.clock.advance(by: .seconds(3))
        #expect(peer.clock.timerCount < 2, "it goes on waiting")
        peer.clock.advance(by: .seconds(3_600))
        let error = await #expect(throws: WaybillError.self) { try await task.value }
        #expect(error?.code == .timedOut)
    }

    @Test("What a loop gives back counts among the messages that wait")
    func givenBack() async throws {
        let peer = Peer(capacity: 65_536)
        let socket = try await peer.connect { $0.maximumWaitingSize = 1_000_000 }
        let payload = [UInt8](repeating: 1, count: 10_000)
        peer.act { core, _ in
            for _ in 0..<98 { try? core.send(.binary, payload) }
        }
        try await waitUntil { peer.unsentByteCount == 0 }
        for try await message in socket.messages {
            #expect(message == .binary(payload))
            break
        }
        peer.act { core, _ in
            for _ in 0..<200 { try? core.send(.binary, payload) }
        }
        // Room is left for a few, one more read, and the pair's own capacity.
        #expect(peer.unsentByteCount > 1_500_000)
        var count = 0
        for try await _ in socket.messages {
            count += 1
            if count == 297 { break }
        }
        #expect(count == 297)
        try await socket.close()
    }

    @Test("A pong answers the pings before its own, too (RFC 6455, 5.5.3)")
    func lastPong() async throws {
        let peer = Peer()
        let socket = try await peer.connect { $0.pingInterval = nil }
        peer.pair.second.setReading(false)
        // Both pings must be sent before either is awaited: `ping` sends before it suspends.
        let first = Task { @MainActor in try await socket.ping() }
        let second = Task { @MainActor in try await socket.ping() }
        await Task { @MainActor in }.value
        peer.act { core, _ in
            try? core.sendFragment(.pong, [0, 0, 0, 0, 0, 0, 0, 9] as [UInt8], isFinal: true)
            try? core.sendFragment(.pong, [0, 0, 0, 0, 0, 0, 0, 2] as [UInt8], isFinal: true)
        }
        // A ping that was not answered fails, instead of waiting for ever.
        peer.clock.advance(by: .seconds(3_600))
        for ping in [first, second] {
            await #expect(throws: Never.self) { try await ping.value }
        }
    }

    @Test("A peer that does not read cannot keep a close waiting for ever")
    func closingDeafPeer() async throws {
        let peer = Peer(capacity: 1_000)
        let socket = try await peer.connect()
        peer.pair.second.setReading(false)
        try await socket.send([UInt8](repeating: 1, count: 100_000))
        let isDone = Locked(false)
        let closing = Task {
            defer { isDone.withLock { $0 = true } }
            try await socket.close()
        }
        try await waitUntil(moving: { peer.clock.advance(by: .seconds(5)) }) {
            isDone.withLock({ $0 })
        }
        try await closing.value
        #expect(socket.closure?.code == .abnormalClosure)
    }

    @Test("Silence is answered with a ping, and silence after that with the end")
    func keepAlive() async throws {
        let peer = Peer()
        let socket = try await peer.connect()
        peer.clock.advance(by: .seconds(20))
        #expect(peer.events.last == .ping(.empty))
        peer.pair.second.setReading(false)
        peer.clock.advance(by: .seconds(20))
        peer.clock.advance(by: .seconds(20))
        let error = await #expect(throws: WaybillError.self) {
            try await socket.messages.first { _ in true }
        }
        #expect(error?.code == .connectionLost)
    }

    @Test("Closing waits for the peer, refuses what it may not send, and does nothing twice")
    func closing() async throws {
        let peer = Peer()
        let socket = try await peer.connect()
        for (code, reason) in [
            (1_006, ""), (2_999, ""), (1_000, String(repeating: "x", count: 124)),
        ] {
            let error = await #expect(throws: WaybillError.self) {
                try await socket.close(.init(rawValue: UInt16(code)), reason: reason)
            }
            #expect(error?.code == .invalidEntry)
        }
        try await socket.close(.init(rawValue: 4_321), reason: "enough")
        #expect(
            peer.events.last
                == .closed(.closed(.init(rawValue: 4_321), reason: "enough", isByPeer: true))
        )
        try await socket.close()
        #expect(socket.closure?.code.rawValue == 4_321)
    }

    @Test("Letting go of the last reference says that one leaves")
    func lettingGo() async throws {
        let peer = Peer()
        _ = try await peer.connect()
        #expect(peer.events.last == .closed(.closed(.goingAway, reason: "", isByPeer: true)))
        #expect(peer.ends == 1)
    }

    @Test("Cancelling an attempt ends it, and a server that never answers is left in time")
    func attempts() async throws {
        let silent = Peer { _, _ in }
        let task = Task { try await silent.connect() }
        try await waitUntil { !silent.events.isEmpty }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(silent.ends == 1)

        let slow = Peer { _, _ in }
        let attempt = Task { try await slow.connect() }
        try await waitUntil { !slow.events.isEmpty }
        slow.clock.advance(by: .seconds(10))
        let error = await #expect(throws: WaybillError.self) { try await attempt.value }
        #expect(error?.code == .timedOut)
    }
}
