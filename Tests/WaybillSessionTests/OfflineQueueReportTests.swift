import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSession
import WaybillTesting
import WireCore

/// The entries that the offline queue drops, and the reports of them.
@Suite("Drops of the offline queue", .inSimulation, .timeLimit(.minutes(30)))
struct OfflineQueueReportTests {
    private let clock = ManualClock()
    private let source = TransportEventSource()
    /// The lengths of the sends whose calls failed.
    private let failed = Told()

    private final class Told: Sendable {
        let lengths = Locked<[Int]>([])
    }

    private func queue(_ overflow: OfflinePolicy.Overflow) -> OfflineQueue<Int> {
        var policy = OfflinePolicy()
        policy.messageLimit = 2
        policy.byteLimit = 10
        policy.overflow = overflow
        var environment = LinkEnvironment.system
        environment.clock = clock.linkTimers
        return OfflineQueue(policy, in: environment, reportingTo: source)
    }

    private func item(_ byteCount: Int) -> OfflineQueue<Int>.Item {
        OfflineQueue<Int>.Item(
            topic: "t",
            byteCount: byteCount,
            timeout: .seconds(5),
            send: { _ in },
            fail: { [failed] _ in failed.lengths.withLock { $0.append(byteCount) } }
        )
    }

    /// Appends a send; false when there is no room.
    private func append(_ byteCount: Int, to queue: OfflineQueue<Int>) -> Bool {
        do throws(WaybillError) {
            queue.fail(dropped: try queue.append(item(byteCount)).dropped)
            return true
        } catch {
            return false
        }
    }

    @Test(
        "Each policy: which sends are dropped, and the reports of them",
        arguments: [
            (OfflinePolicy.Overflow.fail, [true, true, false, false], [], nil),
            (
                .dropNewest, [true, true, false, false], [3, 11],
                TransportEvent.DropReason.queueFull
            ),
            (.dropOldest, [true, true, true, false], [1, 11], nil),
        ]
    )
    func overflow(
        overflow: OfflinePolicy.Overflow,
        accepted: [Bool],
        dropped: [Int],
        reason: TransportEvent.DropReason?
    ) async {
        let queue = queue(overflow)
        var iterator = source.events.makeAsyncIterator()
        #expect([1, 2, 3, 11].map { append($0, to: queue) } == accepted)
        // An entry that exceeds the whole queue drops no other.
        #expect(queue.count == 2)
        #expect(failed.lengths.withLock { $0 } == (overflow == .dropOldest ? [1] : []))
        clock.advance(by: .seconds(5))
        var events: [TransportEvent] = []
        while events.filter({ $0.dropReason == .expired }).count < 2,
            let event = await iterator.next()
        {
            events.append(event)
        }
        #expect(events.allSatisfy { $0.kind == .dropped && $0.count == 1 && $0.topic == "t" })
        let before = events.filter { $0.dropReason != .expired }
        #expect(before.map(\.byteCount) == dropped)
        let reasons: [TransportEvent.DropReason] =
            reason.map { [$0, $0] } ?? (dropped.isEmpty ? [] : [.oldestQueued, .queueFull])
        #expect(before.map(\.dropReason) == reasons)
        #expect(queue.count == 0)
    }

    @Test(
        "A send that a connection did not take goes back to its place, with its deadline and bytes"
    )
    func putBack() async throws {
        let queue = queue(.fail)
        let errors = Locked<[WaybillError.Code]>([])
        let sent = Locked<[Int]>([])
        for byteCount in [4, 6] {
            let item = OfflineQueue<Int>.Item(
                topic: "t",
                byteCount: byteCount,
                timeout: .seconds(5),
                send: { connection throws(WaybillError) in
                    guard connection > 0 else { throw WaybillError(.notConnected, "over") }
                    sent.withLock { $0.append(byteCount) }
                },
                fail: { error in errors.withLock { $0.append(error.code) } }
            )
            _ = try queue.append(item)
        }
        clock.advance(by: .seconds(3))
        #expect(throws: WaybillError.self) { try queue.flush(to: 0) }
        #expect(queue.count == 2)
        // The bytes of the first one count as before.
        #expect(queue.withdraw(2) && !append(7, to: queue))
        clock.advance(by: .milliseconds(1_999))
        #expect(queue.count == 1 && errors.withLock { $0 } == [])
        clock.advance(by: .milliseconds(1))
        #expect(queue.count == 0)
        #expect(errors.withLock { $0 } == [.timedOut])
        // Nothing is left that a later connection would send.
        try queue.flush(to: 1)
        #expect(sent.withLock { $0 } == [] && clock.timerCount == 0)
    }

    @Test("A send that leaves gives back its place, its bytes and its timer", arguments: 0..<4)
    func givenBack(way: Int) throws {
        let queue = queue(.fail)
        for _ in 0..<3 {
            let number = try queue.append(item(10)).number
            #expect(!append(1, to: queue) && queue.count == 1 && clock.timerCount == 1)
            switch way {
            case 0: #expect(queue.withdraw(number))
            case 1: try queue.flush(to: 1)
            case 2: clock.advance(by: .seconds(5))
            default: queue.conclude(WaybillError(.notConnected, "over"), lasting: nil)
            }
            #expect(queue.count == 0 && clock.timerCount == 0)
        }
    }

    @Test("Sends that a connection did not take keep their order")
    func orderOfPutBack() throws {
        let queue = queue(.fail)
        let sent = Locked<[Int]>([])
        for byteCount in [1, 2] {
            let item = OfflineQueue<Int>.Item(
                byteCount: byteCount,
                timeout: nil,
                send: { connection throws(WaybillError) in
                    guard connection > 0 else { throw WaybillError(.notConnected, "over") }
                    sent.withLock { $0.append(byteCount) }
                },
                fail: { _ in }
            )
            _ = try queue.append(item)
        }
        #expect(throws: WaybillError.self) { try queue.flush(to: 0) }
        try queue.flush(to: 1)
        #expect(sent.withLock { $0 } == [1, 2])
    }
}
