import Testing
import WaybillLink

/// The rules of the stream over Network.framework. They do not need the framework.
@Suite("The state of a stream over Network.framework") struct NetworkStreamStateTests {
    private typealias State = NetworkStreamState<[UInt8]>

    /// A receiver without behaviour. The tests look at the steps that the state asks for.
    private final class Listener: ByteStreamReceiver {
        func streamIsReadable() {}
        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }

    private let listener = Listener()

    private var started: State {
        var state = State()
        state.start(listener)
        return state
    }

    private func read(_ state: inout State, _ count: Int = 10) throws(LinkError) -> [UInt8]? {
        var space = [UInt8](repeating: 0, count: count)
        let outcome = space.withUnsafeMutableBytes { space in
            Result { () throws(LinkError) in try state.read(into: space) }
        }
        switch try outcome.get() {
        case .bytes(let count): return Array(space.prefix(count))
        case .nothing: return []
        case .endOfStream: return nil
        }
    }

    /// True for the listener; false for nil.
    private func isListener(_ receiver: (any ByteStreamReceiver)?) -> Bool {
        receiver === listener
    }

    private func isReceive(_ step: State.Step) -> Bool {
        if case .receive = step { true } else { false }
    }

    private func isTell(_ step: State.Step) -> Bool {
        if case .tell(let receiver) = step { receiver === listener } else { false }
    }

    private func isNothing(_ step: State.Step) -> Bool {
        if case .nothing = step { true } else { false }
    }

    private func isTell(_ outcome: State.SendOutcome) -> Bool {
        if case .tell(let receiver) = outcome { receiver === listener } else { false }
    }

    private func isCancel(_ outcome: State.SendOutcome) -> Bool {
        if case .cancel = outcome { true } else { false }
    }

    private func isNothing(_ outcome: State.SendOutcome) -> Bool {
        if case .nothing = outcome { true } else { false }
    }

    // MARK: Reading

    @Test(
        "One receive at a time; the next begins when its bytes were read, however many reads that takes"
    )
    func receiving() throws {
        var state = State()
        #expect(isNothing(state.nextStep()))
        state.start(listener)
        #expect(isReceive(state.nextStep()))
        #expect(isNothing(state.nextStep()))
        state.noteReceived([1, 2, 3], isComplete: false, failure: nil)
        #expect(isTell(state.nextStep()))
        #expect(try read(&state, 2) == [1, 2])
        #expect(isTell(state.nextStep()))
        #expect(try read(&state, 2) == [3])
        #expect(try read(&state) == [])
        #expect(isReceive(state.nextStep()))
    }

    @Test("A reader that has stopped is told nothing, and nothing is received for it")
    func heldBack() throws {
        var state = started
        _ = state.nextStep()
        #expect(state.setReading(false) == false)
        state.noteReceived([1], isComplete: false, failure: nil)
        #expect(isNothing(state.nextStep()))
        #expect(!isListener(state.readAgain()))
        #expect(state.setReading(true) == true)
        #expect(state.setReading(true) == false)
        #expect(isTell(state.nextStep()))
        #expect(try read(&state) == [1])
        _ = state.setReading(false)
        #expect(isNothing(state.nextStep()))
        _ = state.setReading(true)
        #expect(isReceive(state.nextStep()))
    }

    @Test("Asked for, the reader is told again although nothing came")
    func again() throws {
        var state = started
        _ = state.nextStep()
        #expect(isListener(state.readAgain()))
        #expect(try read(&state) == [])
    }

    @Test("The end comes behind the bytes, and once")
    func endOfStream() throws {
        var state = started
        _ = state.nextStep()
        state.noteReceived([1], isComplete: true, failure: nil)
        #expect(isTell(state.nextStep()))
        #expect(try read(&state) == [1])
        #expect(isTell(state.nextStep()))
        #expect(try read(&state) == nil)
        #expect(isNothing(state.nextStep()))
        // The end of reading does not end writing.
        #expect(try state.takeForSending(3, atMost: 10) == 3)
    }

    @Test("A failure comes behind the bytes, the first one, and also to a reader that has stopped")
    func failure() throws {
        var state = started
        _ = state.nextStep()
        state.noteReceived([1], isComplete: false, failure: .reset)
        state.fail(.closed)
        _ = state.setReading(false)
        #expect(isTell(state.nextStep()))
        #expect(try read(&state) == [1])
        #expect(isTell(state.nextStep()))
        #expect(throws: LinkError.reset) { try read(&state) }
        #expect(throws: LinkError.reset) { try state.takeForSending(1, atMost: 10) }
        #expect(state.finish() == false)
    }

    @Test("An end that TLS did not confirm is a failure")
    func truncated() throws {
        var state = started
        _ = state.nextStep()
        state.noteReceived(nil, isComplete: true, failure: .truncated)
        #expect(isTell(state.nextStep()))
        #expect(throws: LinkError.truncated) { try read(&state) }
    }

    // MARK: Writing

    @Test("One chunk at a time; a writer that was cut short is told, another is not")
    func writing() throws {
        var state = started
        #expect(try state.takeForSending(0, atMost: 10) == 0)
        #expect(try state.takeForSending(4, atMost: 10) == 4)
        #expect(isNothing(state.noteSent(isChunk: true)))
        #expect(try state.takeForSending(15, atMost: 10) == 10)
        #expect(try state.takeForSending(5, atMost: 10) == 0)
        #expect(isTell(state.noteSent(isChunk: true)))
        #expect(try state.takeForSending(5, atMost: 10) == 5)
        #expect(isNothing(state.noteSent(isChunk: true)))
    }

    @Test("After the end of writing nothing is taken, and reading goes on")
    func finished() throws {
        var state = started
        #expect(state.finish() == true)
        #expect(state.finish() == false)
        #expect(throws: LinkError.closed) { try state.takeForSending(1, atMost: 10) }
        #expect(isNothing(state.noteSent(isChunk: false)))
        #expect(isReceive(state.nextStep()))
    }

    @Test("Flushes are scheduled one at a time, and none for a stream that was closed")
    func flush() {
        var state = started
        #expect(state.scheduleFlush() == true)
        #expect(state.scheduleFlush() == false)
        #expect(isListener(state.beginFlush()))
        #expect(state.scheduleFlush() == true)
        #expect(state.close() == true)
        #expect(!isListener(state.beginFlush()))
        #expect(state.scheduleFlush() == false)
    }

    // MARK: The end

    @Test("A stream that is closed with nothing to send gives up its connection at once")
    func closeIdle() throws {
        var state = started
        _ = state.nextStep()
        #expect(state.close() == true)
        #expect(state.close() == false)
        #expect(isNothing(state.nextStep()))
        #expect(!isListener(state.readAgain()))
        #expect(throws: LinkError.closed) { try read(&state) }
        #expect(throws: LinkError.closed) { try state.takeForSending(1, atMost: 10) }
        let (receiver, isIdle) = state.end()
        #expect(receiver === listener)
        #expect(isIdle)
        #expect(!isListener(state.end().receiver))
        // A receive that completes after the end changes nothing.
        state.noteReceived([1], isComplete: true, failure: .reset)
        #expect(isNothing(state.nextStep()))
    }

    @Test("What was written before the call to close leaves first, and so does the end")
    func closeBehindBytes() throws {
        var state = started
        #expect(try state.takeForSending(20, atMost: 10) == 10)
        #expect(state.finish() == true)
        #expect(state.close() == true)
        let (receiver, isIdle) = state.end()
        #expect(receiver === listener)
        #expect(!isIdle)
        #expect(isNothing(state.noteSent(isChunk: true)))
        #expect(isCancel(state.noteSent(isChunk: false)))
    }
}
