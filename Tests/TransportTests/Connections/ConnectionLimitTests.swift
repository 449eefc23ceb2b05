import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WireTestSupport

/// Messages that this side refuses: one above the limit must not come again and again.
@Suite(
    "Connections: messages above the limit",
    .inSimulation,
    .benchesEnd,
    .timeLimit(.minutes(30))
)
struct ConnectionLimitTests {
    @Test("It is skipped, acknowledged and told, and the connection lives", arguments: Way.allCases)
    func skipped(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = {
                $0.limits.packetSize = 256
                $0.limits.announcesPacketSize = false
            }
            plan.stomp = { $0.limits.bodySize = 256 }
            plan.events = { $0.limits.eventSize = 256 }
        }
        let noted = bench.record()
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        try await bench.provider.request(.say("first"))
        #expect(try await iterator.next() == "first")
        for byteCount in [300, 100_000] {
            try await bench.provider.request(.say(String(repeating: "x", count: byteCount)))
        }
        try await bench.provider.request(.say("last"))
        #expect(try await iterator.next() == "last")
        await until { noted.messageCount(.dropped) == 2 }
        let drops = noted.all(.dropped)
        #expect(drops.allSatisfy { $0.dropReason == .tooLarge && $0.topic == "room" })
        #expect(drops.reduce(0) { $0 + ($1.byteCount ?? 0) } == 100_300)
        #expect(noted.count(.disconnected) == 0)
        if way.isMQTT { await until { bench.count("PUBACK") == 4 } }
    }

    @Test("It does not come again in a kept session, nor after an event's id")
    func once() async throws {
        for way in [Way.mqtt311, .events] {
            let bench = try Bench(way) { plan in
                plan.mqtt = {
                    $0.limits.packetSize = 256
                    $0.session.cleanStart = false
                    $0.clientIdentifier = "c"
                }
                plan.events = { $0.limits.eventSize = 256 }
            }
            let noted = bench.record()
            let messages = try await bench.open()
            var iterator = messages.makeAsyncIterator()
            try await bench.provider.request(.say(String(repeating: "x", count: 1_000)))
            await until { noted.messageCount(.dropped) == 1 }
            if way.isMQTT { await until { bench.count("PUBACK") == 1 } }
            var watch = bench.watch()
            await bench.lose(&watch)
            await bench.comeBack(&watch)
            try await bench.provider.request(.say("last"))
            #expect(try await iterator.next() == "last")
            #expect(noted.messageCount(.dropped) == 1)
        }
    }
}
