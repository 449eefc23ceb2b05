import Testing
import Waybill
import WaybillSession
import WireCore

/// Every event in every state of ``ConnectionMachine``.
///
/// Each state is reached by events. Waits are as long as the policy allows, since the dice show their largest number.
@Suite("The machine of connections") struct ConnectionMachineTests {
    final class Line: Sendable {}

    typealias Machine = ConnectionMachine<Line>
    typealias Step = ConnectionStep<Line>

    private static let line = Line()
    private static let lost = WaybillError(.connectionLost, "lost")
    private static let fatal = WaybillError(.unauthorized, "refused")
    private static let now = WireInstant.zero.advanced(by: .seconds(100))

    private static func dice() -> UInt64 { .max }

    /// The states, and the events that lead there.
    enum Case: String, CaseIterable {
        case ready, pausedIdle, left, connecting, pausing, wanted, reconnecting, pausingAgain, early
        case connected, waiting, waitingForNothing, paused, closing, closingInVain, disconnecting
        case stopping, stoppingFirst, concluding, concludingPaused, concludingLeft, shutDown

        func machine() throws -> Machine {
            var policy = ReconnectionPolicy()
            policy.initialDelay = .seconds(4)
            var machine = Machine(policy)
            switch self {
            case .ready: break
            case .pausedIdle: _ = machine.pause()
            case .left: _ = try machine.disconnect()
            case .connecting: _ = try machine.connect()
            case .pausing:
                _ = try machine.connect()
                _ = machine.pause()
            case .wanted:
                _ = try machine.connect()
                _ = machine.subscribe()
            case .early:
                _ = try machine.connect()
                _ = machine.ended(line, of: 1, lost, hasProgress: false, at: now, random: dice)
            case .connected:
                _ = try machine.connect()
                _ = machine.accepted(line, by: 1, at: now, random: dice)
            case .waiting:
                machine = try Case.connected.machine()
                _ = machine.ended(line, of: 1, lost, hasProgress: false, at: now, random: dice)
            case .waitingForNothing:
                machine = try Case.waiting.machine()
                _ = machine.retryNow()
            case .reconnecting:
                machine = try Case.waitingForNothing.machine()
                _ = machine.turn(of: 2, at: now)
            case .pausingAgain:
                machine = try Case.reconnecting.machine()
                _ = machine.pause()
            case .paused:
                machine = try Case.waiting.machine()
                _ = machine.pause()
            case .closing:
                machine = try Case.connected.machine()
                _ = machine.pause()
            case .closingInVain:
                machine = try Case.closing.machine()
                _ = machine.resume()
            case .disconnecting:
                machine = try Case.connected.machine()
                _ = try machine.disconnect()
            case .stopping:
                machine = try Case.reconnecting.machine()
                _ = try machine.disconnect()
            case .stoppingFirst:
                _ = try machine.connect()
                _ = try machine.disconnect()
            case .concluding:
                machine = try Case.connected.machine()
                _ = machine.ended(line, of: 1, nil, hasProgress: false, at: now, random: dice)
            case .concludingPaused:
                machine = try Case.concluding.machine()
                _ = machine.pause()
            case .concludingLeft:
                machine = try Case.concluding.machine()
                _ = try machine.disconnect()
            case .shutDown: _ = machine.shutDown()
            }
            return machine
        }
    }

    /// The events.
    enum Event: String, CaseIterable {
        case connect, request, requestOnly, subscribe, turn, turnLater, turnOfOther, opened,
            accepted
        case acceptedOfOther, failed, failedForGood, cancelled, failedOfOther, lost, closed,
            lostOther
        case disconnect, shutDown, pause, resume, retryNow, concluded

        /// What follows where the event is not awaited: nothing but an answer to the series that asks.
        var effectElsewhere: String {
            switch self {
            case .accepted, .acceptedOfOther: "over"
            case .failed, .failedOfOther: "fail (lost)"
            case .failedForGood: "fail (refused)"
            case .cancelled: "fail (the attempt to connect was cancelled)"
            default: "nothing"
            }
        }

        /// Tells a machine of it, and what follows in words.
        func told(to machine: inout Machine) -> String {
            let series = machine.state.attempt?.series ?? 1
            let now = ConnectionMachineTests.now
            let line = ConnectionMachineTests.line
            let lost = ConnectionMachineTests.lost
            func failed(_ series: UInt64, _ cause: WaybillError?) -> Step {
                machine.failed(series, cause, at: now, random: dice)
            }
            func accepted(_ series: UInt64) -> String {
                machine.accepted(line, by: series, at: now, random: dice).map(words) ?? "over"
            }
            func turn(_ series: UInt64, _ time: WireInstant) -> String {
                words(machine.turn(of: series, at: time))
            }
            do {
                switch self {
                case .connect: return words(try machine.connect())
                case .request: return words(try machine.request(connects: true))
                case .requestOnly: return words(try machine.request(connects: false))
                case .subscribe: return words(machine.subscribe())
                case .turn: return turn(series, now)
                case .turnLater: return turn(series, now.advanced(by: .seconds(60)))
                case .turnOfOther: return turn(99, now.advanced(by: .seconds(60)))
                case .opened:
                    machine.opened(by: series)
                    return "nothing"
                case .accepted: return accepted(series)
                case .acceptedOfOther: return accepted(99)
                case .failed: return words(failed(series, lost))
                case .failedForGood: return words(failed(series, fatal))
                case .cancelled: return words(failed(series, nil))
                case .failedOfOther: return words(failed(99, lost))
                case .lost:
                    return words(
                        machine.ended(
                            line,
                            of: series,
                            lost,
                            hasProgress: false,
                            at: now,
                            random: dice
                        )
                    )
                case .closed:
                    return words(
                        machine.ended(
                            line,
                            of: series,
                            nil,
                            hasProgress: false,
                            at: now,
                            random: dice
                        )
                    )
                case .lostOther:
                    return words(
                        machine.ended(
                            Line(),
                            of: 99,
                            lost,
                            hasProgress: false,
                            at: now,
                            random: dice
                        )
                    )
                case .disconnect: return words(try machine.disconnect())
                case .shutDown: return words(machine.shutDown())
                case .pause: return words(machine.pause())
                case .resume: return words(machine.resume())
                case .retryNow: return words(machine.retryNow())
                case .concluded:
                    machine.concluded()
                    return "nothing"
                }
            } catch {
                return "throws \(error.code.name)"
            }
        }
    }

    @Test func everyEventInEveryState() throws {
        var table: [String] = []
        for start in Case.allCases {
            table.append("\(start.rawValue): \(Self.words(try start.machine()))")
            for event in Event.allCases {
                var machine = try start.machine()
                let before = Self.words(machine)
                let effect = event.told(to: &machine)
                let after = Self.words(machine)
                // What the table leaves out: an event that changes nothing and that nothing follows from.
                guard effect != event.effectElsewhere || after != before else { continue }
                table.append(
                    "  \(event.rawValue): \(effect)" + (after == before ? "" : " -> \(after)")
                )
            }
        }
        let expected = Self.table.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(table.count == expected.count)
        for (found, line) in zip(table, expected) { #expect(found == line) }
    }
}

// MARK: In words

extension ConnectionMachineTests {
    static func words(_ machine: Machine) -> String {
        switch machine.state {
        case .idle(let intent): "idle \(intent)"
        case .connecting(let attempt, let intent): "connecting \(words(attempt)) then \(intent)"
        case .connected: "connected"
        case .waiting(let attempt, let time):
            "waiting \(words(attempt)) until "
                + (time.map { "\(WireInstant.zero.duration(to: $0).components.seconds) s" } ?? "now")
        case .paused(let attempt): "paused \(words(attempt))"
        case .closing(_, let intent): "closing then \(intent)"
        case .stopping(let attempt): "stopping \(words(attempt))"
        case .concluding(let intent): "concluding \(intent)"
        case .shutDown: "shut down"
        }
    }

    static func words(_ attempt: ConnectionAttempt) -> String {
        "\(attempt.origin) \(attempt.series).\(attempt.number)"
            + (attempt.isWantedBySubscription ? " wanted" : "")
            + (attempt.earlyEnd == nil ? "" : " ended")
    }

    static func words(_ step: Step) -> String {
        let changes = step.changes.map { change in
            switch change {
            case .connecting(let attempt): "connecting \(attempt)"
            case .connected: "connected"
            case .waiting(let delay, let attempt, let cause):
                "waiting \(delay.map { "\($0.components.seconds) s " } ?? "")for \(attempt) (\(cause.message))"
            case .ended(let cause): "ended" + words(cause)
            case .disconnected(let cause): "disconnected" + words(cause)
            }
        }
        let action: [String] =
            switch step.action {
            case .none: []
            case .conclude(let cause, let isForGood):
                ["conclude" + words(cause) + (isForGood ? " for good" : "")]
            case .use: ["use"]
            case .join(let isLimited): ["join" + (isLimited ? " for a time" : "")]
            case .postpone: ["postpone"]
            case .begin: ["begin"]
            case .open(let number): ["open \(number)"]
            case .wait(let time): ["wait" + (time == nil ? " to be woken" : "")]
            case .wake: ["wake"]
            case .close: ["close"]
            case .stop: ["stop"]
            }
        let failure = step.failure.map { ["fail (\($0.message))"] } ?? []
        let all = changes + action + failure
        return all.isEmpty ? "nothing" : all.joined(separator: ", ")
    }

    private static func words(_ cause: WaybillError?) -> String {
        cause.map { " (\($0.message))" } ?? ""
    }
}

extension ConnectionMachineTests {
    static let table = """
        ready: idle ready
          connect: connecting 1, begin -> connecting demand 1.1 then ready
          request: connecting 1, begin -> connecting demand 1.1 then ready
          requestOnly: throws notConnected
          subscribe: begin -> waiting subscription 1.0 until now
          disconnect: nothing -> idle disconnected
          shutDown: conclude for good -> shut down
          pause: nothing -> idle paused
        pausedIdle: idle paused
          connect: connecting 1, begin -> connecting demand 1.1 then ready
          request: connecting 1, begin -> connecting demand 1.1 then ready
          requestOnly: throws notConnected
          subscribe: begin -> paused subscription 1.0
          disconnect: nothing -> idle disconnected
          shutDown: conclude for good -> shut down
          resume: nothing -> idle ready
        left: idle disconnected
          connect: connecting 1, begin -> connecting demand 1.1 then ready
          request: throws notConnected
          requestOnly: throws notConnected
          shutDown: conclude for good -> shut down
        connecting: connecting demand 1.1 then ready
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted then ready
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          lost: nothing -> connecting demand 1.1 ended then ready
          closed: nothing -> connecting demand 1.1 ended then ready
          disconnect: stop -> stopping demand 1.1
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 then paused
        pausing: connecting demand 1.1 then paused
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted then paused
          turn: open 1
          turnLater: open 1
          accepted: connected, close -> closing then paused
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding paused
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding paused
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding paused
          lost: nothing -> connecting demand 1.1 ended then paused
          closed: nothing -> connecting demand 1.1 ended then paused
          disconnect: stop -> stopping demand 1.1
          shutDown: disconnected, stop -> shut down
          resume: nothing -> connecting demand 1.1 then ready
        wanted: connecting demand 1.1 wanted then ready
          connect: throws rejected
          request: join
          requestOnly: join
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: waiting 1 s for 1 (lost), begin, fail (lost) -> waiting subscription 2.0 until 101 s
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: waiting 0 s for 1 (the attempt to connect was cancelled), begin, fail (the attempt to connect was cancelled) -> waiting subscription 2.0 until 100 s
          lost: nothing -> connecting demand 1.1 wanted ended then ready
          closed: nothing -> connecting demand 1.1 wanted ended then ready
          disconnect: stop -> stopping demand 1.1 wanted
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 wanted then paused
        reconnecting: connecting loss 2.1 then ready
          connect: join for a time
          request: join for a time
          requestOnly: join for a time
          subscribe: nothing -> connecting loss 2.1 wanted then ready
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: waiting 7 s for 2 (lost) -> waiting loss 2.1 until 107 s
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          lost: nothing -> connecting loss 2.1 ended then ready
          closed: nothing -> connecting loss 2.1 ended then ready
          disconnect: stop -> stopping loss 2.1
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting loss 2.1 then paused
        pausingAgain: connecting loss 2.1 then paused
          connect: join for a time -> connecting loss 2.1 then ready
          request: join for a time
          requestOnly: join for a time
          subscribe: nothing -> connecting loss 2.1 wanted then paused
          turn: open 1
          turnLater: open 1
          accepted: connected, close -> closing then paused
          failed: waiting for 2 (lost) -> paused loss 2.1
          failedForGood: waiting for 2 (refused) -> paused loss 2.1
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding paused
          lost: nothing -> connecting loss 2.1 ended then paused
          closed: nothing -> connecting loss 2.1 ended then paused
          disconnect: stop -> stopping loss 2.1
          shutDown: disconnected, stop -> shut down
          resume: nothing -> connecting loss 2.1 then ready
        early: connecting demand 1.1 ended then ready
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted ended then ready
          turn: open 1
          turnLater: open 1
          opened: nothing -> connecting demand 1.1 then ready
          accepted: connected, ended (lost), waiting 1 s for 1 (lost), begin -> waiting loss 2.0 until 101 s
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping demand 1.1 ended
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 ended then paused
        connected: connected
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), waiting 1 s for 1 (lost), begin -> waiting loss 2.0 until 101 s
          closed: ended, disconnected, conclude -> concluding ready
          disconnect: close -> closing then disconnected
          shutDown: disconnected, ended, close -> shut down
          pause: close -> closing then paused
        waiting: waiting loss 2.0 until 101 s
          connect: wake -> waiting loss 2.0 until now
          request: join for a time
          requestOnly: join for a time
          turn: wait
          turnLater: connecting 1, open 1 -> connecting loss 2.1 then ready
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping loss 2.0
          shutDown: disconnected, stop -> shut down
          pause: nothing -> paused loss 2.0
          resume: wake -> waiting loss 2.0 until now
          retryNow: wake -> waiting loss 2.0 until now
        waitingForNothing: waiting loss 2.0 until now
          connect: wake
          request: join for a time
          requestOnly: join for a time
          turn: connecting 1, open 1 -> connecting loss 2.1 then ready
          turnLater: connecting 1, open 1 -> connecting loss 2.1 then ready
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping loss 2.0
          shutDown: disconnected, stop -> shut down
          pause: nothing -> paused loss 2.0
          resume: wake
          retryNow: wake
        paused: paused loss 2.0
          connect: wake -> waiting loss 2.0 until now
          request: join for a time
          requestOnly: join for a time
          turn: wait to be woken
          turnLater: wait to be woken
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping loss 2.0
          shutDown: disconnected, stop -> shut down
          resume: wake -> waiting loss 2.0 until now
        closing: closing then paused
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), waiting for 1 (lost), begin -> paused loss 2.0
          closed: ended, waiting for 1 (the connection is paused), begin -> paused loss 2.0
          disconnect: close -> closing then disconnected
          shutDown: disconnected, ended, close -> shut down
          pause: close
          resume: nothing -> closing then ready
        closingInVain: closing then ready
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), waiting 1 s for 1 (lost), begin -> waiting loss 2.0 until 101 s
          closed: ended, waiting 0 s for 1 (the connection is paused), begin -> waiting loss 2.0 until 100 s
          disconnect: close -> closing then disconnected
          shutDown: disconnected, ended, close -> shut down
          pause: close -> closing then paused
        disconnecting: closing then disconnected
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), disconnected, conclude -> concluding disconnected
          closed: ended, disconnected, conclude -> concluding disconnected
          disconnect: close
          shutDown: disconnected, ended, close -> shut down
        stopping: stopping loss 2.1
          connect: postpone
          request: join for a time
          requestOnly: join for a time
          failed: disconnected, conclude, fail (lost) -> concluding disconnected
          failedForGood: disconnected, conclude, fail (refused) -> concluding disconnected
          cancelled: disconnected, conclude, fail (disconnected while connecting) -> concluding disconnected
          disconnect: stop
          shutDown: disconnected, stop -> shut down
        stoppingFirst: stopping demand 1.1
          connect: postpone
          request: join
          requestOnly: join
          failed: disconnected, conclude, fail (lost) -> concluding disconnected
          failedForGood: disconnected, conclude, fail (refused) -> concluding disconnected
          cancelled: disconnected, conclude, fail (disconnected while connecting) -> concluding disconnected
          disconnect: stop
          shutDown: disconnected, stop -> shut down
        concluding: concluding ready
          connect: postpone
          request: postpone
          requestOnly: throws notConnected
          subscribe: postpone
          disconnect: nothing -> concluding disconnected
          shutDown: conclude for good -> shut down
          pause: nothing -> concluding paused
          concluded: nothing -> idle ready
        concludingPaused: concluding paused
          connect: postpone
          request: postpone
          requestOnly: throws notConnected
          subscribe: postpone
          disconnect: nothing -> concluding disconnected
          shutDown: conclude for good -> shut down
          resume: nothing -> concluding ready
          concluded: nothing -> idle paused
        concludingLeft: concluding disconnected
          connect: postpone
          request: throws notConnected
          requestOnly: throws notConnected
          subscribe: postpone
          shutDown: conclude for good -> shut down
          concluded: nothing -> idle disconnected
        shutDown: shut down
          connect: throws shutDown
          request: throws shutDown
          requestOnly: throws shutDown
          cancelled: fail (the transport was shut down)
          lost: conclude for good
          closed: conclude for good
          lostOther: conclude for good
          disconnect: throws shutDown
        """
}
