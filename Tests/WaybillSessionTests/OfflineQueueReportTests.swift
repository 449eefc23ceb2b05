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

    private func queue(_ overflow: OfflineQueuePolicy.Overflow) -> OfflineQueue<Int> {
        var policy = OfflineQueuePolicy()
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
            (OfflineQueuePolicy.Overflow.fail, [true, true, false, false], [], nil),
            (
                .dropNewest, [true, true, false, false], [3, 11],
                TransportEvent.DropReason.queueFull
            ),
            (.dropOldest, [true, true, true, false], [1, 11], nil),
        ]
    )
    func overflow(
        overflow: OfflineQueuePolicy.Overflow,
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
}
