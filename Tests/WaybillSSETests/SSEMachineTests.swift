import Testing
import Waybill
import WaybillSSE
import WireCore

/// The life of a stream, with literals: every state with every event, and the rules of its waits.
@Suite("Event stream machine") struct SSEMachineTests {
    private typealias Machine = SSEMachine

    private static let start = WireInstant(nanoseconds: 0)
    private static let lost = SSEOutcome(error: WaybillError(.connectionLost, "lost"))
    private static let refused = SSEOutcome(error: WaybillError(.rejected, "no"), isFinal: true)
    private static let noContent = SSEOutcome(status: 204, error: nil, isFinal: true)

    /// A machine whose dice always give a second.
    private static func machine(
        timeLimit: Duration? = nil,
        isPaused: Bool = false,
        _ change: (inout ReconnectionPolicy) -> Void = { _ in }
    ) -> Machine {
        var policy = ReconnectionPolicy()
        change(&policy)
        return Machine(policy, isPaused: isPaused, timeLimit: timeLimit)
    }

    private static func end(
        _ machine: inout Machine,
        _ outcome: SSEOutcome,
        at seconds: Double = 0
    ) -> Machine.Step {
        let now = start.advanced(by: .seconds(seconds))
        return machine.attemptEnded(outcome, at: now) { 1_000_000_000 }
    }

    @Test("A fault of TLS is final before the first opening only, unless an interceptor says so")
    func secured() {
        let failure = WaybillError(.tls, "unknown", underlying: TLSFailure(.unknownAuthority))
        let fault = SSEOutcome(error: failure, isFinal: true)
        var first = Self.machine()
        _ = first.next(at: Self.start)
        #expect(Self.word(Self.end(&first, fault)).hasPrefix("finish unknown"))
        var machine = Self.machine()
        _ = machine.next(at: Self.start)
        _ = machine.connected()
        _ = machine.opened(at: Self.start)
        _ = Self.end(&machine, Self.lost)
        _ = machine.retryNow()
        #expect(Self.word(Self.end(&machine, fault)).hasPrefix("wait 1.0 unknown"))
        _ = machine.retryNow()
        let own = SSEOutcome(error: failure, isFinal: true, isOwn: true)
        #expect(Self.word(Self.end(&machine, own)).hasPrefix("finish unknown"))
    }

    // MARK: In words

    private static func word(_ instant: WireInstant) -> String {
        "\(start.duration(to: instant) / .seconds(1))"
    }

    private static func word(_ ending: Machine.Ending) -> String {
        "\(ending.error?.message ?? "fine")/\(ending.opening.message)"
    }

    private static func word(_ state: Machine.State) -> String {
        switch state {
        case .idle(let isPaused): isPaused ? "idle paused" : "idle"
        case .connecting(let attempt): "connecting \(attempt)"
        case .pausing(let attempt): "pausing \(attempt)"
        case .requesting(let attempt, let isHeld): "requesting \(attempt)\(isHeld ? " held" : "")"
        case .open(let hasEvents): hasEvents ? "open with events" : "open"
        case .ending(let attempt, let wasOpen, let sequel):
            "ending \(attempt)\(wasOpen ? " open" : "") \(sequel)"
        case .waiting(let wait): "waiting \(word(wait.until)) \(wait.attempt)"
        case .paused(let attempt, let until):
            "paused \(attempt)\(until.map { " \(word($0))" } ?? "")"
        case .closing(let ending): "closing \(word(ending))"
        case .closed(let ending): "closed \(word(ending))"
        }
    }

    private static func word(_ step: Machine.Step) -> String {
        switch step {
        case .attempt(let number, let wasPaused): "attempt \(number)\(wasPaused ? " paused" : "")"
        case .wait(let wait): "wait \(wait.delay / .seconds(1)) \(wait.cause.message)"
        case .pause(let until): "pause\(until.map { " \(word($0))" } ?? "")"
        case .finish(let ending): "finish \(word(ending))"
        }
    }

    // MARK: The table

    private enum Event: String, CaseIterable {
        case next, lost, refused, noContent, connected, held, opened, received, disconnected
        case pause, resume, retryNow, restart, close, deadline

        /// Tells a machine of the event, and gives its answer in words.
        func apply(to machine: inout Machine) -> String {
            switch self {
            case .next: return word(machine.next(at: start))
            case .lost: return word(end(&machine, SSEMachineTests.lost))
            case .refused: return word(end(&machine, SSEMachineTests.refused))
            case .noContent: return word(end(&machine, SSEMachineTests.noContent))
            case .connected: return machine.connected() ? "request" : "closeConnection"
            case .held: machine.held()
            case .opened: return machine.opened(at: start) ? "announce" : "none"
            case .received: machine.received(hasEvents: true, serverTime: nil)
            case .disconnected:
                let (wasOpen, wasHeld) = machine.disconnected()
                return wasOpen ? "open" : wasHeld ? "held" : "none"
            case .pause: return "\(machine.pause())"
            case .resume: return "\(machine.resume())"
            case .retryNow: return "\(machine.retryNow())"
            case .restart: return "\(machine.restart())"
            case .close:
                return "\(machine.close(.init(nil, opening: WaybillError(.shutDown, "bye"))))"
            case .deadline: return "\(machine.deadline(at: start.advanced(by: .seconds(10))))"
            }
            return "none"
        }
    }

    private static let table = """
        idle
            next → connecting 1: attempt 1
            lost → connecting 1: attempt 1
            refused → connecting 1: attempt 1
            noContent → connecting 1: attempt 1
            connected: closeConnection
            pause → idle paused
            close → closing fine/bye
        idle paused
            next → paused 1: pause
            lost → paused 1: pause
            refused → paused 1: pause
            noContent → paused 1: pause
            connected: closeConnection
            resume → idle
            close → closing fine/bye
        connecting 2
            next: attempt 2
            lost → waiting 1.0 3: wait 1.0 lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected → requesting 2: request
            pause → pausing 2
            close → closing fine/bye: cancel
        pausing 2
            next: attempt 2
            lost → paused 2: pause
            refused → paused 2: pause
            noContent → paused 2: pause
            connected → ending 2 pause: closeConnection
            resume → connecting 2
            close → closing fine/bye: cancel
        requesting 2
            next: attempt 2
            lost → waiting 1.0 3: wait 1.0 lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            held → requesting 2 held
            opened → open: announce
            disconnected → connecting 2
            pause → ending 2 pause: closeConnection
            restart → ending 2 restart: closeConnection
            close → closing fine/bye: cancel
        requesting 2 held
            next: attempt 2
            lost → waiting 1.0 3: wait 1.0 lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            opened → open: announce
            disconnected → connecting 2: held
            pause → ending 2 pause: closeConnection
            restart → ending 2 restart: closeConnection
            close → closing fine/bye: cancel
        ending 2 pause
            next: attempt 2
            lost → paused 2: pause
            refused → paused 2: pause
            noContent → paused 2: pause
            connected: closeConnection
            opened → ending 1 open pause: announce
            resume → ending 2 resume
            close → closing fine/bye: cancel
        ending 2 resume
            next: attempt 2
            lost → connecting 2: attempt 2 paused
            refused → connecting 2: attempt 2 paused
            noContent → connecting 2: attempt 2 paused
            connected: closeConnection
            opened → ending 1 open resume: announce
            pause → ending 2 pause
            restart → ending 2 restart
            close → closing fine/bye: cancel
        ending 2 restart
            next: attempt 2
            lost → connecting 2: attempt 2
            refused → connecting 2: attempt 2
            noContent → connecting 2: attempt 2
            connected: closeConnection
            opened → ending 1 open restart: announce
            pause → ending 2 pause
            close → closing fine/bye: cancel
        open
            next: attempt 1
            lost → waiting 1.0 1: wait 1.0 lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            received → open with events
            disconnected: open
            pause → ending 1 open pause: closeConnection
            restart → ending 1 open restart: closeConnection
            close → closing fine/bye: cancel
        open with events
            next: attempt 1
            lost → waiting 1.0 1: wait 1.0 lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            disconnected: open
            pause → ending 1 open pause: closeConnection
            restart → ending 1 open restart: closeConnection
            close → closing fine/bye: cancel
        ending 1 open pause
            next: attempt 1
            lost → paused 1: pause
            refused → paused 1: pause
            noContent → paused 1: pause
            connected: closeConnection
            disconnected: open
            resume → ending 1 open resume
            close → closing fine/bye: cancel
        ending 1 open resume
            next: attempt 1
            lost → connecting 1: attempt 1 paused
            refused → connecting 1: attempt 1 paused
            noContent → connecting 1: attempt 1 paused
            connected: closeConnection
            disconnected: open
            pause → ending 1 open pause
            restart → ending 1 open restart
            close → closing fine/bye: cancel
        ending 1 open restart
            next: attempt 1
            lost → connecting 1: attempt 1
            refused → connecting 1: attempt 1
            noContent → connecting 1: attempt 1
            connected: closeConnection
            disconnected: open
            pause → ending 1 open pause
            close → closing fine/bye: cancel
        waiting 1.0 3
            next: wait 1.0 lost
            lost: wait 1.0 lost
            refused: wait 1.0 lost
            noContent: wait 1.0 lost
            connected: closeConnection
            pause → paused 3: wake
            resume → connecting 3: wake
            retryNow → connecting 3: wake
            restart → connecting 3: wake
            close → closed fine/bye: wake
            deadline → connecting 3: wake
        paused 3
            next: pause
            lost: pause
            refused: pause
            noContent: pause
            connected: closeConnection
            resume → connecting 3: wake
            close → closed fine/bye: wake
        closing fine/bye
            next → closed fine/bye: finish fine/bye
            lost → closed fine/bye: finish fine/bye
            refused → closed fine/bye: finish fine/bye
            noContent → closed fine/bye: finish fine/bye
            connected: closeConnection
        closed no/no
            next: finish no/no
            lost: finish no/no
            refused: finish no/no
            noContent: finish no/no
            connected: closeConnection
        """

    /// As ``table``, of a stream that a call waits for, for 10 s at most. The last three rows are those of a stream that has
    /// been open: the call waits no longer.
    private static let awaitedTable = """
        idle
            next → connecting 1: attempt 1
            lost → connecting 1: attempt 1
            refused → connecting 1: attempt 1
            noContent → connecting 1: attempt 1
            connected: closeConnection
            pause → idle paused
            close → closing fine/bye
        idle paused
            next → paused 1 10.0: pause 10.0
            lost → paused 1 10.0: pause 10.0
            refused → paused 1 10.0: pause 10.0
            noContent → paused 1 10.0: pause 10.0
            connected: closeConnection
            resume → idle
            close → closing fine/bye
        connecting 1
            next: attempt 1
            lost → closed lost/lost: finish lost/lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected → requesting 1: request
            pause → pausing 1
            close → closing fine/bye: cancel
        pausing 1
            next: attempt 1
            lost → paused 1 10.0: pause 10.0
            refused → paused 1 10.0: pause 10.0
            noContent → paused 1 10.0: pause 10.0
            connected → ending 1 pause: closeConnection
            resume → connecting 1
            close → closing fine/bye: cancel
        requesting 1
            next: attempt 1
            lost → closed lost/lost: finish lost/lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            held → requesting 1 held
            opened → open: announce
            disconnected → connecting 1
            pause → ending 1 pause: closeConnection
            restart → ending 1 restart: closeConnection
            close → closing fine/bye: cancel
        requesting 1 held
            next: attempt 1
            lost → closed lost/lost: finish lost/lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            opened → open: announce
            disconnected → connecting 1: held
            pause → ending 1 pause: closeConnection
            restart → ending 1 restart: closeConnection
            close → closing fine/bye: cancel
        ending 1 pause
            next: attempt 1
            lost → paused 1 10.0: pause 10.0
            refused → paused 1 10.0: pause 10.0
            noContent → paused 1 10.0: pause 10.0
            connected: closeConnection
            opened → ending 1 open pause: announce
            resume → ending 1 resume
            close → closing fine/bye: cancel
        ending 1 resume
            next: attempt 1
            lost → connecting 1: attempt 1 paused
            refused → connecting 1: attempt 1 paused
            noContent → connecting 1: attempt 1 paused
            connected: closeConnection
            opened → ending 1 open resume: announce
            pause → ending 1 pause
            restart → ending 1 restart
            close → closing fine/bye: cancel
        ending 1 restart
            next: attempt 1
            lost → connecting 1: attempt 1
            refused → connecting 1: attempt 1
            noContent → connecting 1: attempt 1
            connected: closeConnection
            opened → ending 1 open restart: announce
            pause → ending 1 pause
            close → closing fine/bye: cancel
        paused 1 10.0
            next: pause 10.0
            lost: pause 10.0
            refused: pause 10.0
            noContent: pause 10.0
            connected: closeConnection
            resume → connecting 1: wake
            close → closed fine/bye: wake
            deadline → closed the connection is paused/the connection is paused: wake
        connecting 1
            next: attempt 1
            lost → closed lost/lost: finish lost/lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected → requesting 1: request
            pause → pausing 1
            close → closing fine/bye: cancel
        closed the connection is paused/the connection is paused
            next: finish the connection is paused/the connection is paused
            lost: finish the connection is paused/the connection is paused
            refused: finish the connection is paused/the connection is paused
            noContent: finish the connection is paused/the connection is paused
            connected: closeConnection
        closed fine/the server has no stream
            next: finish fine/the server has no stream
            lost: finish fine/the server has no stream
            refused: finish fine/the server has no stream
            noContent: finish fine/the server has no stream
            connected: closeConnection
        open
            next: attempt 1
            lost → waiting 1.0 1: wait 1.0 lost
            refused → closed no/no: finish no/no
            noContent → closed fine/the server has no stream: finish fine/the server has no stream
            connected: closeConnection
            received → open with events
            disconnected: open
            pause → ending 1 open pause: closeConnection
            restart → ending 1 open restart: closeConnection
            close → closing fine/bye: cancel
        ending 1 open pause
            next: attempt 1
            lost → paused 1: pause
            refused → paused 1: pause
            noContent → paused 1: pause
            connected: closeConnection
            disconnected: open
            resume → ending 1 open resume
            close → closing fine/bye: cancel
        waiting 1.0 1
            next: wait 1.0 lost
            lost: wait 1.0 lost
            refused: wait 1.0 lost
            noContent: wait 1.0 lost
            connected: closeConnection
            pause → paused 1: wake
            resume → connecting 1: wake
            retryNow → connecting 1: wake
            restart → connecting 1: wake
            close → closed fine/bye: wake
            deadline → connecting 1: wake
        """

    /// The events that lead to a second attempt, of a stream that no call waits for.
    private static let second: [Event] = [.next, .lost, .retryNow]

    /// The events that lead to each state.
    private static let paths: [[Event]] =
        [[], [.pause]]
        + [
            [], [.pause], [.connected], [.connected, .held], [.connected, .pause],
            [.connected, .pause, .resume], [.connected, .restart], [.connected, .opened],
            [.connected, .opened, .received], [.connected, .opened, .pause],
            [.connected, .opened, .pause, .resume], [.connected, .opened, .restart], [.lost],
            [.lost, .pause], [.close], [.refused],
        ].map { second + $0 }

    /// The events that lead to each state before the first opening, and to some after it.
    private static let awaitedPaths: [[Event]] = [
        [], [.pause], [.next], [.next, .pause], [.next, .connected], [.next, .connected, .held],
        [.next, .connected, .pause], [.next, .connected, .pause, .resume],
        [.next, .connected, .restart], [.pause, .next], [.pause, .next, .resume],
        [.pause, .next, .deadline], [.next, .noContent], [.next, .connected, .opened],
        [.next, .connected, .pause, .opened], [.next, .connected, .opened, .lost],
    ]

    /// What each event does to a machine at the ends of paths; events that do nothing are left out.
    private static func rows(_ paths: [[Event]], from start: Machine) -> [String] {
        paths.flatMap { path in
            var machine = start
            for event in path { _ = event.apply(to: &machine) }
            let before = word(machine.state)
            let cells = Event.allCases.compactMap { event -> String? in
                var copy = machine
                let answer = event.apply(to: &copy)
                let after = word(copy.state)
                guard after != before || answer != "none" else { return nil }
                let change = after == before ? "" : " → \(after)"
                return "    \(event.rawValue)\(change)" + (answer == "none" ? "" : ": \(answer)")
            }
            return [before] + cells
        }
    }

    @Test("Every state with every event; what is not named does nothing")
    func table() {
        let lines = Self.rows(Self.paths, from: Self.machine())
        #expect(lines == Self.table.split(separator: "\n").map(String.init))
    }

    @Test("Every state with every event, of a stream that a call waits for")
    func awaitedTable() {
        let lines = Self.rows(Self.awaitedPaths, from: Self.machine(timeLimit: .seconds(10)))
        #expect(lines == Self.awaitedTable.split(separator: "\n").map(String.init))
    }

    // MARK: Waits

    /// Opens a stream and ends it.
    private static func wait(
        _ machine: inout Machine,
        hasEvents: Bool,
        serverTime: Duration? = nil,
        at seconds: Double = 0
    ) -> String {
        _ = machine.next(at: start)
        _ = machine.connected()
        _ = machine.opened(at: start)
        machine.received(hasEvents: hasEvents, serverTime: serverTime)
        let step = end(&machine, lost, at: seconds)
        _ = machine.retryNow()
        return word(step)
    }

    @Test("The wait after a stream: the dice, and at least 100 ms when there was no event")
    func leastWait() {
        for (hasEvents, word) in [(true, "wait 0.0 lost"), (false, "wait 0.1 lost")] {
            var machine = Self.machine { $0.initialDelay = .zero }
            #expect(Self.wait(&machine, hasEvents: hasEvents) == word)
        }
    }

    @Test("The server may ask for longer waits, up to the policy's limit")
    func serverTimes() {
        var machine = Self.machine { $0.maximumServerDelay = .seconds(60) }
        #expect(Self.wait(&machine, hasEvents: true, serverTime: .zero) == "wait 1.0 lost")
        #expect(Self.wait(&machine, hasEvents: true, serverTime: .seconds(5)) == "wait 5.0 lost")
        // The time holds until the server sets another.
        #expect(Self.wait(&machine, hasEvents: true) == "wait 5.0 lost")
        let loss = WaybillError(.connectionLost, "lost")
        let busy = SSEOutcome(error: loss, retryAfter: .seconds(30))
        #expect(Self.word(Self.end(&machine, busy)) == "wait 30.0 lost")
        _ = machine.retryNow()
        #expect(Self.wait(&machine, hasEvents: true, serverTime: .seconds(99)) == "wait 60.0 lost")
    }

    @Test("The attempts that the policy allows begin anew when the stream has brought an event")
    func attempts() {
        var machine = Self.machine { $0.maximumAttempts = 2 }
        for _ in 0..<3 {
            #expect(Self.wait(&machine, hasEvents: true) == "wait 1.0 lost")
            #expect(Self.word(Self.end(&machine, Self.lost)) == "wait 1.0 lost")
            _ = machine.retryNow()
        }
        var silent = Self.machine { $0.maximumAttempts = 2 }
        for _ in 0..<2 { #expect(Self.wait(&silent, hasEvents: false) == "wait 1.0 lost") }
        #expect(Self.wait(&silent, hasEvents: false) == "finish lost/lost")
    }

    // MARK: The first opening

    @Test("A call for the opening gets the first failure, or the time limit of a pause")
    func awaited() {
        var failed = Self.machine(timeLimit: .seconds(10))
        #expect(Self.word(failed.next(at: Self.start)) == "attempt 1")
        #expect(Self.word(Self.end(&failed, Self.lost)) == "finish lost/lost")

        var paused = Self.machine(timeLimit: .seconds(10), isPaused: true)
        #expect(Self.word(paused.next(at: Self.start)) == "pause 10.0")
        #expect("\(paused.deadline(at: Self.start.advanced(by: .seconds(9))))" == "none")
        #expect("\(paused.deadline(at: Self.start.advanced(by: .seconds(10))))" == "wake")
        let message = "the connection is paused"
        #expect(Self.word(paused.next(at: Self.start)) == "finish \(message)/\(message)")

        var opened = Self.machine(timeLimit: .seconds(10))
        #expect(Self.wait(&opened, hasEvents: false) == "wait 1.0 lost")
        _ = opened.pause()
        #expect(Self.word(Self.end(&opened, Self.lost)) == "pause")
    }

    @Test("204 and the end by the app have no error, and fail the call that waits")
    func ends() {
        var told = Self.machine(timeLimit: .seconds(10))
        _ = told.next(at: Self.start)
        let step = Self.end(&told, Self.noContent)
        #expect(Self.word(step) == "finish fine/the server has no stream")
    }
}
