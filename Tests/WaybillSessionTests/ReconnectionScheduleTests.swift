import Testing
import Waybill
import WaybillLink
import WaybillSession
import WireCore

@Suite("When to connect again (design 5.2)") struct ReconnectionScheduleTests {
    private static let lost = WaybillError(.connectionLost, "lost")

    /// The waits in milliseconds after failures that are one second apart; nil when there are no more attempts.
    private func waits(
        _ count: Int,
        random: UInt64 = .max,
        error: WaybillError = lost,
        _ change: (inout ReconnectionPolicy) -> Void = { _ in }
    ) -> [Int?] {
        var policy = ReconnectionPolicy()
        change(&policy)
        var schedule = ReconnectionSchedule(policy)
        return (0..<count).map { index in
            let now = WireInstant.zero.advanced(by: .seconds(index))
            return schedule.delay(after: error, at: now, random: { random }).map {
                Int($0.wireNanoseconds / 1_000_000)
            }
        }
    }

    /// The random number that gives the whole ceiling.
    private func whole(_ seconds: UInt64) -> UInt64 { seconds * 1_000_000_000 }

    @Test("The ceiling is 1 s, doubles with each failure in a row, and ends at 60 s")
    func doubling() {
        for (failure, seconds) in [1, 2, 4, 8, 16, 32, 60, 60, 60].enumerated() {
            let most = waits(failure + 1, random: whole(UInt64(seconds))).last ?? nil
            #expect(most == seconds * 1_000)
            // One nanosecond above the ceiling gives a remainder of zero, which the minimum pause makes 10 ms.
            let over = waits(failure + 1, random: whole(UInt64(seconds)) + 1).last ?? nil
            #expect(over == (failure == 0 ? 0 : 10))
        }
    }

    @Test("The wait is anything between nothing and the ceiling: full jitter")
    func jitter() {
        #expect(waits(1, random: 0) == [0])
        #expect(waits(1, random: 250_000_000) == [250])
        #expect(waits(3, random: 3_999_000_000).last == 3_999)
    }

    @Test(
        "A server that is gone is not asked without a pause, whatever the dice and the policy say"
    )
    func leastPause() {
        #expect(waits(3, random: 0) == [0, 10, 10])
        #expect(waits(3) { $0.initialDelay = .zero } == [0, 10, 10])
    }

    @Test("A server that is busy is left alone for a while, and what is drawn comes on top")
    func busy() {
        var busy = Self.lost
        busy.isServerBusy = true
        #expect(waits(3, random: 250_000_000, error: busy) == [5_250, 5_250, 5_250])
        #expect(waits(1, random: 0, error: busy) { $0.busyDelay = .seconds(60) } == [60_000])
        #expect(waits(1, random: 0, error: busy) { $0.busyDelay = .seconds(-1) } == [0])
        // A server that names a time replaces the default.
        let refusal = HTTPRefusal(
            status: 429,
            reason: "",
            headers: ["Retry-After": "2"],
            body: Payload([])
        )
        let told = WaybillError(.connectionRefused, "busy", underlying: refusal)
        #expect(waits(1, random: 250_000_000, error: told) == [2_000])
    }

    @Test("A server is asked again after ten minutes at the latest, or after what the policy says")
    func longestServerDelay() {
        let refusal = HTTPRefusal(
            status: 503,
            reason: "",
            headers: ["Retry-After": "86400"],
            body: Payload([])
        )
        let told = WaybillError(.connectionRefused, "later", underlying: refusal)
        #expect(waits(1, random: 0, error: told) == [600_000])
        #expect(
            waits(1, random: 0, error: told) { $0.maximumServerDelay = .seconds(30) } == [30_000]
        )
        // The server's limit does not apply to the policy's own delays.
        #expect(
            waits(1, random: whole(900), error: told) {
                $0.initialDelay = .seconds(900)
                $0.maximumDelay = .seconds(900)
            } == [900_000]
        )
    }

    @Test("Descriptors that are missing now may be there later")
    func noDescriptors() {
        let error = WaybillError(LinkError.system(errorNumber: 24, call: "socket"))
        #expect(error.code == .outOfDescriptors)
        #expect(error.isRetryable && !error.mayBeOneHostsOwn)
        #expect(error.message.contains("no file descriptor is left"))
        #expect(waits(1, random: 0, error: error) == [0])
        let other = WaybillError(LinkError.unreachable(errorNumber: 113))
        #expect(other.code == .connectionRefused)
    }

    @Test("Several hosts: busy when all are, and as patient as the least patient of them")
    func severalHosts() {
        func failure(_ seconds: [Int?]) -> WaybillError {
            let attempts = seconds.map { seconds in
                let headers: Headers = seconds.map { ["Retry-After": "\($0)"] } ?? [:]
                let refusal = HTTPRefusal(
                    status: seconds == 0 ? 503 : 429,
                    reason: "",
                    headers: headers,
                    body: Payload([])
                )
                let error = WaybillError(.connectionRefused, "no", underlying: refusal)
                return FailoverFailure.Attempt(host: "h", error: error)
            }
            return WaybillError(FailoverFailure(attempts: attempts))
        }
        #expect(failure([3, 2]).serverDelay == .seconds(2) && failure([3, 2]).isServerBusy)
        #expect(failure([3, nil]).serverDelay == nil && failure([3, nil]).isServerBusy)
        #expect(!failure([nil, 0]).isServerBusy && !failure([]).isServerBusy)
    }

    @Test("Half a million failures in a row overflow nothing")
    func manyFailures() {
        let last = waits(500_000, random: whole(60)).last ?? nil
        #expect(last == 60_000)
    }

    @Test("Limits of attempts and of time end it; without them it goes on")
    func limits() {
        #expect(waits(4, random: 0) { $0.maximumAttempts = 2 } == [0, 10, nil, nil])
        #expect(waits(1, random: 0) { $0.maximumAttempts = 0 } == [nil])
        #expect(waits(4, random: 0) { $0.maximumTime = .milliseconds(1_010) } == [0, 10, nil, nil])
        #expect(waits(1) { $0.isEnabled = false } == [nil])
        #expect(ReconnectionPolicy.never.isEnabled == false)
    }

    @Test("After 60 s of health the failures before are forgotten, after less they are not")
    func health() {
        let dice = whole(4)
        // The ceiling is four seconds, or one: the remainder is a nanosecond less for each second.
        for (seconds, expected) in [(59, Duration.seconds(4)), (60, .nanoseconds(999_999_997))] {
            var schedule = ReconnectionSchedule(ReconnectionPolicy())
            _ = schedule.delay(after: Self.lost, at: .zero, random: { 0 })
            _ = schedule.delay(after: Self.lost, at: .zero, random: { 0 })
            schedule.noteConnected(at: .zero)
            let end = WireInstant.zero.advanced(by: .seconds(seconds))
            let delay = schedule.delay(after: Self.lost, at: end, random: { dice })
            #expect(delay == expected)
        }
    }

    @Test(
        "Progress begins the limits anew, and an acceptance alone does not",
        arguments: [false, true]
    )
    func progress(hasProgress: Bool) {
        var policy = ReconnectionPolicy()
        policy.maximumAttempts = 2
        for isByTime in [false, true] {
            policy.maximumAttempts = isByTime ? nil : 2
            policy.maximumTime = isByTime ? .seconds(1) : nil
            var schedule = ReconnectionSchedule(policy)
            let goesOn = (0..<4).map { index in
                let now = WireInstant.zero.advanced(by: .seconds(index))
                schedule.noteConnected(at: now)
                return schedule.delay(
                    after: Self.lost,
                    hasProgress: hasProgress,
                    at: now,
                    random: { 0 }
                ) != nil
            }
            #expect(goesOn == [true, !isByTime || hasProgress, hasProgress, hasProgress])
        }
    }

    @Test("Progress does not make the waits shorter")
    func waitsAfterProgress() {
        var schedule = ReconnectionSchedule(ReconnectionPolicy())
        for seconds: UInt64 in [1, 2, 4] {
            schedule.noteConnected(at: .zero)
            let dice = whole(seconds)
            let delay = schedule.delay(
                after: Self.lost,
                hasProgress: true,
                at: .zero,
                random: { dice }
            )
            #expect(delay == .seconds(Int64(seconds)))
        }
    }

    @Test("The intervals of requests grow as the waits do, and for a fatal error they stay short")
    func intervals() {
        func intervals(_ error: WaybillError, _ policy: ReconnectionPolicy = .init()) -> [Int] {
            var schedule = ReconnectionSchedule(policy)
            return [UInt64(1), 2, 4].map { seconds in
                schedule.restart(keepsWaits: true)
                let dice = whole(seconds)
                let interval = schedule.interval(after: error, random: { dice })
                return Int(interval.wireNanoseconds / 1_000_000)
            }
        }
        #expect(intervals(Self.lost) == [1_000, 2_000, 4_000])
        // Above the ceiling of one second the remainder is taken.
        #expect(intervals(WaybillError(.unauthorized, "no")).allSatisfy { $0 <= 1_000 })
        #expect(intervals(Self.lost, .never) == [0, 0, 0])
    }

    @Test(
        "Fatal or worth another attempt is decided by the error",
        arguments: [
            (WaybillError.Code.connectionLost, true), (.connectionRefused, true),
            (.timedOut, true), (.protocolViolation, true), (.unauthorized, false),
            (.rejected, false), (.tls, false), (.limitExceeded, false), (.unsupported, false),
            (.invalidEntry, false), (.shutDown, false),
        ]
    )
    func fatal(code: WaybillError.Code, isWorthIt: Bool) {
        #expect((waits(1, error: WaybillError(code, ""))[0] != nil) == isWorthIt)
    }

    @Test(
        "A handshake that was cut off, or that something else answered, is worth another attempt",
        arguments: [
            (TLSFault.closed, true), (.notTLS, true), (.interrupted(""), true),
            (.hostMismatch("a"), false),
            (.unknownAuthority(), false), (.selfSigned, false), (.expired, false),
            (.certificateRefused("unknown_ca"), false), (.noCommonProtocol(""), false),
            (.pinMismatch, false), (.libraryMissing(""), false),
        ]
    )
    func handshake(fault: TLSFault, isWorthIt: Bool) {
        let error = WaybillError(.tls(fault))
        #expect(error.code == .tls)
        #expect(error.isRetryable == isWorthIt)
        #expect((waits(1, error: error)[0] != nil) == isWorthIt)
    }

    @Test("A TLS fault is final before the first connection, and never after it")
    func handshakeLater() {
        let fault = WaybillError(.tls(.unknownAuthority()))
        var schedule = ReconnectionSchedule(ReconnectionPolicy())
        #expect(schedule.delay(after: fault, at: .zero, random: { 0 }) == nil)
        schedule.restart()
        schedule.noteConnected(at: .zero)
        #expect(schedule.delay(after: Self.lost, at: .zero, random: { 0 }) == .zero)
        for _ in 0..<3 {
            #expect(schedule.delay(after: fault, at: .zero, random: { 0 }) == .milliseconds(10))
        }
        schedule.restart()
        #expect(schedule.delay(after: fault, at: .zero, random: { 0 }) == .zero)
    }

    @Test("A server that says when to come again is not asked earlier")
    func pacing() {
        var refusal = HTTPRefusal(status: 503, reason: "", headers: [:], body: Payload([]))
        refusal.headers.append(name: "Retry-After", value: "7")
        let error = WaybillError(.connectionRefused, "busy", underlying: refusal)
        #expect(waits(1, random: 0, error: error) == [7_000])
    }
}
