import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSession
import WaybillTesting

@Suite("Opening links", .inSimulation, .timeLimit(.minutes(30))) struct OpenedLinkTests {
    /// A dialer that takes three seconds, or fails.
    private struct SlowDialer: Dialer {
        let clock: ManualClock
        var error: LinkError?

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            clock.advance(by: .seconds(3))
            if let error { throw error }
            return ByteStreamPair().first
        }
    }

    private func open(within timeout: Duration, _ error: LinkError? = nil) async throws
        -> OpenedLink
    {
        let clock = ManualClock()
        let environment = LinkEnvironment(
            dialer: SlowDialer(clock: clock, error: error),
            clock: clock.linkTimers,
            random: { 0 }
        )
        return try await environment.open(Endpoint(host: "h", port: 1), within: timeout)
    }

    @Test("What dialing took is gone from the time, never more than all of it")
    func timeLeft() async throws {
        #expect(try await open(within: .seconds(10)).timeLeft == .seconds(7))
        #expect(try await open(within: .seconds(2)).timeLeft == .zero)
    }

    @Test(
        "Errors of the link in the words of users",
        arguments: [
            (LinkError.timedOut, "timedOut"), (.reset, "connectionLost"),
            (.endOfStream, "connectionLost"), (.closed, "connectionLost"),
            (.unsupported("TCP"), "unsupported"), (.refused, "connectionRefused"),
            (.nameNotResolved(host: "h", reason: "r"), "connectionRefused"),
            (.unreachable(errorNumber: 1), "connectionRefused"),
            (.system(errorNumber: 1, call: "connect"), "connectionRefused"),
        ]
    )
    func errors(fault: LinkError, code: String) async {
        await #expect {
            try await open(within: .seconds(10), fault)
        } throws: { error in
            let error = error as? WaybillError
            let place = code == "connectionRefused" ? " (h:1)" : ""
            return error?.code.name == code && error?.message == fault.description + place
        }
    }

    @Test("Cancelled is cancelled")
    func cancelled() async {
        await #expect(throws: CancellationError.self) {
            try await open(within: .seconds(10), .cancelled)
        }
    }
}
