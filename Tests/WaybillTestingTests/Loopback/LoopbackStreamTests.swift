import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillTesting
import WireCore
import WireTestSupport

/// The broker over streams that it did not accept itself, on a clock that is not the system's.
@Suite("Loopback streams", .inSimulation, .timeLimit(.minutes(30))) struct LoopbackStreamTests {
    @Test("Without sockets: every service over a pair of streams, and across protocols")
    func services() async throws {
        let bench = LoopbackBench()
        try await expectDeliveryAcrossServices { try bench.transport($0) }
        #expect(bench.broker.port == 0)
        await bench.broker.stop()
        #expect(bench.broker.connectionCount == 0)
    }

    @Test(
        "A silent client is cut after the time of the environment's clock",
        arguments: LoopbackBroker.Service.allCases
    )
    func silentClient(_ service: LoopbackBroker.Service) async throws {
        let bench = LoopbackBench()
        let stream = bench.connect(service)
        bench.clock.advance(by: .seconds(59))
        #expect(!stream.hasInput)
        bench.clock.advance(by: .seconds(2))
        // The end of the stream, perhaps after an HTTP response.
        try await waitUntil { stream.hasInput }
        await bench.broker.stop()
    }
}
