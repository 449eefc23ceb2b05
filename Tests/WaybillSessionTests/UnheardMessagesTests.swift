import Testing
import TransportTestSupport
import Waybill
import WaybillSession
import WaybillTesting

@Suite("Messages without a listener", .inSimulation)
struct UnheardMessagesTests {
    @Test("A hundred a second are told one by one, the others by their number")
    func flood() async throws {
        let (clock, events) = (ManualClock(), TransportEventSource())
        let unheard = UnheardMessages(reportingTo: events, by: clock.linkTimers)
        var iterator = events.events.makeAsyncIterator()
        for number in 0..<250 { unheard.report("t\(number)", byteCount: 2) }
        clock.advance(by: .seconds(1))
        unheard.report("late", byteCount: 1)
        for number in 0..<100 {
            let event = await iterator.next()
            #expect(event?.topic == "t\(number)" && event?.dropReason == .noListener)
        }
        let rest = await iterator.next()
        #expect(rest?.topic == nil && rest?.count == 150 && rest?.byteCount == 300)
        #expect(await iterator.next()?.topic == "late")
    }
}
