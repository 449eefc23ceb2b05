import Testing
import WireCore

@Suite("Lock observer")
struct LockObserverTests {
    private struct Refusal: Error {}

    /// A log of the calls of the closures.
    private final class Calls: Sendable {
        // No race: the process runs one test. Its body never suspends, and only that body takes locks.
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
        // The closures cannot be removed again, so the test has a process of its own.
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

            // A second call must not replace the closures.
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
                // Notes only the first call: noting takes a lock, which calls this closure again.
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
