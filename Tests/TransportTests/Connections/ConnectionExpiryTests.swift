import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.5: a token is configured once, and all later tokens follow from that.
@Suite(
    "Every transport: a token that expires every second, for ten minutes (design 5.5)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionExpiryTests {
    /// Issues tokens that are valid for one second, and checks them.
    private final class Authority: Sendable {
        private struct State: Sendable {
            var clock = ManualClock()
            /// The time of issue of each token. The first token is "0".
            var issued: [ManualClock.Instant] = []
            var expired: Set<Int> = []
            var refreshCount = 0
            var refusalCount = 0
        }

        private let state = Kept(State())

        /// The number of issued tokens.
        var issueCount: Int { state.withLock { $0.issued.count } }
        /// The number of tokens that replaced a refused one.
        var refreshCount: Int { state.withLock { $0.refreshCount } }
        /// The number of refusals.
        var refusalCount: Int { state.withLock { $0.refusalCount } }
        /// The number of different tokens that were refused.
        var expiredCount: Int { state.withLock { $0.expired.count } }

        func measure(by clock: ManualClock) { state.withLock { $0.clock = clock } }

        func issue(inPlaceOf refused: String?) -> String {
            state.withLock { state in
                if refused != nil { state.refreshCount += 1 }
                state.issued.append(state.clock.now)
                return "\(state.issued.count - 1)"
            }
        }

        func admits(_ token: String?) -> Bool {
            state.withLock { state in
                guard let number = token.flatMap({ Int($0) }),
                    state.issued.indices.contains(number)
                else { return false }
                let age = state.issued[number].duration(to: state.clock.now)
                if age < .seconds(1) { return true }
                state.refusalCount += 1
                state.expired.insert(number)
                return false
            }
        }
    }

    /// Cuts the connection and ends the wait.
    ///
    /// - Returns: True when the transport has reconnected; false when it has given up.
    private func survivesLoss(_ bench: Bench, _ watch: inout Watch) async -> Bool {
        bench.broker.dropConnections()
        var isWaiting = false
        while let state = await watch.iterator.next() {
            switch state {
            case .waiting:
                isWaiting = true
                bench.clock.advance(by: Bench.wait)
            case .connected where isWaiting: return true
            case .disconnected: return false
            default: break
            }
        }
        return false
    }

    @Test(
        "Traffic both ways, the link lost again and again: no call fails, no stream ends, refreshes equal expired tokens",
        arguments: Way.allCases
    )
    func traffic(way: Way) async throws {
        let authority = Authority()
        let bench = try Bench(way) { plan in
            plan.broker = { $0.authenticate = { _, token in authority.admits(token) } }
        }
        authority.measure(by: bench.clock)
        let tokens = TokenInterceptor(
            way == .events ? .bearer : .password(userName: "ada"),
            configuration: .init(refreshLimit: .max, clock: bench.clock)
        ) { refused in
            authority.issue(inPlaceOf: refused)
        }
        let provider = bench.provider.intercepted(tokens)
        let messages: Messages<String> = try await provider.messages(.listen())
        let heard = Kept([String]())
        let listening = Call { () async throws in
            for try await text in messages { heard.withLock { $0.append(text) } }
        }
        var watch = bench.watch()
        await watch.until("connected")
        let begin = bench.clock.now
        var lossCount = 0
        var sent: [String] = []
        while begin.duration(to: bench.clock.now) < .seconds(150) {
            let text = "\(sent.count)"
            try await provider.request(.say(text))
            sent.append(text)
            bench.clock.advance(by: .milliseconds(500))
            if sent.count.isMultiple(of: 5) {
                // A clean session ends with the connection, and with it what the broker has not yet delivered.
                await until { heard.withLock { $0.count } == sent.count }
                try #require(
                    await survivesLoss(bench, &watch),
                    "the link was given up after loss \(lossCount + 1)"
                )
                lossCount += 1
            }
        }
        await until { heard.withLock { $0.count } >= sent.count }
        #expect(heard.withLock { $0 } == sent)
        #expect(!listening.isDone)
        #expect(lossCount >= 50)
        #expect(authority.expiredCount >= lossCount)
        #expect(authority.refreshCount == authority.expiredCount)
        #expect(authority.refusalCount == authority.expiredCount)
        #expect(authority.issueCount == authority.refreshCount + 1)
        await bench.end()
        _ = await listening.error()
    }
}
