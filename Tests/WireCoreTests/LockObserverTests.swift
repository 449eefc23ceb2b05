import Testing
import WireCore

@Suite("Lock observer")
struct LockObserverTests {
    private struct Refusal: Error {}

    /// What the closures were called for.
    private final class Calls: Sendable {
        // No race: the process runs one test, whose body suspends nowhere, and only that body takes locks.
        nonisolated(unsafe) var log: [String] = []
        nonisolated(unsafe) var depth = 0

        func note(_ what: String) {
            log.append(what)
        }

        func take() -> [String] {
            defer { log = [] }
            return log
        }
    }

    @Test(
        "Each critical section is announced before its lock is taken and after it is open",
        .enabled(if: LockObserver.isCompiledIn)
    )
    func calls() async {
        // In a process of its own: the closures stay for good.
        await #expect(processExitsWith: .success) {
            let calls = Calls()
            let outer = Locked(1)
            let inner = Locked(2)
            LockObserver.install {
                calls.note("take")
            } didUnlock: {
                calls.note("open")
            }
            let sum = outer.withLock { one in
                calls.note("in")
                let sum = one + inner.withLock { $0 }
                calls.note("out")
                return sum
            }
            precondition(sum == 3)
            let nested = calls.take()
            precondition(nested == ["take", "in", "take", "open", "out", "open"], "\(nested)")

            do throws(Refusal) {
                try outer.withLock { _ throws(Refusal) in throw Refusal() }
                preconditionFailure("nothing thrown")
            } catch {
                let thrown = calls.take()
                precondition(thrown == ["take", "open"], "\(thrown)")
            }

            // The first closures stay.
            LockObserver.install {
                preconditionFailure("installed twice")
            } didUnlock: {
            }
            outer.withLock { $0 += 1 }
            let last = calls.take()
            precondition(last == ["take", "open"], "\(last)")
        }
    }

    @Test(
        "Another task may take the lock that has just been opened",
        .enabled(if: LockObserver.isCompiledIn)
    )
    func preemption() async {
        await #expect(processExitsWith: .success) {
            let calls = Calls()
            let value = Locked(0)
            LockObserver.install {
                calls.depth += 1
            } didUnlock: {
                calls.depth -= 1
                // Once, or each opening would lead to another.
                guard calls.depth == 0, calls.log.isEmpty else { return }
                calls.note("preempted")
                value.withLock { $0 += 10 }
            }
            let result = value.withLock { value in
                value += 1
                return value
            }
            precondition(result == 1)
            precondition(value.withLock { $0 } == 11)
        }
    }
}
