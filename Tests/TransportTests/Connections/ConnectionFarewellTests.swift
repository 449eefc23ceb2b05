import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting

/// The time limit of a disconnect, set by an entry.
@Suite(
    "Every transport: the end, per entry",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionFarewellTests {
    private func goodbye(_ command: EntryCommand) -> Line {
        Line(command: command)
    }

    @Test(
        "Closing takes as long as its entry allows, and no longer",
        arguments: Way.shared.filter(\.waitsToClose)
    )
    func closeLimit(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        bench.dialer.isolate()
        let others = bench.others
        let count = bench.timerCount(after: .seconds(2))
        let call = Call {
            try await others.request(goodbye(.disconnect(.timeout(.seconds(2)))))
        }
        await until { bench.timerCount(after: .seconds(2)) > count }
        await bench.pass(.seconds(2), endsAt: call)
        #expect(await call.error() == nil)
        withExtendedLifetime(messages) {}
    }

    @Test("Sends under way may take as long as the entry allows before", arguments: Way.allMQTT)
    func drainLimit(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        bench.dialer.isolate()
        let provider = bench.provider
        let send = Call { try await provider.request(.say("x")) }
        await until { bench.dialer.swallowed > 0 }
        let others = bench.others
        let count = bench.timerCount(after: .seconds(2))
        let call = Call {
            try await others.request(
                goodbye(.disconnect(.timeout(.seconds(1)), .drainTimeout(.seconds(2))))
            )
        }
        await until { bench.timerCount(after: .seconds(2)) > count }
        await bench.pass(.seconds(2), endsAt: call)
        // Far from the time limit of an acknowledgement, on a busy machine, too.
        _ = await bench.advance(inStepsOf: .milliseconds(20)) { call.isDone }
        #expect(await call.error() == nil)
        #expect(await send.error()?.code == .connectionLost)
        withExtendedLifetime(messages) {}
    }

    @Test(
        "What only MQTT says at the end is refused, and the connection stays",
        arguments: Way.allSTOMP + [.events],
        [
            EntryCommand.disconnect(.publishesWill), .disconnect(.reasonCode(0x83)),
            .disconnect(.reason("r")), .disconnect(.sessionExpiry(.zero)),
            .disconnect(.drainTimeout(.seconds(1))),
        ]
    )
    func refused(way: Way, command: EntryCommand) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        let error = await failure { try await bench.others.request(goodbye(command)) }
        #expect(error?.code == .unsupported)
        #expect("\(bench.transport.states.current)" == "connected")
        withExtendedLifetime(messages) {}
    }
}
