import Testing
import WaybillLink

/// The listener over Network.framework: every event in every state, and the connections that it accepts.
@Suite("A listener of Network.framework") struct NetworkListenerTests {
    typealias Event = NetworkListenerState.Event

    /// What a state says after an event: the outcome, and whether the framework's listener is cancelled.
    struct Result: Equatable, Sendable {
        let outcome: Swift.Result<UInt16, LinkError>?
        let cancels: Bool

        static func port(_ cancels: Bool) -> Result {
            Result(outcome: .success(1_883), cancels: cancels)
        }

        static func failure(_ error: LinkError, _ cancels: Bool) -> Result {
            Result(outcome: .failure(error), cancels: cancels)
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let event: Event
        let starting: Result
        /// Whether the event ends a listener that listens.
        let ends: Bool

        var testDescription: String { "\(event)" }
    }

    static let rows: [Row] = [
        Row(event: .ready(port: 1_883), starting: .port(false), ends: false),
        Row(event: .ready(port: 0), starting: .failure(.closed, true), ends: false),
        Row(event: .waiting(.reset), starting: .failure(.reset, true), ends: true),
        Row(event: .failed(.refused), starting: .failure(.refused, true), ends: true),
        Row(event: .cancelled, starting: .failure(.closed, true), ends: true),
        Row(event: .timeLimit, starting: .failure(.timedOut, true), ends: false),
        Row(event: .close, starting: .failure(.closed, true), ends: true),
    ]

    @Test("Every event in every state", arguments: rows)
    func table(row: Row) {
        func after(_ events: Event...) -> Result {
            var state = NetworkListenerState()
            var cancels = false
            for event in events { cancels = state.note(event) }
            return Result(outcome: state.outcome, cancels: cancels)
        }
        #expect(after(row.event) == row.starting, "starting")
        #expect(after(.ready(port: 1_883), row.event) == .port(row.ends), "listening")
        #expect(after(.close, row.event) == .failure(.closed, false), "ended before")
        #expect(after(.ready(port: 1_883), .close, row.event) == .port(false), "ended")
    }

    @Test("Every event at a listener that listens", arguments: rows)
    func listening(row: Row) throws {
        // The time limit is for the start alone.
        guard row.event != .timeLimit else { return }
        let system = ScriptedListener(atStart: .ready(port: 1_883))
        let listener = try NetworkListener(system) { _ in }
        if row.event == .close { listener.close() } else { system.report(row.event) }
        #expect(system.transcript.take() == (row.ends ? ["cancel"] : []))
        let connection = ScriptedConnection()
        system.accept(connection)
        connection.run()
        #expect(
            connection.transcript.take()
                == (row.ends ? ["cancel"] : ["after 5.0 seconds", "start"])
        )
    }

    @Test("The port is known when the listener is made, or the reason why there is none")
    func starting() throws {
        let good = ScriptedListener(atStart: .ready(port: 1_883))
        let listener = try NetworkListener(good) { _ in }
        #expect(listener.port == 1_883)
        listener.close()
        listener.close()
        #expect(good.transcript.take() == ["cancel"])
        let taken = ScriptedListener(atStart: .failed(.system(errorNumber: 48, call: "bind")))
        #expect(throws: LinkError.system(errorNumber: 48, call: "bind")) {
            _ = try NetworkListener(taken) { _ in }
        }
        #expect(taken.transcript.take() == ["cancel"])
        let silent = ScriptedListener()
        #expect(throws: LinkError.timedOut) { _ = try NetworkListener(silent) { _ in } }
        #expect(silent.transcript.take() == ["cancel"])
    }

    @Test("A connection is handed over when it is ready; another is given up")
    func accepting() throws {
        let system = ScriptedListener(atStart: .ready(port: 1_883))
        let accepted = AcceptedStreams()
        let listener = try NetworkListener(system) { accepted.add($0) }
        let (good, bad, slow) = (ScriptedConnection(), ScriptedConnection(), ScriptedConnection())
        for connection in [good, bad, slow] {
            system.accept(connection)
            connection.run()
            #expect(connection.transcript.take() == ["after 5.0 seconds", "start"])
        }
        good.report(.ready)
        bad.report(.failed(.reset))
        #expect(accepted.all.count == 1)
        #expect(good.transcript.take() == [])
        #expect(bad.transcript.take() == ["cancel"])
        for connection in [good, bad, slow] { connection.elapse() }
        #expect(good.transcript.take() == [])
        #expect(bad.transcript.take() == [])
        #expect(slow.transcript.take() == ["cancel"])

        listener.close()
        let late = ScriptedConnection()
        system.accept(late)
        late.run()
        #expect(late.transcript.take() == ["cancel"])
        // Accepted connections stay open.
        #expect(good.transcript.take() == [])
    }
}
