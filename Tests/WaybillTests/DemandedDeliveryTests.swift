import Testing
import Waybill
import WireTestSupport

/// The parts of the bridge to Combine, without Combine.
@Suite("Delivery on demand", .timeLimit(.minutes(30))) struct DemandedDeliveryTests {
    private struct Failure: Error {}

    /// An event of a subscriber that demands elements.
    private enum Event: Equatable, Sendable {
        case element(Int)
        case end(failed: Bool)
    }

    /// A delivery of the numbers from 1 on, and a record of its events.
    private final class Numbers: Sendable {
        let taken = LockedBox(0)
        private let heard: AsyncStream<Event>
        private let tell: AsyncStream<Event>.Continuation
        let delivery: DemandedDelivery<Int>

        /// - Parameters:
        ///   - last: The last number. The end or the failure follows it.
        ///   - further: The demand that each element adds.
        init(
            last: Int,
            fails: Bool = false,
            further: @escaping @Sendable (Int) -> Int? = { _ in 0 }
        ) {
            let (heard, tell) = AsyncStream<Event>.makeStream()
            let taken = taken
            self.heard = heard
            self.tell = tell
            delivery = DemandedDelivery {
                taken.change { $0 += 1 }
                if taken.value <= last { return taken.value }
                if fails { throw Failure() }
                return nil
            } receive: { number in
                tell.yield(.element(number))
                return further(number)
            } complete: { error in
                tell.yield(.end(failed: error != nil))
                tell.finish()
            }
        }

        /// The next `count` events.
        func next(_ count: Int) async -> [Event] {
            var events: [Event] = []
            for await event in heard {
                events.append(event)
                if events.count == count { break }
            }
            return events
        }

        func stop() {
            tell.finish()
        }
    }

    @Test("Nothing is taken before it is demanded, and no more than that")
    func demand() async {
        let numbers = Numbers(last: 9)
        numbers.delivery.run()
        #expect(numbers.taken.value == 0)
        numbers.delivery.demand(2)
        #expect(await numbers.next(2) == [.element(1), .element(2)])
        #expect(numbers.taken.value == 2)
        numbers.delivery.demand(0)
        numbers.delivery.demand(1)
        #expect(await numbers.next(1) == [.element(3)])
        #expect(numbers.taken.value == 3)
        numbers.delivery.cancel()
    }

    @Test("What each element brings in further demand counts")
    func further() async {
        let numbers = Numbers(last: 3) { $0 < 3 ? 1 : 0 }
        numbers.delivery.demand(1)
        numbers.delivery.run()
        #expect(await numbers.next(3) == [.element(1), .element(2), .element(3)])
        #expect(numbers.taken.value == 3)
        numbers.delivery.demand(1)
        #expect(await numbers.next(1) == [.end(failed: false)])
    }

    @Test(
        "Demand without limit, or too much to count, goes on to the end",
        arguments: [nil, Int.max]
    )
    func unlimited(demand: Int?) async {
        let numbers = Numbers(last: 2) { _ in 1 }
        numbers.delivery.demand(demand)
        numbers.delivery.demand(demand)
        numbers.delivery.run()
        #expect(await numbers.next(3) == [.element(1), .element(2), .end(failed: false)])
        // After the end nothing more is taken, and the end is not reported again.
        numbers.delivery.demand(5)
        numbers.delivery.cancel()
        #expect(numbers.taken.value == 3)
    }

    @Test("A failure ends it, behind what came before")
    func failure() async {
        let numbers = Numbers(last: 1, fails: true)
        numbers.delivery.run()
        numbers.delivery.demand(nil)
        #expect(await numbers.next(2) == [.element(1), .end(failed: true)])
    }

    @Test("What is cancelled before it runs, or while it waits for demand, is told nothing")
    func cancelled() async {
        let early = Numbers(last: 9)
        early.delivery.demand(1)
        early.delivery.cancel()
        early.delivery.run()
        let waiting = Numbers(last: 9)
        waiting.delivery.demand(1)
        waiting.delivery.run()
        #expect(await waiting.next(1) == [.element(1)])
        waiting.delivery.cancel()
        waiting.delivery.demand(1)
        for numbers in [early, waiting] {
            numbers.stop()
            #expect(await numbers.next(1) == [])
        }
        #expect(early.taken.value == 0)
        #expect(waiting.taken.value == 1)
    }

    @Test("Cancelled while an element is on its way, it cancels the waiting task and delivers none")
    func cancelledOnTheWay() async {
        let (began, tell) = AsyncStream<Void>.makeStream()
        let (ended, tellEnd) = AsyncStream<Bool>.makeStream()
        let received = LockedBox(0)
        let delivery = DemandedDelivery<Int> {
            tell.finish()
            let gate = AsyncStream<Void> { _ in }
            // The loop ends when the task is cancelled.
            for await _ in gate {}
            tellEnd.yield(Task.isCancelled)
            tellEnd.finish()
            return 1
        } receive: { _ in
            received.change { $0 += 1 }
            return nil
        } complete: { _ in
            received.change { $0 += 1 }
        }
        delivery.demand(1)
        delivery.run()
        for await _ in began {}
        delivery.cancel()
        for await isCancelled in ended { #expect(isCancelled) }
        #expect(received.value == 0)
    }

    /// A subscriber that keeps its subscription, as those of Combine do.
    private final class Keeper: Sendable {
        let delivery = LockedBox<DemandedDelivery<Int>?>(nil)
    }

    @Test("Cancelled, it lets go of a subscriber that keeps it", arguments: [false, true])
    func letsGo(runs: Bool) async throws {
        weak var released: Keeper?
        do {
            let keeper = Keeper()
            released = keeper
            let delivery = DemandedDelivery<Int> {
                1
            } receive: { _ in
                withExtendedLifetime(keeper) { 0 }
            } complete: { _ in
            }
            keeper.delivery.change { $0 = delivery }
            if runs {
                delivery.run()
                delivery.demand(1)
            }
            delivery.cancel()
        }
        try await waitUntil { released == nil }
    }

    @Test("Elements of an asynchronous sequence come in their order")
    func sequence() async {
        let (heard, tell) = AsyncStream<Int>.makeStream()
        let numbers = AsyncStream<Int> { source in
            for number in 1...3 { source.yield(number) }
            source.finish()
        }
        let delivery = DemandedDelivery<Int> {
            for await number in numbers { return number }
            return nil
        } receive: { number in
            tell.yield(number)
            return 1
        } complete: { _ in
            tell.finish()
        }
        delivery.demand(1)
        delivery.run()
        var all: [Int] = []
        for await number in heard { all.append(number) }
        #expect(all == [1, 2, 3])
    }
}
