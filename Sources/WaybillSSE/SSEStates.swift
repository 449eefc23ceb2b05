package import Waybill
import WireCore

/// The state of all streams of a transport as one.
///
/// | the streams | the state |
/// | --- | --- |
/// | one of them is open | connected |
/// | else one of them is asked for | connecting; of several, the attempt of the stream that was asked for first |
/// | else one of them waits | waiting; of several, the wait that ends first |
/// | else one of them is paused | paused |
/// | none is left | disconnected, because of what ended the last one |
///
/// It is reported when it changes: an open stream hides what becomes of the others. The state therefore goes from connected to
/// connecting when the last open stream ends while another one is asked for, and from one attempt or wait to that of another
/// stream.
package final class SSEStates: Sendable {
    private struct Report: Sendable {
        let state: ConnectionState
        /// The end of a wait.
        let end: ContinuousClock.Instant?

        func isBetter(than other: Report?) -> Bool {
            if case .waiting = state, case .waiting? = other?.state, let end, let last = other?.end
            {
                return end < last
            }
            return rank > other?.rank ?? 0
        }

        private var rank: Int {
            switch state {
            case .connected: 4
            case .connecting: 3
            case .waiting: 2
            case .paused: 1
            case .idle, .disconnected: 0
            }
        }
    }

    private struct State: Sendable {
        /// What each stream that lives has reported last, in the order of their first reports.
        private var streams: [(stream: ObjectIdentifier, report: Report)] = []

        /// The state of all; nil without any stream.
        var whole: Report? {
            streams.reduce(nil) { whole, stream in
                stream.report.isBetter(than: whole) ? stream.report : whole
            }
        }

        /// How many streams are asked for, or wait.
        var seekingCount: Int {
            streams.count { stream in
                switch stream.report.state {
                case .connecting, .waiting: true
                case .idle, .connected, .paused, .disconnected: false
                }
            }
        }

        mutating func note(_ new: Report, of stream: AnyObject) {
            let identifier = ObjectIdentifier(stream)
            if let index = streams.firstIndex(where: { $0.stream == identifier }) {
                streams[index].report = new
                return
            }
            // A stream that was ended while its opening was on its way does not come back with it.
            if case .connected = new.state { return }
            streams.append((identifier, new))
        }

        mutating func remove(_ stream: AnyObject) {
            streams.removeAll { $0.stream == ObjectIdentifier(stream) }
        }
    }

    package let source = ConnectionStateSource()
    private let state = Locked(State())

    package init() {}

    /// Notes the state of a stream, and reports that of all if it has changed.
    ///
    /// - Parameters:
    ///   - new: The state.
    ///   - stream: The stream.
    ///   - end: The end of a wait.
    package func report(
        _ new: ConnectionState,
        of stream: AnyObject,
        until end: ContinuousClock.Instant? = nil
    ) {
        change { $0.note(Report(state: new, end: end), of: stream) }
    }

    /// Forgets a stream that is over; the last one's cause is the transport's.
    package func remove(_ stream: AnyObject, _ cause: WaybillError?) {
        change(because: cause) { $0.remove(stream) }
    }

    /// Reports the end, once, when no stream is left that would.
    package func end() { change { _ in } }

    /// Changes the states of streams, and reports with the lock held, so that reports have the order of the changes.
    private func change(because cause: WaybillError? = nil, _ body: (inout State) -> Void) {
        state.withLock { state in
            let before = state.whole
            body(&state)
            source.noteHidden(state.seekingCount)
            let after = state.whole
            switch (before?.state, after?.state) {
            case (.connected?, .connected?), (.paused?, .paused?): break
            case (.connecting(let old)?, .connecting(let new)?) where old == new: break
            case (.waiting?, .waiting?) where before?.end == after?.end: break
            case (_, let after?): source.report(after)
            case (_, nil):
                if case .disconnected = source.current { return }
                source.report(.disconnected(cause: cause))
            }
        }
    }
}
