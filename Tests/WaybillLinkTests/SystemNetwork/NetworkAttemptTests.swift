import Testing
import WaybillLink

/// The attempt to open a connection of Network.framework: every report in every state.
@Suite("Opening a connection of Network.framework") struct NetworkAttemptTests {
    /// What happens to an attempt.
    enum Event: Sendable {
        case report(NetworkReport)
        case givenUp(LinkError)
    }

    enum Outcome: Equatable, Sendable {
        case undecided
        case stream
        case failure(LinkError)
    }

    /// A state, and the events that lead to it.
    private static let states: [(name: String, [Event])] = [
        ("opening", []),
        ("waiting", [.report(.waiting(.localNetworkDenied, isFinal: false))]),
        ("succeeded", [.report(.ready)]),
        ("failed", [.report(.failed(.refused))]),
    ]

    struct Row: Sendable, CustomTestStringConvertible {
        let event: Event
        /// The outcomes in the order of the states.
        let outcomes: [Outcome]

        var testDescription: String { "\(event)" }
    }

    static let rows: [Row] = [
        row(.report(.preparing), .undecided, .undecided),
        row(.report(.viable(true)), .undecided, .undecided),
        row(.report(.viable(false)), .undecided, .undecided),
        row(.report(.betterPath(true)), .undecided, .undecided),
        row(.report(.betterPath(false)), .undecided, .undecided),
        row(.report(.ready), .stream, .stream),
        row(
            .report(.waiting(.unreachable(errorNumber: 50), isFinal: false)),
            .undecided,
            .undecided
        ),
        row(.report(.waiting(.reset, isFinal: true)), .failure(.reset), .failure(.reset)),
        row(.report(.failed(.timedOut)), .failure(.timedOut), .failure(.timedOut)),
        // Within a handshake no data can be missing.
        row(.report(.failed(.truncated)), .failure(.tls(.closed)), .failure(.tls(.closed))),
        row(.report(.cancelled), .failure(.closed), .failure(.closed)),
        // The reason for waiting says more than the time-out.
        row(.givenUp(.timedOut), .failure(.timedOut), .failure(.localNetworkDenied)),
        row(.givenUp(.cancelled), .failure(.cancelled), .failure(.cancelled)),
    ]

    /// What is decided stays decided.
    private static func row(_ event: Event, _ opening: Outcome, _ waiting: Outcome) -> Row {
        Row(event: event, outcomes: [opening, waiting, .stream, .failure(.refused)])
    }

    @Test("Every event in every state", arguments: rows)
    func table(row: Row) async {
        for (state, outcome) in zip(Self.states, row.outcomes) {
            let connection = ScriptedConnection()
            let accepted = AcceptedStreams()
            let attempt = NetworkConnectAttempt(connection) { accepted.add($0) }
            attempt.start()
            connection.run()
            for event in state.1 + [row.event] {
                switch event {
                case .report(let report): connection.report(report)
                case .givenUp(let error): attempt.fail(error)
                }
            }
            connection.run()
            // After a success the stream hears the reports, and may wait for a path.
            let lines = connection.transcript.take().filter { !$0.hasPrefix("after") }
            var seen = Outcome.undecided
            if !accepted.all.isEmpty {
                seen = .stream
            } else if lines.contains("cancel") {
                do throws(LinkError) { _ = try await attempt.stream() } catch {
                    seen = .failure(error)
                }
            }
            #expect(seen == outcome, "\(state.name)")
            #expect(accepted.all.count <= 1, "\(state.name)")
            // A connection is started once, and one that was not handed over is cancelled once.
            let isCancelled = outcome != .undecided && outcome != .stream
            #expect(lines == (isCancelled ? ["start", "cancel"] : ["start"]), "\(state.name)")
        }
    }

    @Test("A connection that is given up before its start is never started")
    func givenUpFirst() async {
        let connection = ScriptedConnection()
        let attempt = NetworkConnectAttempt(connection)
        attempt.start()
        attempt.fail(.cancelled)
        connection.run()
        #expect(connection.transcript.take() == ["cancel"])
        await #expect(throws: LinkError.cancelled) { _ = try await attempt.stream() }
    }

    @Test("A better path that was reported before counts for the stream")
    func betterPath() {
        let connection = ScriptedConnection()
        let accepted = AcceptedStreams()
        let attempt = NetworkConnectAttempt(connection) { accepted.add($0) }
        attempt.start()
        connection.run()
        connection.report(.betterPath(true))
        connection.report(.ready)
        let receiver = NotingReceiver(connection.transcript)
        for stream in accepted.all { stream.start(receiver) }
        connection.run()
        #expect(connection.transcript.take() == ["start", "receive"])
        connection.report(.viable(false))
        #expect(connection.transcript.take() == ["readable"])
    }

    @Test("Attempt and connection let go of each other", arguments: [false, true])
    func released(isReady: Bool) {
        weak var released: ScriptedConnection?
        do {
            let connection = ScriptedConnection()
            released = connection
            let attempt = NetworkConnectAttempt(connection) { _ in }
            attempt.start()
            connection.run()
            connection.report(isReady ? .ready : .failed(.refused))
        }
        #expect(released == nil)
    }
}
