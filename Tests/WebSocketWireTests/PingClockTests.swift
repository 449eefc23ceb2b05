import Testing
import WebSocketWire
import WireCore

/// When a ping is due, and when the peer is given up, with a ping after 30 seconds and 20 seconds for its answer.
@Suite("WebSocket: the times of pings") struct PingClockTests {
    /// An event, at a second.
    enum Event {
        case data, hold, resume, start, nothing
    }

    private func clock(pingsOnRequest: Bool = false, interval: Duration? = .seconds(30))
        -> WebSocketPingClock
    {
        var configuration = SocketHarness.configuration()
        configuration.pingInterval = interval
        configuration.pingTimeout = .seconds(20)
        configuration.pingsOnRequest = pingsOnRequest
        return WebSocketPingClock(configuration, at: .zero)
    }

    /// What is due at the second, after the event.
    private func due(
        _ clock: inout WebSocketPingClock,
        _ second: Int,
        _ event: Event = .nothing
    ) -> String {
        let now = WireInstant.zero.advanced(by: .seconds(second))
        switch event {
        case .data: clock.noteReceived(at: now)
        case .hold: clock.holdReading(true, at: now)
        case .resume: clock.holdReading(false, at: now)
        case .start: clock.start()
        case .nothing: break
        }
        return "\(clock.due(at: now))"
    }

    @Test("Silence leads to a ping, and more silence to the end")
    func silence() {
        var clock = clock()
        #expect(due(&clock, 29) == "nothing")
        #expect(due(&clock, 30) == "ping")
        #expect(due(&clock, 49) == "nothing")
        #expect(due(&clock, 50) == "giveUp")
    }

    @Test("Any byte is a sign of life")
    func bytes() {
        var clock = clock()
        #expect(due(&clock, 29, .data) == "nothing")
        #expect(due(&clock, 58) == "nothing")
        #expect(due(&clock, 59) == "ping")
        #expect(due(&clock, 78, .data) == "nothing")
        #expect(due(&clock, 107) == "nothing")
        #expect(due(&clock, 108) == "ping")
    }

    @Test("Unread data is no silence")
    func held() {
        var clock = clock()
        #expect(due(&clock, 30) == "ping")
        #expect(due(&clock, 31, .hold) == "nothing")
        #expect(clock.deadline == nil)
        #expect(due(&clock, 500) == "nothing")
        #expect(due(&clock, 500, .resume) == "nothing")
        #expect(due(&clock, 529) == "nothing")
        #expect(due(&clock, 530) == "ping")
    }

    @Test("Pings wait for a request, or are never sent")
    func none() {
        var never = clock(interval: nil)
        #expect(due(&never, 1_000_000) == "nothing")
        var later = clock(pingsOnRequest: true)
        #expect(due(&later, 100) == "nothing")
        #expect(due(&later, 100, .start) == "ping")
    }
}
