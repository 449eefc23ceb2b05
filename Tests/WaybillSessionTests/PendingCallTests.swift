import Testing
import TransportTestSupport
import Waybill
import WaybillSession
import WireCore

@Suite("Pending calls", .inSimulation, .timeLimit(.minutes(30))) struct PendingCallTests {
    private static let late = WaybillError(.timedOut, "late")

    @Test("What follows an answer is done before anyone can learn of it")
    func willSucceed() async throws {
        let call = Locked<PendingCall<Int>?>(nil)
        let wasDone = Locked<[Bool]>([])
        let made = PendingCall<Int>(willSucceed: {
            let isDone = call.withLock { $0 }?.isDone ?? true
            wasDone.withLock { $0.append(isDone) }
        })
        call.withLock { $0 = made }
        let answer = try await made.answer(
            sending: { () throws(WaybillError) in made.succeed(1) },
            withdrawing: { _ in }
        )
        made.succeed(2)
        #expect(answer == 1)
        #expect(wasDone.withLock { $0 } == [false])
        call.withLock { $0 = nil }
    }

    @Test("The first answer counts, even when it comes before the wait")
    func answers() async throws {
        let call = PendingCall<Int>()
        let answer = try await call.answer(
            sending: {
                call.succeed(1)
                call.succeed(2)
                call.fail(Self.late)
            },
            withdrawing: { _ in Issue.record("withdrawn") }
        )
        #expect(answer == 1)
        let early = PendingCall<Int>()
        early.succeed(3)
        let found = try await early.answer(
            sending: { Issue.record("sent") },
            withdrawing: { _ in Issue.record("withdrawn") }
        )
        #expect(found == 3)
    }

    @Test("What cannot be sent, and what fails later")
    func failures() async {
        let unsent = PendingCall<Int>()
        await #expect {
            try await unsent.answer(
                sending: { () throws(WaybillError) in throw Self.late },
                withdrawing: { _ in Issue.record("withdrawn") }
            )
        } throws: {
            ($0 as? WaybillError)?.code == .timedOut
        }
        let failing = PendingCall<Int>()
        await #expect {
            try await failing.answer(
                sending: { failing.fail(Self.late) },
                withdrawing: { _ in Issue.record("withdrawn") }
            )
        } throws: {
            ($0 as? WaybillError)?.code == .timedOut
        }
    }

    @Test("Cancelled while it waits, it is withdrawn; a late answer is not heard")
    func cancelled() async {
        let call = PendingCall<Int>()
        let sent = Promise<Void>()
        let withdrawn = Locked(0)
        let task = Task {
            try await call.answer(
                sending: { sent.resolve(.success(())) },
                withdrawing: { withdrawnCall in
                    withdrawn.withLock { $0 += withdrawnCall === call ? 1 : 0 }
                }
            )
        }
        await sent.waitUntilResolved()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        call.succeed(1)
        #expect(withdrawn.withLock { $0 } == 1)
    }

    @Test("Cancelled before, nothing is sent")
    func cancelledBefore() async {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await PendingCall<Int>().answer(
                sending: { Issue.record("sent") },
                withdrawing: { _ in Issue.record("withdrawn") }
            )
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
