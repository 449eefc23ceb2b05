import HTTPWire
import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// Messages, control frames and time on an open connection.
@Suite("RFC 6455, 5 to 7: an open connection") struct ConversationTests {
    // MARK: Fragmentation and control frames (5.4, 5.5)

    @Test("Fragments are joined, with control frames in between answered at once (5.4)")
    func fragments() throws {
        var client = try SocketHarness.open()
        client.receive(Frame.text("He", isFinal: false))
        client.receive(Frame.server(.ping, Array("p".utf8)))
        #expect(client.events() == [.ping("p")])
        #expect(client.sentHex() == "8A 81 37 FA 21 3D 47")
        client.receive(Frame.server(.continuation, Array("l".utf8), isFinal: false))
        client.receive(Frame.server(.continuation, Array("lo".utf8)))
        #expect(client.events() == [.text("Hello")])
    }

    @Test("A character may be split between fragments (5.6)")
    func splitCharacter() throws {
        var client = try SocketHarness.open()
        client.receive("01 02 E2 82 80 01 AC")
        #expect(client.events() == [.text("€")])
    }

    @Test(
        "Ten pings are answered in order; a pong without a ping is only reported (5.5.2, 5.5.3)"
    )
    func pings() throws {
        var client = try SocketHarness.open()
        var server = SocketHarness.server()
        for number in 0..<10 { client.receive(Frame.server(.ping, [UInt8(number)])) }
        server.receive(client.sent())
        #expect(server.events() == (0..<10).map { .pong(ByteSlice(copying: [UInt8($0)])) })
        _ = client.events()
        client.receive(Frame.server(.pong, Array("x".utf8)))
        #expect(client.events() == [.pong("x")])
        #expect(client.sent() == [])
    }

    @Test("A ping of 125 bytes is answered in full, one of 126 is not ours to send (5.5)")
    func longPing() throws {
        var client = try SocketHarness.open()
        var server = SocketHarness.server()
        let payload = [UInt8](repeating: 0xFE, count: 125)
        client.receive(Frame.server(.ping, payload))
        server.receive(client.sent())
        #expect(server.events() == [.pong(ByteSlice(copying: payload))])
        #expect(throws: WebSocketSendError.controlPayloadTooLong(126)) {
            try client.core.ping([UInt8](repeating: 0, count: 126))
        }
    }

    @Test("A peer that pings and does not read is answered by the last pong only (5.5.3)")
    func pingFlood() throws {
        var client = try SocketHarness.open()
        try client.core.send(.binary, [UInt8](repeating: 0, count: 1 << 20))
        let before = client.core.outboundByteCount
        for number in 0..<100 { client.receive(Frame.server(.ping, [UInt8(number)])) }
        #expect(client.core.outboundByteCount == before)
        _ = client.sent()
        // The peer sends nothing while it waits for the answer.
        var server = SocketHarness.server()
        server.receive(client.sent())
        #expect(server.events() == [.pong(ByteSlice(copying: [99]))])
        #expect(client.sent() == [])
    }

    // MARK: The closing handshake (5.5.1, 7)

    @Test("Our Close waits for the peer's, then for the end of the stream (7.1.2)")
    func closing() throws {
        var client = try SocketHarness.open()
        try client.core.close(.goingAway, reason: "bye", at: client.now)
        #expect(throws: WebSocketSendError.notOpen) { try client.core.send(.text, [0x61]) }
        client.receive(Frame.text("still coming"))
        client.receive(Frame.server(.ping, []))
        client.receive(Frame.close(1_001, "you too"))
        #expect(
            client.events() == [
                .text("still coming"), .ping(.empty),
                .closed(.closed(.goingAway, reason: "you too", isByPeer: false)),
            ]
        )
        // One Close, and no pong after it.
        #expect(client.sentHex() == "88 85 37 FA 21 3D 34 13 43 44 52")
        #expect(!client.core.isFinished)
        client.core.receiveEndOfStream(at: client.now)
        #expect(client.core.isFinished)
    }

    @Test("The peer's Close is answered with its code (5.5.1)")
    func closedByPeer() throws {
        var client = try SocketHarness.open()
        client.receive(Frame.close(4_000, "enough"))
        #expect(
            client.events()
                == [
                    .closed(
                        .closed(
                            WebSocketCloseCode(rawValue: 4_000),
                            reason: "enough",
                            isByPeer: true
                        )
                    )
                ]
        )
        var server = SocketHarness.server()
        server.receive(client.sent())
        let code = WebSocketCloseCode(rawValue: 4_000)
        #expect(server.events() == [.closed(.closed(code, reason: "", isByPeer: true))])
        #expect(server.core.isFinished)
    }

    @Test("A Close without a code is answered without one (7.1.5)")
    func closeWithoutCode() throws {
        var client = try SocketHarness.open()
        client.receive("88 00")
        #expect(
            client.events() == [.closed(.closed(.noStatusReceived, reason: "", isByPeer: true))]
        )
        #expect(client.sentHex() == "88 80 37 FA 21 3D")
    }

    @Test(
        "Codes that may be sent are taken (7.4)",
        arguments: [
            1_000, 1_001, 1_002, 1_003, 1_007, 1_011, 1_012, 1_014, 3_000, 3_999, 4_000, 4_999,
        ]
    )
    func validCodes(_ code: UInt16) throws {
        var client = try SocketHarness.open()
        client.receive(Frame.close(code))
        let closeCode = WebSocketCloseCode(rawValue: code)
        #expect(client.events() == [.closed(.closed(closeCode, reason: "", isByPeer: true))])
    }

    @Test("Codes and reasons that must not be sent are refused (5.5.1, 7.4)")
    func invalidCodes() throws {
        var client = try SocketHarness.open()
        for code in [0, 999, 1_004, 1_006, 1_015, 2_000, 5_000] as [UInt16] {
            #expect(throws: WebSocketSendError.invalidCloseCode(code)) {
                try client.core.close(WebSocketCloseCode(rawValue: code), at: .zero)
            }
        }
        #expect(throws: WebSocketSendError.controlPayloadTooLong(126)) {
            try client.core.close(reason: String(repeating: "x", count: 124), at: .zero)
        }
        #expect(client.core.isOpen)
        try client.core.close(reason: String(repeating: "x", count: 123), at: .zero)
        #expect(!client.core.isOpen)
    }

    @Test("A peer that does not answer our Close is left after the close timeout")
    func closeTimeout() throws {
        var client = try SocketHarness.open()
        try client.core.close(at: client.now)
        #expect(client.core.deadline == WireInstant.zero.advanced(by: .seconds(5)))
        client.advance(.milliseconds(4_999))
        #expect(!client.core.isFinished)
        client.advance(.milliseconds(1))
        #expect(client.core.isFinished)
        #expect(client.events() == [.closed(.timedOut(.close))])
    }

    @Test("A server that does not close the stream is left after the close timeout (7.1.1)")
    func lingering() throws {
        var client = try SocketHarness.open()
        client.receive(Frame.close(1_000))
        client.advance(.seconds(5))
        #expect(client.core.isFinished)
        #expect(client.events().count == 1)
    }

    @Test("A stream that ends without a Close is told apart (7.1.5)")
    func endOfStream() throws {
        var client = try SocketHarness.open()
        client.receive(Frame.text("cut", isFinal: false))
        client.core.receiveEndOfStream(at: client.now)
        #expect(client.events() == [.closed(.endOfStream)])
        #expect(client.core.isFinished)
    }

    // MARK: Keep alive

    @Test("After the interval of silence a ping leaves, and any byte is a sign of life")
    func keepAlive() throws {
        var configuration = SocketHarness.configuration()
        configuration.pingInterval = .seconds(20)
        configuration.pingTimeout = .seconds(10)
        var client = try SocketHarness.open(configuration)
        client.advance(.seconds(15))
        client.receive([0x81])
        client.advance(.seconds(19))
        #expect(client.sent() == [])
        client.advance(.seconds(1))
        #expect(client.sentHex() == "89 80 37 FA 21 3D")
        client.advance(.seconds(9))
        client.receive([0x00])
        client.advance(.seconds(1))
        #expect(!client.core.isFinished)
        client.advance(.seconds(19))
        #expect(client.sentHex() == "89 80 37 FA 21 3D")
        client.advance(.seconds(10))
        #expect(client.events() == [.text(""), .closed(.timedOut(.pong))])
        #expect(client.core.isFinished)
    }

    @Test("Pings that wait to be asked for begin then, and count from the last sign of life")
    func pingsOnRequest() throws {
        var configuration = SocketHarness.configuration()
        configuration.pingInterval = .seconds(20)
        configuration.pingsOnRequest = true
        var client = try SocketHarness.open(configuration)
        client.advance(.seconds(15))
        #expect(client.core.deadline == nil)
        client.core.startPings()
        client.advance(.seconds(4))
        #expect(client.sent() == [])
        client.advance(.seconds(1))
        #expect(client.sentHex() == "89 80 37 FA 21 3D")
        client.advance(.seconds(20))
        #expect(client.events() == [.closed(.timedOut(.pong))])
    }

    @Test("No time between pings is no ping, and not one after another")
    func noInterval() throws {
        var configuration = SocketHarness.configuration()
        configuration.pingInterval = .zero
        let client = try SocketHarness.open(configuration)
        #expect(client.core.deadline == nil)
    }

    @Test("A side that has stopped reading does not take the peer for dead")
    func heldReading() throws {
        var configuration = SocketHarness.configuration()
        configuration.pingInterval = .seconds(20)
        var client = try SocketHarness.open(configuration)
        client.core.holdReading(true, at: client.now)
        #expect(client.core.deadline == nil)
        client.advance(.seconds(500))
        client.core.holdReading(false, at: client.now)
        #expect(client.core.deadline == client.now.advanced(by: .seconds(20)))
    }

    // MARK: Pairs

    @Test("Messages of all sizes go through both ways, whatever the pieces")
    func pair() throws {
        var random = SeededGenerator(seed: 6_455)
        var client = try SocketHarness.open()
        var server = SocketHarness.server()
        for size in [0, 1, 125, 126, 127, 128, 65_535, 65_536, 65_537, 300_000] {
            let payload = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
            try client.core.send(.binary, payload)
            try server.core.send(.binary, payload)
            var toServer = client.sent()[...]
            var toClient = server.sent()[...]
            while !toServer.isEmpty || !toClient.isEmpty {
                let count = Int.random(in: 1...20_000, using: &random)
                server.receive(Array(toServer.prefix(count)))
                client.receive(Array(toClient.prefix(count)))
                toServer = toServer.dropFirst(count)
                toClient = toClient.dropFirst(count)
            }
            #expect(client.events() == [.binary(payload)])
            #expect(server.events() == [.binary(payload)])
        }
    }

    @Test("Mutated frames end in events, a request for more or a violation")
    func mutations() async throws {
        let seeds = FrameTests.clientRows.map(\.1).filter { $0.count < 1_000 }
        let template = try SocketHarness.open(
            SocketHarness.configuration(maximumMessageSize: 4_096)
        )
        await Mutations.run(seeds, count: Mutations.count, seed: 0x6455) { bytes in
            var client = template
            client.receive(bytes)
            let events = client.events()
            #expect(events.count <= bytes.count)
        }
    }
}
