import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// What a transport tells of itself: its figures, and its label.
@Suite(
    "Every transport: figures and label",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionStatisticsTests {
    @Test("The offline queue, and the connections", arguments: Way.shared)
    func queue(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        #expect(bench.transport.statistics.connectionCount == 1)
        await bench.lose(&watch)
        let calls = [await bench.enqueue("one"), await bench.enqueue("three")]
        let away = bench.transport.statistics
        #expect(away.queuedCount == 2 && away.queuedByteCount == 8)
        await bench.comeBack(&watch)
        for call in calls { _ = try await call.value() }
        let back = bench.transport.statistics
        #expect(back.queuedCount == 0 && back.queuedByteCount == 0)
        #expect(back.connectionCount == 2)
        withExtendedLifetime(messages) {}
    }

    @Test("What the server has not answered, and what the app has not taken", arguments: Way.shared)
    func waiting(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        if way.isMQTT {
            bench.broker.faults.withholdsAcknowledgements = true
        } else {
            bench.broker.faults.withholdsReceipts = true
        }
        let call = Call { try await bench.provider.request(.say("hello")) }
        await untilQuiet()
        let open = bench.transport.statistics
        #expect(open.inFlightCount == 1)
        #expect(open.waitingByteCount > 5)
        messages.cancel()
        await untilQuiet()
        #expect(bench.transport.statistics.waitingByteCount == 0)
        await bench.transport.shutdown()
        #expect(await call.error()?.code == .shutDown)
    }

    @Test("What a lost connection has not answered is in flight", arguments: Way.allMQTT)
    func unanswered(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.broker.faults.withholdsAcknowledgements = true
        let call = Call { try await bench.provider.request(.say("hello")) }
        await untilQuiet()
        #expect(bench.transport.statistics.inFlightCount == 1)
        await bench.lose(&watch)
        #expect(bench.transport.statistics.inFlightCount == 1)
        await bench.transport.shutdown()
        #expect(await call.error()?.code == .shutDown)
        withExtendedLifetime(messages) {}
    }

    @Test("What waits in event streams, and the number of these")
    func streams() async throws {
        let bench = try Bench(.events)
        let messages = try await bench.open()
        bench.broker.publish("hello", to: "room")
        await untilQuiet()
        let open = bench.transport.statistics
        #expect(open.connectionCount == 1 && open.waitingByteCount > 5)
        withExtendedLifetime(messages) {}
    }

    @Test("What the app has to acknowledge itself", arguments: Way.shared)
    func unacknowledged(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.others.messages(
            Line.listen { command in
                command.qos = .atLeastOnce
                command[.manualAcknowledgement] = true
            },
            as: Message.self
        )
        try await bench.provider.request(.say("hello"))
        var iterator = messages.makeAsyncIterator()
        let message = try #require(try await iterator.next())
        #expect(bench.transport.statistics.unacknowledgedCount == 1)
        try await bench.others.request(Line(command: .ack(try #require(message.id))))
        #expect(bench.transport.statistics.unacknowledgedCount == 0)
    }

    @Test("Each event and each record has the label", arguments: Way.allCases)
    func label(way: Way) async throws {
        let records = Kept([WireRecord]())
        let logger = ClosureWireLogger { record in records.withLock { $0.append(record) } }
        let bench = try Bench(way) { plan in
            plan.mqtt = { ($0.label, $0.wireLogger) = ("orders", logger) }
            plan.stomp = { ($0.label, $0.wireLogger) = ("orders", logger) }
            plan.events = { ($0.label, $0.wireLogger) = ("orders", logger) }
        }
        var events = bench.transport.events.makeAsyncIterator()
        let messages = try await bench.open()
        _ = try await bench.provider.logged(logger).request(.say("hello"))
        let event = await events.next()
        #expect(event?.label == "orders")
        #expect(event?.description.hasPrefix("[orders] connecting") == true)
        #expect(!records.withLock { $0 }.isEmpty)
        #expect(records.withLock { $0 }.allSatisfy { $0.label == "orders" })
        #expect(records.withLock { $0 }.allSatisfy { $0.description.hasPrefix("[orders] ") })
        withExtendedLifetime(messages) {}
    }

    @Test("An answered request is an acknowledged one", arguments: [Way.mqtt5, .stomp])
    func answered(way: Way) async throws {
        let bench = try Bench(way)
        let adder = Provider<SumEntry>(transport: try bench.broker.transport(way.service))
        let sums = try await adder.messages(.sums())
        let adding = Task {
            for try await message in sums { try await adder.request(.answer(3, to: message)) }
        }
        let log = bench.record()
        let sum: Int = try await Provider<SumEntry>(transport: bench.transport)
            .request(.add(.init(a: 1, b: 2)))
        #expect(sum == 3)
        await untilQuiet()
        #expect(log.count(.acknowledged) == 1 && log.count(.sendFailed) == 0)
        adding.cancel()
        await adder.shutdown()
    }
}
