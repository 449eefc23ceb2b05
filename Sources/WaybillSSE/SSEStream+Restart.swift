import EventStreamWire
import WaybillLink
import WireCore

// A stream that the app has asked for again.
extension SSEStream {
    /// Asks for the stream again at once, from the last event on.
    func restart() {
        let driver = state.withLock { state in
            if state.driver != nil { state.isClosedForRestart = true }
            return state.driver
        }
        driver?.withCore(.immediate) { core, _ in core.close() }
        patience.hurry()
    }

    func takeRestart() -> Bool {
        state.withLock { state in
            defer { state.isClosedForRestart = false }
            return state.isClosedForRestart
        }
    }
}
