import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Connections on which no bytes arrive for longer than the read timeout.
@Suite(
    "Every transport: the read timeout",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionReadTimeoutTests {
    private static let limit = Duration.seconds(7)

    private func makeBench(_ way: Way) throws -> Bench {
        try Bench(way) { plan in
            plan.mqtt = { $0.timeouts.silence = Self.limit }
            plan.stomp = { $0.timeouts.silence = Self.limit }
        }
    }

    @Test(
        "Silence of that length is the loss of the link; whatever comes before begins it anew",
        arguments: Way.shared
    )
    func silence(way: Way) async throws {
        let bench = try makeBench(way)
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        var watch = bench.watch()
        for round in 0..<3 {
            bench.clock.advance(by: Self.limit - .nanoseconds(1))
            await untilQuiet()
            try await bench.provider.request(.say("\(round)"))
            #expect(try await iterator.next() == "\(round)")
        }
        // The server gets the last acknowledgement, and sends nothing more.
        let word = way.isMQTT ? "PUBACK" : "ACK"
        await until { bench.count(word) == 3 }
        #expect(bench.dialer.count == 1)
        bench.clock.advance(by: Self.limit - .nanoseconds(1))
        await untilQuiet()
        #expect("\(bench.transport.states.current)" == "connected")
        bench.clock.advance(by: .nanoseconds(1))
        let state = await watch.until("waiting (connectionLost")
        guard case .waiting(_, let cause)? = state else {
            Issue.record("\(String(describing: state))")
            return
        }
        #expect(cause.message.contains("sign of life"))
        await bench.comeBack(&watch)
        try await bench.provider.request(.say("back"))
        #expect(try await iterator.next() == "back")
        #expect(bench.dialer.count == 2)
    }

    @Test("Calls under way learn of it, once", arguments: Way.shared)
    func calls(way: Way) async throws {
        let bench = try makeBench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.isolate()
        let provider = bench.provider
        let call = Call { try await provider.request(.say("x")) }
        await until { bench.dialer.swallowed > 0 }
        bench.clock.advance(by: Self.limit)
        await watch.until("waiting (connectionLost")
        // MQTT sends the message again on the next connection.
        if way.isMQTT { await bench.comeBack(&watch) }
        #expect(await call.error()?.code == (way.isMQTT ? nil : .connectionLost))
        withExtendedLifetime(messages) {}
    }

    @Test("Time in which the server is held back does not count", arguments: Way.shared)
    func heldBack(way: Way) async throws {
        let bench = try makeBench(way)
        let noted = bench.record()
        let line = Line.listen { $0[.buffering] = BufferPolicy(.holdBack, messageLimit: 4) }
        let messages = try await bench.others.messages(line)
        let speaker = try bench.makeSpeaker()
        // Far more than one read takes.
        let count = 40
        for _ in 0..<count {
            try await speaker.request(
                .say(String(repeating: " ", count: 60_000)) { $0.qos = .atLeastOnce }
            )
        }
        await until { !noted.all(.received).isEmpty }
        await untilQuiet()
        for _ in 0..<10 {
            bench.clock.advance(by: Self.limit)
            await untilQuiet()
        }
        #expect("\(bench.transport.states.current)" == "connected")
        var iterator = messages.makeAsyncIterator()
        for _ in 0..<count { #expect(try await iterator.next() != nil) }
        #expect(bench.dialer.count == 1)
    }

    @Test("Without it, silence is no loss", arguments: Way.shared)
    func off(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        bench.clock.advance(by: .seconds(3_600))
        await untilQuiet()
        #expect("\(bench.transport.states.current)" == "connected")
        withExtendedLifetime(messages) {}
    }
}
