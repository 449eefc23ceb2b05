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
        case dialing, held, heldRequest, heldSubscription
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
            case .dialing:
                _ = try machine.request(connects: true, within: .seconds(10), at: now)
                machine.opening(by: 1)
            case .held:
                machine = try Case.dialing.machine()
                _ = machine.failed(1, lost, at: now, random: dice)
                machine.concluded()
            case .heldRequest:
                machine = try Case.held.machine()
                _ = try machine.request(connects: true, within: .seconds(10), at: now)
            case .heldSubscription:
                machine = try Case.heldRequest.machine()
                _ = machine.subscribe()
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
        case connect, request, requestOnly, subscribe, turn, turnLater, turnOfOther, opening,
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
                case .request:
                    return words(try machine.request(connects: true, within: .seconds(10), at: now))
                case .requestOnly:
                    return words(
                        try machine.request(connects: false, within: .seconds(10), at: now)
                    )
                case .subscribe: return words(machine.subscribe())
                case .turn: return turn(series, now)
                case .turnLater: return turn(series, now.advanced(by: .seconds(60)))
                case .turnOfOther: return turn(99, now.advanced(by: .seconds(60)))
                case .opening:
                    machine.opening(by: series)
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

extension ConnectionMachineTests {
    @Test("A request whose limit is over before the next attempt fails with the error of the last")
    func limits() throws {
        var machine = try Case.held.machine()
        let hold = try #require(machine.hold)
        let left = Self.now.duration(to: hold.until)
        for (limit, isLimited) in [(left, false), (left - .nanoseconds(1), true)] {
            var machine = machine
            let first = try machine.request(connects: true, within: limit, at: Self.now)
            #expect(Self.words(first).contains("begin for a time") == isLimited)
            #expect((first.failure?.code == .connectionLost) == isLimited)
            let second = try machine.request(connects: true, within: limit, at: Self.now)
            #expect(Self.words(second).contains("join for a time") == isLimited)
        }
        // When the time is over, a request connects at once.
        let step = try machine.request(connects: true, within: .zero, at: hold.until)
        #expect(Self.words(step) == "connecting 1, begin")
    }
}

// MARK: In words

extension ConnectionMachineTests {
    static func words(_ machine: Machine) -> String {
        switch machine.state {
        case .idle(let intent):
            "idle \(intent)"
                + (machine.hold.map { " held until \(words($0.until))" } ?? "")
        case .connecting(let attempt, let intent): "connecting \(words(attempt)) then \(intent)"
        case .connected: "connected"
        case .waiting(let attempt, let time):
            "waiting \(words(attempt)) until " + (time.map { words($0) } ?? "now")
        case .paused(let attempt): "paused \(words(attempt))"
        case .closing(_, let intent): "closing then \(intent)"
        case .stopping(let attempt): "stopping \(words(attempt))"
        case .concluding(let intent): "concluding \(intent)"
        case .shutDown: "shut down"
        }
    }

    private static func words(_ time: WireInstant) -> String {
        "\(WireInstant.zero.duration(to: time).components.seconds) s"
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
            case .begin(let isLimited): ["begin" + (isLimited ? " for a time" : "")]
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
