import Testing
import WaybillLink

@Suite("The turns of writing threads") struct WriteTurnTests {
    private static let states: [WriteTurn] = [.free, .writing, .drained, .full]

    @Test("One thread writes, and none while the stream is full")
    func begin() {
        let found = Self.states.map { state in
            var state = state
            let mayWrite = state.begin()
            return "\(mayWrite) \(state)"
        }
        #expect(found == ["true writing", "false writing", "false drained", "false full"])
    }

    @Test("A stream that drained before its writer saw that it was full is not full")
    func end() {
        for (isFull, expected) in [(false, [WriteTurn.free, .free]), (true, [.full, .free])] {
            let found = [WriteTurn.writing, .drained].map { state in
                var state = state
                state.end(isFull: isFull)
                return state
            }
            #expect(found == expected)
        }
    }

    @Test("A stream that drains can be written to")
    func noteWritable() {
        let found = Self.states.map { state in
            var state = state
            state.noteWritable()
            return state
        }
        #expect(found == [.free, .drained, .drained, .free])
    }
}
