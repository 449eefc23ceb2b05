import Testing
import Waybill

@Suite("The states that a transport reports") struct ConnectionStateSourceTests {
    @Test("A loop that is more than 64 changes behind misses the oldest ones, and delays no other")
    func lag() async {
        let source = ConnectionStateSource()
        var slow = source.states.makeAsyncIterator()
        #expect(await slow.next() == .idle)
        for attempt in 1...100 { source.report(.connecting(attempt: attempt)) }
        var late = source.states.makeAsyncIterator()
        source.finish()
        for attempt in 37...100 { #expect(await slow.next() == .connecting(attempt: attempt)) }
        #expect(await slow.next() == nil)
        // An iteration begins with the present state.
        #expect(await late.next() == .connecting(attempt: 100))
        #expect(await late.next() == nil)
    }
}
