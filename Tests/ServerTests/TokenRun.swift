#if os(Linux)
    import ChaosSupport
    import Foundation
    import Testing
    import Waybill
    import WireCore
    import WireTestSupport

    /// Traffic in both directions with a server whose tokens expire every second. The connection is cut every few
    /// seconds.
    struct TokenRun: Sendable {
        /// What the client has seen.
        struct Figures: Sendable {
            var cuts = 0
            /// Connections, refused ones included.
            var connections = 0
            /// Tokens that replaced a refused one.
            var refreshes = 0
            /// The numbers whose send has succeeded.
            var sent: Set<Int> = []
            /// The numbers that came back.
            var arrived: Set<Int> = []
            /// The number of failed sends for each error code.
            var failures: [String: Int] = [:]
            /// The errors of streams that ended before the end of the run.
            var ends: [String] = []
            var isOver = false

            /// The count of numbers that were sent and never arrived.
            var lost: Int { sent.subtracting(arrived).count }
        }

        /// The duration of each run: `WAYBILL_TOKEN_SECONDS`.
        static let time = Duration.seconds(
            ProcessInfo.processInfo.environment["WAYBILL_TOKEN_SECONDS"].flatMap { Int64($0) } ?? 10
        )

        /// The number of concurrent senders.
        private static let lanes = 3

        let route: TokenRoute
        private let topic = "tokens\(UInt64.random(in: 0 ... .max))"
        private let figures = Shared()

        private final class Shared: Sendable {
            let state = Locked(Figures())
        }

        init(_ route: TokenRoute) {
            self.route = route
        }

        /// Makes the run.
        ///
        /// - Returns: The figures of the client, and the counts of the token issuer.
        func callAsFunction() async throws -> (Figures, TokenAuthority.Counts) {
            let authority = try TokenAuthority()
            let target = try #require(TestServers.port(route.variable))
            let proxy = try ChaosProxy(to: UInt16(target), seed: 1)
            defer { proxy.close() }
            let figures = figures
            // Tokens are configured only here.
            let tokens = TokenInterceptor(
                route.placement,
                configuration: .init(refreshLimit: .max)
            ) { refused in
                if refused != nil { figures.state.withLock { $0.refreshes += 1 } }
                return try await authority.issue()
            }
            let transport = try route.transport(through: proxy.port)
            let provider = Provider<TokenEntry>(transport: transport).intercepted(tokens)
            let begin = ContinuousClock.now
            let messages = try await provider.messages(route.listen(to: topic))
            async let heard: Void = listen(to: messages)
            async let cut: Void = cut(proxy, until: begin + Self.time)
            await withTaskGroup { group in
                for lane in 0..<Self.lanes {
                    group.addTask {
                        await send(lane, with: provider, until: begin + Self.time)
                    }
                }
            }
            await cut
            // Messages that were in transit at the last cut are delivered again.
            let limit = ContinuousClock.now + .seconds(30)
            while figures.state.withLock({ $0.lost > 0 && $0.ends.isEmpty }),
                ContinuousClock.now < limit
            {
                try await Task.sleep(for: .milliseconds(20))
            }
            let counts = try await authority.counts()
            figures.state.withLock { $0.isOver = true }
            await transport.shutdown()
            await heard
            await authority.close()
            figures.state.withLock { $0.connections = proxy.counts.connections }
            let result = figures.state.withLock { $0 }
            tell(result, counts, after: ContinuousClock.now - begin)
            return (result, counts)
        }

        /// Records the messages until the transport is shut down.
        private func listen(to messages: Messages<Message>) async {
            var end = "without an error"
            do {
                for try await message in messages {
                    guard let number = message.text.flatMap({ Int($0) }) else { continue }
                    figures.state.withLock { _ = $0.arrived.insert(number) }
                }
            } catch {
                end = "\(error)"
            }
            figures.state.withLock { state in
                if !state.isOver { state.ends.append(end) }
            }
        }

        /// True until the time is over and two cuts were made, which may take longer on a busy machine.
        private func goesOn(until end: ContinuousClock.Instant) -> Bool {
            ContinuousClock.now < end || figures.state.withLock { $0.cuts } < 2
        }

        /// Resets all connections repeatedly.
        private func cut(_ proxy: ChaosProxy, until end: ContinuousClock.Instant) async {
            while true {
                try? await Task.sleep(for: .milliseconds(Int.random(in: 2_000...4_000)))
                guard goesOn(until: end) else { return }
                proxy.dropConnections()
                figures.state.withLock { $0.cuts += 1 }
            }
        }

        /// Sends the numbers of a lane one after the other.
        private func send(
            _ lane: Int,
            with provider: Provider<TokenEntry>,
            until end: ContinuousClock.Instant
        ) async {
            for number in stride(from: lane, to: .max, by: Self.lanes) {
                guard goesOn(until: end) else { return }
                do {
                    try await provider.request(route.send(number, to: topic))
                    figures.state.withLock { _ = $0.sent.insert(number) }
                } catch {
                    let name = (error as? WaybillError)?.code.name ?? "\(error)"
                    figures.state.withLock { $0.failures[name, default: 0] += 1 }
                }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }

        private func tell(
            _ figures: Figures,
            _ counts: TokenAuthority.Counts,
            after time: Duration
        ) {
            let failures = figures.failures.sorted { $0.key < $1.key }
                .map { "\($0.key) \($0.value)" }.joined(separator: ", ")
            print(
                """
                \(route.name): \(time.components.seconds) s, \(figures.cuts) cuts, \
                \(figures.connections) connections; tokens: \(counts.issued) issued, \
                \(counts.accepted) times accepted, \(counts.refused) times refused, \
                \(counts.expired) expired, \(counts.invalid) invalid, \(figures.refreshes) refreshes; \
                messages: \(figures.sent.count) sent, \(figures.arrived.count) arrived, \
                \(figures.lost) lost; failures: \(failures.isEmpty ? "none" : failures); \
                stream ends: \(figures.ends)
                """
            )
        }
    }
#endif
