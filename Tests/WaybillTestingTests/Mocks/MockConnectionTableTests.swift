import Testing
import WaybillMock

/// Every state of the mock's connection with every event.
@Suite("Table of the mock's connection") struct MockConnectionTableTests {
    private static let states: [MockConnection] = [
        .idle, .left, .connecting(1), .connected, .away, .returning(1), .shutDown,
    ]

    @Test("A request passes, waits, connects or is refused, by what it needs")
    func admission() {
        typealias Row = [MockConnection.Admission]
        let (lost, left) = (
            MockConnection.Admission.refuse(.noConnection),
            MockConnection.Admission.refuse(.disconnectedByApp)
        )
        let rows: [(MockConnection.Need, Row)] = [
            (.nothing, [.pass, .pass, .pass, .pass, .pass, .pass]),
            (.presence, [.pass, .pass, .pass, .pass, .wait, .wait]),
            (.connection, [.begin, left, .join, .pass, .wait, .wait]),
            (.present, [lost, lost, lost, .pass, lost, lost]),
            (.presentOrNext, [lost, lost, lost, .pass, .wait, .wait]),
        ]
        #expect(Set(rows.map(\.0)) == Set(MockConnection.Need.allCases))
        for (need, row) in rows {
            for (state, expected) in zip(Self.states, row + [.refuse(.shutDown)]) {
                var connection = state
                #expect(connection.admit(need, 2) == expected, "\(state), \(need)")
                #expect(connection == (expected == .begin ? .connecting(2) : state))
            }
        }
    }

    @Test("`connect` begins an attempt, joins the return of a lost connection, or is refused")
    func connect() {
        let rows: [(MockConnection.Admission, MockConnection)] = [
            (.begin, .connecting(2)), (.begin, .connecting(2)),
            (.refuse(.alreadyConnected), .connecting(1)), (.refuse(.alreadyConnected), .connected),
            (.begin, .returning(2)), (.join, .returning(1)), (.refuse(.shutDown), .shutDown),
        ]
        for (state, (admission, next)) in zip(Self.states, rows) {
            var connection = state
            #expect(connection.connect(2) == admission, "\(state)")
            #expect(connection == next, "\(state)")
        }
    }

    @Test("The other events lead from each state to one other")
    func events() {
        let all = [MockConnection](repeating: .shutDown, count: 7)
        let rows: [(String, (inout MockConnection) -> Void, [MockConnection])] = [
            (
                "interrupt", { $0.interrupt() },
                [.away, .away, .away, .away, .away, .returning(1), .shutDown]
            ),
            ("drop", { $0.drop() }, [.idle, .left, .idle, .idle, .idle, .idle, .shutDown]),
            ("leave", { $0.leave() }, [.left, .left, .left, .connected, .left, .left, .shutDown]),
            ("noteLeft", { $0.noteLeft() }, [.left, .left, .left, .left, .left, .left, .shutDown]),
            ("shutDown", { $0.shutDown() }, all),
            (
                "restore", { #expect($0.restore(2) == ($0 == .returning(2))) },
                [.idle, .left, .connecting(1), .connected, .returning(2), .returning(1), .shutDown]
            ),
        ]
        for (name, event, expected) in rows {
            for (state, next) in zip(Self.states, expected) {
                var connection = state
                event(&connection)
                #expect(connection == next, "\(name) in \(state)")
            }
        }
    }

    @Test("The end of an attempt counts in the states that it belongs to")
    func conclusions() {
        for state in Self.states {
            for attempt: MockConnection.Attempt in [1, 2] {
                for isRetryable in [false, true] {
                    var (succeeded, failed) = (state, state)
                    let success = succeeded.noteSuccess(of: attempt)
                    let failure = failed.noteFailure(of: attempt, isRetryable: isRetryable)
                    switch (state, attempt) {
                    case (.connecting, 1):
                        #expect(success == .connected && succeeded == .connected)
                        #expect(failure == .failed && failed == .idle)
                    case (.returning, 1):
                        #expect(success == .restored && succeeded == .connected)
                        #expect(failure == (isRetryable ? .stillAway : .lost))
                        #expect(failed == (isRetryable ? .away : .idle))
                    default:
                        #expect(success == .stale && succeeded == state)
                        #expect(failure == .stale && failed == state)
                    }
                }
            }
        }
    }
}
