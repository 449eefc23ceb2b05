import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// What begins the limits of a reconnection policy anew: an answer of the server, and not its acceptance.
@Suite("Connections: progress", .inSimulation, .benchesEnd, .timeLimit(.minutes(30)))
struct ConnectionProgressTests {
    private static let limit = 2

    @Test(
        "A server that accepts each connection and ends it uses the attempts up",
        arguments: Way.shared
    )
    func acceptance(way: Way) async throws {
        let bench = try Bench(way) { $0.reconnection.maximumAttempts = Self.limit }
        try await bench.provider.request(.connect)
        var watch = bench.watch()
        for _ in 0..<Self.limit {
            await bench.lose(&watch)
            await bench.comeBack(&watch)
        }
        bench.broker.dropConnections()
        await watch.until("disconnected (connectionLost")
        #expect(bench.dialer.count == 1 + Self.limit)
    }

    @Test(
        "The answer to a subscription or a send begins them anew",
        arguments: Way.shared,
        [true, false]
    )
    func answer(way: Way, isSubscription: Bool) async throws {
        let bench = try Bench(way) { $0.reconnection.maximumAttempts = Self.limit }
        let messages = isSubscription ? try await bench.open() : nil
        if !isSubscription { try await bench.provider.request(.connect) }
        var watch = bench.watch()
        for _ in 0..<2 * Self.limit {
            if !isSubscription { try await bench.provider.request(.say("hello")) }
            await bench.lose(&watch)
            await bench.comeBack(&watch)
        }
        withExtendedLifetime(messages) {}
    }
}
