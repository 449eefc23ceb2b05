import Testing
import TransportTestSupport
import WaybillSession
import WireCore
import WireTestSupport

@Suite("Promises", .inSimulation, .timeLimit(.minutes(30))) struct PromiseTests {
    private final class Counter: Sendable {
        private let number = Locked(0)

        var value: Int { number.withLock { $0 } }

        func increase() { number.withLock { $0 += 1 } }
    }

    private struct Fault: Error, Equatable {
        let number: Int
    }

    @Test("The first result counts, for all waiting tasks and all later ones")
    func manyWaiters() async throws {
        let promise = Promise<Int>()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 { group.addTask { try await promise.value() } }
            await Task.yield()
            promise.resolve(.success(1))
            promise.resolve(.success(2))
            promise.resolve(.failure(Fault(number: 3)))
            for try await value in group { #expect(value == 1) }
        }
        #expect(try await promise.value() == 1)
    }

    #if os(Linux)
        @Test("Waiting tasks are resumed in the order of their arrival")
        func order() async throws {
            let promise = Promise<Int>()
            let order = WakingOrder()
            order.begin(100) { _ in _ = try? await promise.value() }
            promise.resolve(.success(1))
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
        }
    #endif

    @Test("An error reaches all waiting tasks")
    func failure() async {
        let promise = Promise<Int>()
        let waiting = Task { try await promise.value() }
        promise.resolve(.failure(Fault(number: 1)))
        await #expect(throws: Fault(number: 1)) { try await waiting.value }
        await #expect(throws: Fault(number: 1)) { try await promise.value() }
    }

    @Test("It is abandoned when the last waiting task is cancelled")
    func abandonment() async {
        let counter = Counter()
        let promise = Promise<Int>(onAbandoned: { counter.increase() })
        let tasks = (0..<2).map { _ in Task { try await promise.value() } }
        await untilQuiet()
        for task in tasks { task.cancel() }
        for task in tasks {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(counter.value > 0)
    }

    @Test(
        "A cancelled task gets the cancellation, not the result of abandoning the promise",
        arguments: [true, false]
    )
    func cancelledFirst(isWaiting: Bool) async {
        let itself = Locked<Promise<Int>?>(nil)
        let promise = Promise<Int>(onAbandoned: {
            itself.withLock { $0 }?.resolve(.failure(Fault(number: 1)))
        })
        itself.withLock { $0 = promise }
        let task = Task {
            if !isWaiting { withUnsafeCurrentTask { $0?.cancel() } }
            return try await promise.value()
        }
        if isWaiting {
            await untilQuiet()
            task.cancel()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        await #expect(throws: Fault(number: 1)) { try await promise.value() }
        itself.withLock { $0 = nil }
    }

    @Test("A cancelled task leaves the others waiting")
    func oneCancelled() async throws {
        let promise = Promise<Int>()
        let staying = Task { try await promise.value() }
        let leaving = Task { try await promise.value() }
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        promise.resolve(.success(1))
        #expect(try await staying.value == 1)
    }

    @Test("A result that is there is not abandoned, and reaches a cancelled task, too")
    func resolvedBefore() async throws {
        let counter = Counter()
        let promise = Promise<Int>(onAbandoned: { counter.increase() })
        promise.resolve(.success(1))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await promise.value()
        }
        #expect(try await task.value == 1)
        #expect(counter.value == 0)
    }

    @Test("A wait until the promise is resolved does not end with a cancellation")
    func waitUntilResolved() async throws {
        let promise = Promise<Int>()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await promise.waitUntilResolved()
            return promise.result != nil
        }
        await untilQuiet()
        promise.resolve(.success(1))
        #expect(await task.value)
    }
}
