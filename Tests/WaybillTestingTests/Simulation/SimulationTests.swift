#if os(Linux)
    import Glibc
    import Testing
    import Waybill
    import WaybillMQTT
    import WaybillTesting
    import WireTestSupport

    #if canImport(FoundationEssentials)
        import FoundationEssentials
    #else
        import Foundation
    #endif

    private enum NumberEntry: EntryType {
        case send(Int, topic: String)
        case listen(String)

        var topic: String? {
            switch self {
            case .send(_, let topic), .listen(let topic): topic
            }
        }

        var command: EntryCommand {
            switch self {
            case .send: .send(qos: .exactlyOnce)
            case .listen: .subscribe(qos: .exactlyOnce)
            }
        }

        var body: EntryBody {
            switch self {
            case .send(let number, _): .text("\(number)")
            case .listen: .none
            }
        }
    }

    @Suite("Simulation", .enabled(if: Simulation.isAvailable)) struct SimulationTests {
        /// Sends numbers to itself through a bad network.
        @Sendable private static func echo(_ world: SimulatedWorld) async throws {
            let broker = world.broker()
            world.faults = .rough(until: .seconds(60))
            var configuration = MQTTConfiguration()
            configuration.clientIdentifier = "echo"
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(3_600)
            let url = try #require(URL(string: broker.url()))
            let transport = try MQTTTransport(url: url, configuration: configuration)
            let provider = Provider<NumberEntry>(transport: transport)
            let messages = try await retried { try await provider.messages(.listen("n")) }
            let reader = Task {
                var count = 0
                for try await _ in messages {
                    count += 1
                    if count == 20 { break }
                }
                return count
            }
            for number in 0..<20 {
                _ = try? await provider.request(.send(number, topic: "n"))
                try await Task.sleep(for: world.random(.zero ... .seconds(4)))
            }
            reader.cancel()
            _ = try? await reader.value
            await transport.shutdown()
        }

        private static func retried<Value: Sendable>(
            _ body: () async throws -> Value
        ) async throws -> Value {
            while true {
                do { return try await body() } catch { try await Task.sleep(for: .seconds(1)) }
            }
        }

        @Test("The same seed gives the same run", arguments: Simulation.seeds(10))
        func repeated(seed: UInt64) async throws {
            let first = try await Simulation.run(seed: seed, Self.echo)
            let second = try await Simulation.run(seed: seed, Self.echo)
            #expect(first.hash == second.hash)
            #expect(first.elapsed > .seconds(10))
            print(
                "seed \(seed) \(String(first.hash, radix: 16)) \(first.elapsed) jobs \(first.jobCount) events \(first.eventCount) pre \(first.preemptionCount) conn \(first.connectionCount) faults \(first.faultCount)"
            )
        }
    }
#endif
