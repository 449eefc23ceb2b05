import EventStreamWire
import WaybillLink
import WireCore

// The restart of a stream by the app.
extension SSEStream {
    /// Requests the stream again at once, from the last event on.
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
            guard state.isClosedForRestart else { return false }
            state.isClosedForRestart = false
            // A pause that came at the same time is seen at the next attempt.
            state.isClosedForPause = false
            return true
        }
    }
}
