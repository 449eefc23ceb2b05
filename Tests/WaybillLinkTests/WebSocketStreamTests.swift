import HTTPWire
import Testing
import WaybillLink
import WebSocketWire
import WireCore
import WireTestSupport

@Suite("A WebSocket as a byte stream", .timeLimit(.minutes(30))) struct WebSocketStreamTests {
    /// A stream through a WebSocket, and the server at the other end.
    private final class Tunnel: Dialer {
        let pair: ByteStreamPair
        let timers = ManualTimers()
        let server: Driver<WebSocketConnection>
        let heard = Locked<[WebSocketEvent]>([])
        let answers: Bool

        init(capacity: Int = 1 << 20, answers: Bool = true) {
            pair = ByteStreamPair(capacity: capacity)
            self.answers = answers
            var configuration = WebSocketConfiguration { Array(repeating: 0, count: $0) }
            configuration.maximumMessageSize = 16 << 20
            server = Driver(
                core: WebSocketConnection(serverWith: configuration, at: .zero),
                stream: pair.second,
                timers: timers
            )
        }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            server.start(
                .init(
                    receive: { events in
                        self.heard.withLock { $0 += events }
                        guard self.answers, case .requested? = events.first else { return }
                        self.server.withCore(.immediate) { core, _ in core.accept() }
                    },
                    end: { _ in }
                )
            )
            return pair.first
        }

        func open(_ units: WebSocketUnits = .anywhere) async throws -> any ByteStream {
            var configuration = WebSocketConfiguration { Array(repeating: 0, count: $0) }
            configuration.maximumMessageSize = 16 << 20
            let dialer = WebSocketDialer(
                base: self,
                request: .init(host: "h"),
                configuration: configuration,
                units: units
            )
            return try await dialer.dial(
                Endpoint(host: "h", port: 80),
                timeout: .seconds(10),
                timers: timers
            )
        }

        func send(_ bytes: [UInt8]) {
            server.withCore(.immediate) { core, _ in try? core.send(.binary, bytes) }
        }

        func close(_ code: WebSocketCloseCode) {
            server.withCore(.immediate) { core, now in try? core.close(code, at: now) }
        }

        /// The messages that the server has received.
        var messages: [WebSocketMessage] {
            heard.withLock { events in
                events.compactMap { if case .message(let message) = $0 { message } else { nil } }
            }
        }

        var closure: WebSocketEnding? {
            guard case .closed(let closure)? = heard.withLock({ $0.last }) else { return nil }
            return closure
        }
    }

    /// Reads a fixed number of bytes in each turn.
    private final class Sipper: ByteStreamReceiver {
        private let state = Locked((bytes: [UInt8](), ends: [LinkError?](), turns: 0))
        private let stream: any ByteStream
        private let sip: Int

        init(_ stream: any ByteStream, sip: Int) {
            self.stream = stream
            self.sip = sip
        }

        var bytes: [UInt8] { state.withLock { $0.bytes } }
        var ends: [LinkError?] { state.withLock { $0.ends } }
        var turns: Int { state.withLock { $0.turns } }

        func streamIsReadable() {
            state.withLock { $0.turns += 1 }
            var space = [UInt8](repeating: 0, count: sip)
            let outcome = space.withUnsafeMutableBytes { try? stream.read(into: $0) }
            guard sip > 0, case .bytes(let count)? = outcome else { return }
            state.withLock { $0.bytes += space.prefix(count) }
        }

        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) { state.withLock { $0.ends.append(error) } }
    }

    /// A tunnel whose client reads a fixed number of bytes in each turn.
    private func sipping(
        _ sip: Int,
        capacity: Int = 1 << 20
    ) async throws -> (Tunnel, any ByteStream, Sipper) {
        let tunnel = Tunnel(capacity: capacity)
        let stream = try await tunnel.open()
        let sipper = Sipper(stream, sip: sip)
        stream.start(sipper)
        return (tunnel, stream, sipper)
    }

    // MARK: Reading

    @Test("All of a message arrives that is longer than its reader takes in a turn")
    func longMessage() async throws {
        let tunnel = Tunnel(capacity: 4 << 20)
        let stream = try await tunnel.open()
        let heard = Recorder()
        let driver = Driver(core: LineCore(), stream: stream, timers: tunnel.timers)
        driver.start(heard.handler)
        let line = Array(String(repeating: "x", count: 99).utf8) + [10]
        tunnel.send((0..<20_000).flatMap { _ in line })
        #expect(heard.events.count == 20_000)
        tunnel.close(.internalError)
        #expect(heard.events.count == 20_001)
        #expect(heard.ends == [.webSocketClosed(.internalError, reason: "")])
    }

    @Test("A reader of a few bytes a turn gets them all, then the end, once")
    func sips() async throws {
        let tunnel = Tunnel()
        let stream = try await tunnel.open()
        tunnel.send([1, 2, 3, 4, 5, 6, 7])
        tunnel.send([])
        tunnel.send([8])
        let sipper = Sipper(stream, sip: 3)
        stream.start(sipper)
        tunnel.send([9, 10])
        tunnel.close(.normalClosure)
        #expect(sipper.bytes == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
        #expect(sipper.ends == [.endOfStream])
        tunnel.pair.reset()
        #expect(sipper.ends.count == 1)
    }

    @Test("A reader that does not read is told once for each arrival, and cut without being read")
    func unread() async throws {
        let tunnel = Tunnel()
        let stream = try await tunnel.open()
        let idle = Sipper(stream, sip: 0)
        stream.start(idle)
        tunnel.send([1])
        tunnel.send([2])
        #expect(idle.turns == 2)
        tunnel.close(.normalClosure)
        #expect(idle.ends.isEmpty)
        stream.close()
        #expect(idle.ends.count == 1)
    }

    @Test("Nothing is reported while reading is off, and everything after it is on, on any thread")
    func held() async throws {
        let (tunnel, stream, sipper) = try await sipping(1)
        stream.setReading(false)
        tunnel.send([1, 2, 3])
        #expect(sipper.turns == 0)
        await withTaskGroup(of: Void.self) { group in
            for isReading in [true, true] {
                group.addTask { stream.setReading(isReading) }
            }
        }
        #expect(sipper.bytes == [1, 2, 3])
    }

    @Test("A reader that turns itself off in its turn and is turned on by others loses nothing")
    func toggling() async throws {
        let (tunnel, stream, sipper) = try await sipping(5)
        let all = (0..<2_000).map { UInt8(truncatingIfNeeded: $0) }
        async let toggled: Void = {
            for turn in 0..<500 { stream.setReading(turn % 2 == 1) }
        }()
        async let others: Void = {
            for turn in 0..<500 { stream.setReading(turn % 2 == 0) }
        }()
        for start in stride(from: 0, to: all.count, by: 20) {
            tunnel.send(Array(all[start..<start + 20]))
        }
        await toggled
        await others
        stream.setReading(true)
        #expect(sipper.bytes == all)
    }

    // MARK: Writing

    @Test("Bytes leave as binary messages of 64 KiB at the most (MQTT 5, 6.0.0-2)")
    func anywhere() async throws {
        let tunnel = Tunnel()
        let stream = try await tunnel.open()
        stream.start(Sipper(stream, sip: 1))
        let bytes = [UInt8](repeating: 7, count: 100_000)
        #expect(try bytes.withUnsafeBytes { try stream.write($0) } == 100_000)
        #expect(tunnel.messages.map(\.payload.count) == [65_536, 34_464])
        #expect(tunnel.messages.allSatisfy { $0.kind == .binary })
    }

    @Test("One unit leaves in one message, as text where it is UTF-8")
    func units() async throws {
        let tunnel = Tunnel()
        let stream = try await tunnel.open(
            .each { bytes in (bytes.firstIndex(of: 0) ?? -1) + 1 }
        )
        stream.start(Sipper(stream, sip: 1))
        let bytes = Array("one\0".utf8) + [0xFF, 0] + Array("rest".utf8)
        #expect(try bytes.withUnsafeBytes { try stream.write($0) } == bytes.count)
        #expect(tunnel.messages.map(\.kind) == [.text, .binary, .text])
        #expect(tunnel.messages.map(\.payload.count) == [4, 2, 4])
    }

    @Test("A peer that does not read cuts writes short, and reading again lets them go on")
    func backPressure() async throws {
        let tunnel = Tunnel(capacity: 65_536)
        let stream = try await tunnel.open()
        let driver = Driver(core: LineCore(), stream: stream, timers: tunnel.timers)
        driver.start(Recorder().handler)
        tunnel.server.setReading(false)
        let line = String(repeating: "y", count: 65_535)
        for _ in 0..<64 { driver.withCore { core, _ in core.send(line) } }
        // The WebSocket holds up to its high-water mark and one more message. The rest waits in the driver.
        #expect(driver.unsentByteCount > 2 << 20)
        tunnel.server.setReading(true)
        #expect(driver.unsentByteCount == 0)
        #expect(tunnel.messages.reduce(0) { $0 + $1.payload.count } == 64 * 65_536)
    }

    @Test(
        "A text where bytes are due closes with 1003, after what came before it (MQTT 5, 6.0.0-1)"
    )
    func text() async throws {
        let (tunnel, _, sipper) = try await sipping(10)
        tunnel.server.withCore(.immediate) { core, _ in
            try? core.send(.binary, [1] as [UInt8])
            try? core.send(.text, [2] as [UInt8])
            try? core.send(.binary, [3] as [UInt8])
        }
        #expect(sipper.bytes == [1])
        #expect(sipper.ends == [.webSocketViolation(.unexpectedText)])
        #expect(tunnel.closure == .closed(.unsupportedData, reason: "", isByPeer: true))
    }

    // MARK: The end

    @Test(
        "Closing after the last word runs the closing handshake, also when the peer was held back"
    )
    func gracefulClose() async throws {
        let (tunnel, stream, sipper) = try await sipping(1)
        stream.setReading(false)
        tunnel.send([1, 2, 3])
        stream.finishWriting()
        stream.close()
        #expect(tunnel.closure == .closed(.normalClosure, reason: "", isByPeer: true))
        #expect(sipper.ends == [nil])
        #expect(tunnel.timers.count == 0)
    }

    @Test("Closing without it cuts, and so does closing again")
    func cut() async throws {
        for isGraceful in [false, true] {
            let (tunnel, stream, sipper) = try await sipping(1)
            tunnel.server.setReading(false)
            if isGraceful {
                stream.finishWriting()
                stream.close()
                #expect(sipper.ends.isEmpty)
            }
            stream.close()
            #expect(sipper.ends == [nil])
            #expect(throws: LinkError.closed) {
                try [UInt8(1)].withUnsafeBytes { try stream.write($0) }
            }
        }
    }

    @Test("A peer that does not read cannot keep a closed stream open")
    func deafPeer() async throws {
        let (tunnel, stream, sipper) = try await sipping(1, capacity: 1_000)
        tunnel.server.setReading(false)
        let bytes = [UInt8](repeating: 7, count: 100_000)
        #expect(try bytes.withUnsafeBytes { try stream.write($0) } == 100_000)
        stream.finishWriting()
        stream.close()
        tunnel.timers.advance(by: .seconds(5))
        tunnel.timers.advance(by: .seconds(5))
        #expect(sipper.ends == [nil])
    }

    @Test("A broken connection and a violation are told apart")
    func failures() async throws {
        let (broken, _, sipper) = try await sipping(1)
        broken.pair.reset()
        #expect(sipper.ends == [.reset])

        let (wrong, _, reader) = try await sipping(1)
        wrong.server.withCore(.immediate) { core, _ in
            try? core.sendFragment(.continuation, [1] as [UInt8], isFinal: true)
        }
        wrong.pair.reset()
        #expect(
            reader.ends == [.webSocketViolation(.unexpectedContinuation)]
        )
    }

    // MARK: Opening

    @Test("A cancelled attempt ends as such and leaves nothing open")
    func cancelled() async throws {
        let tunnel = Tunnel(answers: false)
        let attempt = Task { try await tunnel.open() }
        try await waitUntil { !tunnel.heard.withLock({ $0.isEmpty }) }
        attempt.cancel()
        await #expect(throws: LinkError.cancelled) { _ = try await attempt.value }
        #expect(tunnel.closure == .endOfStream)
    }

    @Test("A refused attempt says what the server answered, a silent server is left in time")
    func refused() async throws {
        let tunnel = Tunnel(answers: false)
        let attempt = Task { try await tunnel.open() }
        try await waitUntil { !tunnel.heard.withLock({ $0.isEmpty }) }
        tunnel.server.withCore(.immediate) { core, _ in
            core.refuse(HTTPResponseHead(status: 403, reason: "No"), body: [0x78])
        }
        do {
            _ = try await attempt.value
            Issue.record("opened")
        } catch {
            guard case LinkError.upgradeRefused(let head, let body) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(head.status == 403)
            #expect(body == [0x78])
        }

        let silent = Tunnel(answers: false)
        let waiting = Task { try await silent.open() }
        try await waitUntil { !silent.heard.withLock({ $0.isEmpty }) }
        silent.timers.advance(by: .seconds(10))
        await #expect(throws: LinkError.timedOut) { _ = try await waiting.value }
    }
}
