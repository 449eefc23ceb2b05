import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// The states of several streams, reported as one.
@Suite("Event stream transport: states", .inSimulation, .timeLimit(.minutes(30)))
struct StateTests {
    private final class Stream {}

    /// A state as a word, with the attempt or the seconds of its wait.
    private static func word(_ state: ConnectionState) -> String {
        switch state {
        case .idle: "idle"
        case .connecting(let attempt): "connecting \(attempt)"
        case .connected: "connected"
        case .waiting(let duration, _): "waiting \(duration.components.seconds)"
        case .paused: "paused"
        case .disconnected: "disconnected"
        }
    }

    /// Applies `body` to three streams, and returns the states that observers get after `idle`.
    private func heard(_ body: (SSEStates, [Stream], ContinuousClock.Instant) -> Void) async
        -> [String]
    {
        let states = SSEStates()
        let streams = [Stream(), Stream(), Stream()]
        let begin = ContinuousClock.now
        var iterator = states.source.states.makeAsyncIterator()
        body(states, streams, begin)
        for stream in streams { states.remove(stream, nil) }
        var words: [String] = []
        while words.last != "disconnected", let state = await iterator.next() {
            words.append(Self.word(state))
        }
        return Array(words.dropFirst())
    }

    private let lost = WaybillError(.connectionLost, "gone")

    @Test("Several streams that are asked for are one state, until the first is open")
    func connecting() async {
        let words = await heard { states, streams, _ in
            for stream in streams { states.report(.connecting(attempt: 1), of: stream) }
            states.report(.connecting(attempt: 2), of: streams[1])
            states.report(.connected, of: streams[2])
            states.report(.connected, of: streams[0])
        }
        #expect(words == ["connecting 1", "connected", "disconnected"])
    }

    @Test("Of several waits the one counts that ends first")
    func waiting() async {
        let lost = lost
        let words = await heard { states, streams, begin in
            func wait(_ stream: Int, _ seconds: Int) {
                let waiting = ConnectionState.waiting(for: .seconds(seconds), cause: lost)
                states.report(waiting, of: streams[stream], until: begin + .seconds(seconds))
            }
            wait(0, 8)
            wait(1, 9)
            wait(2, 3)
            wait(1, 7)
            states.report(.connecting(attempt: 2), of: streams[2])
            wait(2, 20)
        }
        #expect(
            words == [
                "waiting 8", "waiting 3", "connecting 2", "waiting 7", "waiting 20", "disconnected",
            ]
        )
    }

    @Test("A stream that has ended does not come back with the news that it was opened")
    func lateOpening() async {
        let words = await heard { states, streams, _ in
            states.report(.connecting(attempt: 1), of: streams[0])
            states.remove(streams[0], nil)
            states.report(.connected, of: streams[0])
        }
        #expect(words == ["connecting 1", "disconnected"])
    }

    /// Collects states as words until the given one.
    private func heard(
        _ states: inout ConnectionStates.AsyncIterator,
        until last: String
    ) async -> [String] {
        var words: [String] = []
        while words.last != last, let state = await states.next() {
            words.append(
                Self.word(state).split(separator: " ").first.map(String.init) ?? ""
            )
            if case .connecting(let attempt) = state, attempt > 1 { words.append("\(attempt)") }
        }
        return words
    }

    @Test(
        "A pause that is over before the stream is closed is told all the same, and the attempts begin anew"
    )
    func shortPause() async throws {
        let server = HTTPServer([
            .close(Say.stream("data: a\n\n")), .refuse, .open(Say.stream("data: b\n\n")),
            .open(Say.stream("data: c\n\n")),
        ])
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(10)) }) {
            server.requests.count >= 2
        }
        #expect(try await iterator.next()?.text == "b")
        await transport.pause()
        transport.resume()
        #expect(try await iterator.next()?.text == "c")
        await transport.shutdown()
        let words = await heard(&states, until: "disconnected")
        #expect(
            words == [
                "idle", "connecting", "connected", "waiting", "connecting", "waiting", "connecting",
                "2", "connected", "paused", "connecting", "connected", "disconnected",
            ]
        )
    }
}
