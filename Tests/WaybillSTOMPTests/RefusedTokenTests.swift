import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

@Suite("STOMP transport: a refused token", .inSimulation, .timeLimit(.minutes(30)))
struct RefusedTokenTests {
    private actor Tokens {
        /// The refused token of each call.
        private(set) var calls: [String?] = []

        func next(_ refused: String?) -> String {
            calls.append(refused)
            return "\(calls.count)"
        }
    }

    private static func showing(_ token: Int, _ steps: ScriptedByteStream.Step...)
        -> ScriptedByteStream
    {
        let connect =
            "CONNECT\naccept-version:1.2\nhost:script\nlogin:u\npasscode:\(token)\n"
            + "heart-beat:10000,10000\n\n\0"
        return ScriptedByteStream(steps: [.expect(connect)] + steps)
    }

    @Test("A close before CONNECTED: one refresh, and no other until a server has accepted")
    func silence() async throws {
        let connected = ScriptedByteStream.Step.reply("CONNECTED\nversion:1.2\n\n\0")
        let scripts = [
            Self.showing(1, connected, .finish), Self.showing(1, .finish),
            Self.showing(2, .finish), Self.showing(2, .reset), Self.showing(2, connected, .finish),
            Self.showing(2, .finish), Self.showing(3, connected),
        ]
        let (clock, tokens) = (ManualClock(), Tokens())
        let (transport, plain) = try scripted(scripts, clock: clock)
        let provider = plain.intercepted(
            TokenInterceptor(.password(userName: "u")) { await tokens.next($0) }
        )
        try await provider.connect()
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
        }
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
        #expect(await tokens.calls == [nil, "1", "2"])
        try await shutDown(transport, moving: clock)
    }
}
