#if os(Linux) && DEBUG
    import Glibc
    import Testing
    import Waybill
    import WaybillMQTT
    import WireCore

    @testable import WaybillTesting

    /// Runs a body that must fail, without a search for the smallest run.
    func failure(
        seed: UInt64 = 1,
        options: Simulation.Options = Simulation.Options(),
        _ body: @escaping @Sendable (SimulatedWorld) async throws -> Void
    ) async throws -> SimulationFailure {
        var options = options
        options.shrinkingRuns = 0
        // No task interrupts another one.
        options.preemption = 0
        let result = await Result {
            try await Simulation.run(seed: seed, options: options, body)
        }
        return try #require(
            result.failure as? SimulationFailure,
            "the run has not failed: \(result)"
        )
    }

    extension Result where Failure == any Error {
        fileprivate init(_ body: () async throws -> Success) async {
            do { self = .success(try await body()) } catch { self = .failure(error) }
        }

        fileprivate var failure: (any Error)? {
            guard case .failure(let error) = self else { return nil }
            return error
        }
    }

    /// Values that the tasks of a world record, in their order.
    final class Notes<Value: Sendable>: Sendable {
        private let values = Locked<[Value]>([])

        func add(_ value: Value) { values.withLock { $0.append(value) } }

        var all: [Value] { values.withLock { $0 } }
    }

    /// The number of the current thread.
    func threadNumber() -> UInt { UInt(pthread_self()) }

    /// Waits until a thread that simulates nothing has resumed the caller's task.
    /// - Parameter start: Runs a closure on such a thread.
    func waitForThread(
        _ start: (@escaping @Sendable () -> Void) -> Void = { SimulationThread.run($0) }
    ) async {
        let turns = Notes<Int>()
        // This task runs when the caller's task is suspended.
        Task { turns.add(1) }
        await withCheckedContinuation { continuation in
            start {
                repeat { sched_yield() } while turns.all.isEmpty
                continuation.resume()
            }
        }
    }

    enum NumberEntry: EntryType {
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

    /// An app that sends numbers to itself.
    enum EchoApp {
        /// Runs the app on a bad network.
        static func run(_ world: SimulatedWorld) async throws {
            try await run(world, faults: .rough(until: .seconds(60)))
        }

        static func run(_ world: SimulatedWorld, faults: SimulatedFaults) async throws {
            let broker = world.broker()
            world.faults = faults
            var configuration = MQTTConfiguration()
            configuration.clientIdentifier = "echo"
            configuration.session.cleanStart = false
            configuration.session.expiry = .seconds(3_600)
            let transport = try MQTTTransport(url: broker.url(), configuration: configuration)
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

        static func retried<Value: Sendable>(
            _ body: () async throws -> Value
        ) async throws -> Value {
            while true {
                do { return try await body() } catch { try await Task.sleep(for: .seconds(1)) }
            }
        }
    }
#endif
