import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Design 5.7: which layer sends keep-alives, and when. The tests count bytes on a manual clock.
@Suite(
    "Every transport: signs of life (design 5.7)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionKeepAliveTests {
    /// A ping of a client: two bytes and the mask.
    private static let pingLength = 6
    /// The bytes that a WebSocket frame adds to a PINGREQ or a heart-beat.
    private static let frameLength = 6

    /// The side that turns off the keep-alives above the WebSocket.
    enum Silence: CaseIterable, Sendable { case byClient, byServer }

    /// Turns off the keep-alives above the WebSocket. Its pings keep their defaults.
    private func quiet(_ plan: inout Bench.Plan, _ silence: Silence = .byClient) {
        plan.mqtt = { configuration in
            configuration.webSocket = WebSocketOptions()
            if silence == .byServer { configuration.keepAlive.interval = .seconds(10) }
        }
        plan.stomp = { configuration in
            configuration.webSocket = WebSocketOptions()
            guard silence == .byServer else { return }
            configuration.heartBeat.outgoing = .seconds(10)
            configuration.heartBeat.incoming = .seconds(10)
        }
        guard silence == .byServer else { return }
        plan.broker = { configuration in
            configuration.serverKeepAlive = 0
            configuration.stompHeartBeat = .zero
        }
    }

    /// Moves the clock by the time. Expects this number of bytes at its end, and none before.
    private func expect(_ count: Int, after time: Duration, _ bench: Bench) async {
        let before = bench.dialer.written
        bench.clock.advance(by: time - .nanoseconds(1))
        await untilQuiet()
        #expect(bench.dialer.written == before, "before \(time)")
        bench.clock.advance(by: .nanoseconds(1))
        await until { bench.dialer.written > before }
        #expect(bench.dialer.written == before + count)
    }

    @Test(
        "5.7: without keep-alives above a WebSocket, a ping after each 20 s of silence, whichever side turned them off",
        arguments: Way.webSockets,
        Silence.allCases
    )
    func pings(way: Way, silence: Silence) async throws {
        let bench = try Bench(way) { quiet(&$0, silence) }
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        for round in 1...3 {
            await expect(Self.pingLength, after: .seconds(20), bench)
            // The message comes after the pong, so its arrival shows that the pong has arrived.
            try await bench.provider.request(.say("\(round)"))
            #expect(try await iterator.next() == "\(round)")
            await until { bench.count(way.isMQTT ? "PUBACK" : "ACK") == round }
        }
        #expect(bench.dialer.count == 1)
        #expect("\(bench.transport.states.current)" == "connected")
    }

    @Test(
        "5.7: a peer that leaves out the pong for 20 s is gone, and the link is made again",
        arguments: Way.webSockets,
        Silence.allCases
    )
    func deadPeer(way: Way, silence: Silence) async throws {
        let bench = try Bench(way) { quiet(&$0, silence) }
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mute()
        await expect(Self.pingLength, after: .seconds(20), bench)
        #expect(bench.dialer.swallowed == Self.pingLength)
        bench.clock.advance(by: .seconds(20) - .nanoseconds(1))
        await untilQuiet()
        #expect("\(bench.transport.states.current)" == "connected")
        #expect(bench.dialer.swallowed == Self.pingLength)
        bench.clock.advance(by: .nanoseconds(1))
        await watch.until("waiting (connectionLost")
        await bench.comeBack(&watch)
        try await bench.deliver("alive", by: messages)
        #expect(bench.dialer.count == 2)
        // The next connection has keep-alives, too.
        await until { bench.count(way.isMQTT ? "PUBACK" : "ACK") == 1 }
        await expect(Self.pingLength, after: .seconds(20), bench)
    }

    @Test(
        "5.7: times of one's own for pings, and none at all",
        arguments: Way.webSockets,
        [Duration.seconds(7), .zero, nil]
    )
    func ownInterval(way: Way, interval: Duration?) async throws {
        let bench = try Bench(way) { plan in
            var options = WebSocketOptions()
            options.pingInterval = interval
            options.pingTimeout = .seconds(3)
            plan.mqtt = { [options] in $0.webSocket = options }
            plan.stomp = { [options] in $0.webSocket = options }
        }
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mute()
        if let interval, interval > .zero {
            await expect(Self.pingLength, after: interval, bench)
            bench.clock.advance(by: .seconds(3))
            await watch.until("waiting (connectionLost")
        } else {
            bench.clock.advance(by: .seconds(3_600))
            await untilQuiet()
            #expect(bench.dialer.swallowed == 0)
            #expect("\(bench.transport.states.current)" == "connected")
        }
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.7: no ping when there are keep-alives above a WebSocket, whichever side asked for them",
        arguments: Way.webSockets,
        Silence.allCases
    )
    func noPings(way: Way, wish: Silence) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { configuration in
                configuration.webSocket = WebSocketOptions()
                configuration.keepAlive.interval = wish == .byClient ? .seconds(60) : .zero
            }
            plan.stomp = { configuration in
                configuration.webSocket = WebSocketOptions()
                configuration.heartBeat.outgoing = .seconds(40)
                configuration.heartBeat.incoming = .seconds(40)
            }
            plan.broker = { configuration in
                configuration.serverKeepAlive = wish == .byServer ? 60 : nil
                configuration.stompHeartBeat = wish == .byServer ? .seconds(80) : nil
            }
        }
        let messages = try await bench.open()
        // PINGREQ has two bytes, a heart-beat one. A heart-beat is sent after three quarters of the agreed time.
        await expect(
            Self.frameLength + (way.isMQTT ? 2 : 1),
            after: .seconds(way.isMQTT || wish == .byServer ? 60 : 30),
            bench
        )
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.7: a server's keep alive wins (MQTT 5), and PINGRESP may take half of a short one",
        arguments: [Way.mqtt5, .mqttOverWebSocket],
        [0, 60, 600]
    )
    func serverKeepAlive(way: Way, own: Int) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.keepAlive.interval = .seconds(own) }
            plan.broker = { $0.serverKeepAlive = 30 }
        }
        let messages = try await bench.open()
        var watch = bench.watch()
        let length = 2 + (way.isOverWebSocket ? Self.frameLength : 0)
        await expect(length, after: .seconds(30), bench)
        // The message comes after PINGRESP, so its arrival shows that PINGRESP has arrived.
        try await bench.deliver("alive", by: messages)
        await until { bench.count("PUBACK") == 1 }
        #expect(bench.count("PINGREQ") == 1)
        bench.dialer.mute()
        await expect(length, after: .seconds(30), bench)
        bench.clock.advance(by: .seconds(15) - .nanoseconds(1))
        await untilQuiet()
        #expect("\(bench.transport.states.current)" == "connected")
        bench.clock.advance(by: .nanoseconds(1))
        await watch.until("waiting (connectionLost")
    }

    @Test(
        "5.7: a client's beats leave in time, by what both sides have agreed (STOMP)",
        arguments: Way.allSTOMP,
        [40, 60]
    )
    func outgoingBeats(way: Way, server: Int) async throws {
        let bench = try Bench(way) { plan in
            plan.stomp = { $0.heartBeat.outgoing = .seconds(40) }
            plan.broker = { $0.stompHeartBeat = .seconds(server) }
        }
        let messages = try await bench.open()
        for _ in 0..<3 {
            await expect(
                1 + (way.isOverWebSocket ? Self.frameLength : 0),
                after: .seconds(server * 3 / 4),
                bench
            )
        }
        #expect(bench.dialer.count == 1)
        withExtendedLifetime(messages) {}
    }

    @Test("5.7: an event stream may be silent for ever by default")
    func idle() async throws {
        let bench = try Bench(.events)
        let messages = try await bench.open()
        bench.clock.advance(by: .seconds(86_400))
        await untilQuiet()
        #expect("\(bench.transport.states.current)" == "connected")
        #expect(bench.dialer.count == 1)
        try await bench.deliver("still there", by: messages)
        #expect(bench.count("GET") == 1)
    }
}
