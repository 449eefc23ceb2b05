import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillTesting
import WireTestSupport

// Waits and records.
extension Bench {
    /// Ends each wait as soon as it has begun, until the call is done. Nothing else moves the clock.
    func passWaits<Value>(until call: Call<Value>) async {
        let watch = watch()
        let clock = clock
        let passing = Task {
            var watch = watch
            while let state = await watch.iterator.next() {
                if case .waiting = state { clock.advance(by: Bench.wait) }
            }
        }
        await TransportTests.until { call.isDone }
        passing.cancel()
        await passing.value
    }

    /// The further states that an observer has got once all work is done.
    func rest(of watch: sending Watch) async -> [String] {
        let reading = Task {
            var watch = watch
            var states: [String] = []
            while let state = await watch.iterator.next() { states.append("\(state)") }
            return states
        }
        await untilQuiet()
        reading.cancel()
        return await reading.value
    }

    /// Records the events from now on.
    func record() -> EventLog { EventLog(transport.events) }
}

/// A record of a transport's events.
final class EventLog: Sendable {
    private let events = Kept([TransportEvent]())
    private let task: Task<Void, Never>

    init(_ source: TransportEvents) {
        let iterator = source.makeAsyncIterator()
        task = Task { [events] in
            var iterator = iterator
            while let event = await iterator.next() { events.withLock { $0.append(event) } }
        }
    }

    deinit { task.cancel() }

    /// The events of a kind so far.
    func all(_ kind: TransportEvent.Kind) -> [TransportEvent] {
        events.withLock { events in events.filter { $0.kind == kind } }
    }

    /// The number of events of a kind so far.
    func count(_ kind: TransportEvent.Kind) -> Int { all(kind).count }

    /// The number of messages that the events of a kind so far stand for.
    func messageCount(_ kind: TransportEvent.Kind) -> Int {
        all(kind).reduce(0) { $0 + ($1.count ?? 1) }
    }
}

/// Ends the benches of a test after it, also when the test has thrown.
struct BenchesEnd: SuiteTrait, TestTrait, TestScoping {
    @TaskLocal private static var benches: Kept<[Bench]>?

    var isRecursive: Bool { true }

    static func note(_ bench: Bench) { benches?.withLock { $0.append(bench) } }

    @concurrent func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let benches = Kept([Bench]())
        let result: Result<Void, any Error>
        do {
            try await Self.$benches.withValue(benches) { try await function() }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        for bench in benches.withLock({ $0 }) { await bench.end() }
        try result.get()
    }
}

extension Trait where Self == BenchesEnd {
    /// Ends the benches of each test after it.
    static var benchesEnd: Self { BenchesEnd() }
}
