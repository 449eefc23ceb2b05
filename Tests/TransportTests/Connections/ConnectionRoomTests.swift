import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Sends that await no answer, and wait for room in the buffer of a connection.
@Suite(
    "Every transport: a send that waits for room",
    .enabled(if: Simulation.isAvailable, "only a simulation tells when a send waits"),
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionRoomTests {
    private static let long = String(repeating: "x", count: 700_000)

    private func blocked(_ way: Way) async throws -> (Bench, Provider<Line>) {
        let bench = try Bench(way) { $0.reconnection = .never }
        try await bench.provider.request(.connect)
        bench.dialer.block()
        return (bench, bench.others)
    }

    private static func line(_ way: Way) -> Line {
        .say(long) { if way.isSTOMP { $0[.receipt] = STOMPReceipt.none } }
    }

    @Test("It fails when the connection is lost before its bytes have left", arguments: Way.shared)
    func lost(way: Way) async throws {
        let (bench, provider) = try await blocked(way)
        // The buffers take some messages, a WebSocket's more, and then one waits for room.
        var calls: [Call<Receipt>] = []
        repeat {
            calls.append(Call { try await provider.request(Self.line(way)) })
            await untilQuiet()
        } while calls.last?.isDone == true && calls.count < 10
        #expect(calls.last?.isDone == false)
        bench.broker.dropConnections()
        let error = await calls.last?.error()
        #expect(error?.code == .connectionLost)
        #expect(error?.topic == "room")
    }

    @Test("It may have arrived, so no policy sends it again", arguments: Way.shared)
    func notRepeated(way: Way) async throws {
        let (bench, provider) = try await blocked(way)
        let policy = RetryPolicy(delay: .none, codes: [.connectionLost])
        let entries = Array(repeating: Self.line(way), count: 10)
        let call = Call { await provider.intercepted(policy).request(contentsOf: entries) }
        await untilQuiet()
        bench.broker.dropConnections()
        let errors = try await call.value().compactMap { result in
            if case .failure(let error) = result { error } else { WaybillError?.none }
        }
        #expect(errors.first?.code == .connectionLost && errors.first?.attempt == 1)
    }

    @Test("So does the one of a sequence that waits", arguments: Way.shared)
    func sequence(way: Way) async throws {
        let (bench, provider) = try await blocked(way)
        let entries = Array(repeating: Self.line(way), count: 10)
        let call = Call { await provider.request(contentsOf: entries) }
        await untilQuiet()
        #expect(!call.isDone)
        bench.broker.dropConnections()
        let codes = try await call.value().map { result in
            if case .failure(let error) = result { error.code } else { WaybillError.Code?.none }
        }
        // Those after it make another connection.
        #expect(codes.first { $0 != nil } == .connectionLost)
    }
}
