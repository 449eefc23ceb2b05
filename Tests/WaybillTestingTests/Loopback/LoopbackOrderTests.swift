import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireCore
import WireTestSupport

/// Equal runs have an equal order: the broker serves nothing in the order of a dictionary or a set.
@Suite("Loopback order", .inSimulation, .timeLimit(.minutes(30))) struct LoopbackOrderTests {
    /// With this number, a dictionary has the expected order only once in 40,000 runs.
    private static let count = 8

    @Test(
        "Subscribers get a message in the order of their connections",
        arguments: [LoopbackBroker.Service.mqtt, .stomp, .eventStream]
    )
    func delivery(_ service: LoopbackBroker.Service) async throws {
        let lines = Locked<[String]>([])
        let bench = LoopbackBench {
            $0.log = { line in lines.withLock { $0.append(line) } }
        }
        var providers: [Provider<LoopbackEntry>] = []
        var streams: [Messages<Message>] = []
        for _ in 0..<Self.count {
            let provider = Provider<LoopbackEntry>(transport: try bench.transport(service))
            streams.append(try await provider.messages(.subscribe("news")))
            providers.append(provider)
        }
        lines.withLock { $0 = [] }
        let sender = Provider<LoopbackEntry>(transport: try bench.transport(.eventStream))
        try await sender.request(.send("x", to: "news"))
        let words = ["PUBLISH", "MESSAGE", "event "]
        func served() -> [Int] {
            lines.withLock { lines in
                lines.filter { line in
                    line.contains("→") && words.contains { line.contains($0) }
                }.compactMap { Int($0.split(separator: " ")[1]) }
            }
        }
        try await waitUntil { served().count == Self.count }
        #expect(served() == served().sorted())
        await bench.broker.stop()
    }
}
