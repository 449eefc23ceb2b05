import Testing
import Waybill
import WaybillSession
import WaybillTesting
import WireCore

/// Several subscriptions on one connection. Each of them may hold the peer back.
@Suite("Holding the peer back") struct ReadingPressureTests {
    /// The calls to the link, in order.
    private final class Told: Sendable {
        private let list = Locked<[Bool]>([])

        var all: [Bool] { list.withLock { $0 } }

        func append(_ isReading: Bool) { list.withLock { $0.append(isReading) } }
    }

    private func source(_ pressure: ReadingPressure) -> MessageSource {
        MessageSource(
            policy: BufferPolicy(.holdBack, messageLimit: 2),
            callbacks: .init(onPressure: { pressure.update($0) })
        )
    }

    private let batch = (0..<3).map { Message(topic: "\($0)") }

    @Test("Reading resumes when the last full subscription has room")
    func several() async throws {
        let told = Told()
        let pressure = ReadingPressure { told.append($0) }
        let first = source(pressure)
        let second = source(pressure)
        var one = first.messages.makeAsyncIterator()
        var other = second.messages.makeAsyncIterator()
        first.deliver(batch)
        second.deliver(batch)
        #expect(told.all == [false])
        _ = try await one.next()
        #expect(told.all == [false])
        _ = try await other.next()
        #expect(told.all == [false, true])
    }

    @Test("Reading that stops for less than five seconds is not told, nor that it goes on")
    func shortStops() async throws {
        let (clock, events) = (ManualClock(), TransportEventSource())
        var iterator = events.events.makeAsyncIterator()
        let account = MemoryAccount(limit: 800)
        let pressure = ReadingPressure(
            account: account,
            reportingTo: events,
            by: clock.linkTimers
        )
        pressure.attach { _ in }
        for milliseconds in [4_999, 5_000] {
            account.charge(800)
            clock.advance(by: .milliseconds(milliseconds))
            account.release(800)
        }
        #expect(await iterator.next()?.kind == .readingHeld)
        let resumed = await iterator.next()
        #expect(resumed?.kind == .readingResumed && resumed?.duration == .seconds(5))
        #expect(clock.timerCount == 0)
        withExtendedLifetime((pressure, events)) {}
    }

    @Test("A subscription that ends does not hold the peer back")
    func forgotten() {
        let told = Told()
        let pressure = ReadingPressure { told.append($0) }
        let source = source(pressure)
        source.deliver(batch)
        pressure.forget(source)
        #expect(told.all == [false, true])
    }

    @Test("An iteration that is gone does not hold the peer back, while another one goes on")
    func goneIteration() async throws {
        let told = Told()
        let pressure = ReadingPressure { told.append($0) }
        let source = source(pressure)
        let messages = source.messages
        var one = messages.makeAsyncIterator()
        var other: Messages<Message>.AsyncIterator? = messages.makeAsyncIterator()
        source.deliver(batch)
        #expect(other != nil && told.all == [false])
        _ = try await one.next()
        #expect(told.all == [false])
        other = nil
        #expect(told.all == [false, true])
        // Nothing is reported where nothing was held back.
        other = messages.makeAsyncIterator()
        other = nil
        #expect(told.all == [false, true])
        #expect(try await one.next()?.topic == "1")
    }

    @Test("After the release no subscription holds the peer back")
    func released() {
        let told = Told()
        let pressure = ReadingPressure { told.append($0) }
        let first = source(pressure)
        let second = source(pressure)
        first.deliver(batch)
        pressure.release()
        second.deliver(batch)
        #expect(told.all == [false, true])
    }

    @Test("What is told late is what is true then")
    func late() async throws {
        let told = Told()
        let pressure = ReadingPressure { told.append($0) }
        let source = source(pressure)
        var iterator = source.messages.makeAsyncIterator()
        source.deliver(batch)
        _ = try await iterator.next()
        // A thread calls this late if another one runs between its filling of the buffer and its call.
        pressure.update(source)
        #expect(told.all == [false, true])
    }
}
