#if os(Linux)
    import ChaosSupport
    import Foundation
    import Testing
    import Waybill
    import WireCore

    /// The silences of one side of a run: the longest time between two messages in each period.
    final class Pulse: Sendable {
        private struct State: Sendable {
            var last = ContinuousClock.now
            var longest = Duration.zero
            var losses = 0
        }

        private let state = Locked(State())

        /// A message was acknowledged, or has arrived.
        func beat() {
            let now = ContinuousClock.now
            state.withLock { state in
                state.longest = max(state.longest, state.last.duration(to: now))
                state.last = now
            }
        }

        /// Waits until a message was acknowledged, or has arrived, after this call.
        func nextBeat(within limit: Duration) async throws {
            let (begin, end) = (ContinuousClock.now, ContinuousClock.now + limit)
            while state.withLock({ $0.last <= begin }), ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(20))
            }
        }

        /// Begins a period. A silence that lasts already counts from now on.
        func begin() {
            state.withLock { $0 = State() }
        }

        /// Ends a period.
        ///
        /// - Returns: Its longest silence, and whether the connection was lost in it.
        func end() -> (silence: Duration, wasLost: Bool) {
            beat()
            return state.withLock { ($0.longest, $0.losses > 0) }
        }

        /// Notes each loss of a connection until the task is cancelled.
        func watch(_ states: ConnectionStates) async {
            for await state in states {
                switch state {
                case .waiting: self.state.withLock { $0.losses += 1 }
                case .idle, .connecting, .connected, .paused, .disconnected: break
                }
            }
        }
    }

    /// A run of numbered messages through a cluster whose nodes are killed one after the other.
    ///
    /// A node is killed every ten seconds, or later: the next one is killed only when the last one is in step with the
    /// others again. So two of three nodes run at any time. Messages are sent at a steady rate until all kills are
    /// over.
    ///
    /// A loss fails the test. The printed line tells whether the server says itself that it keeps messages that it will
    /// not deliver.
    struct ClusterRun: Sendable {
        /// The two sides and their connections.
        struct Sides: Sendable {
            let publisher: any Transport
            let subscriber: any Transport
            /// Sends a number, and returns when it was acknowledged.
            let send: @Sendable (Int) async throws -> Void
            let messages: Messages<Message>
            /// The number of messages that the servers have acknowledged and, by their own counters, will not deliver.
            var passedOver: @Sendable () async -> Int = { 0 }
        }

        private static func number(_ name: String) -> Int? {
            ProcessInfo.processInfo.environment["WAYBILL_CLUSTER_\(name)"].flatMap { Int($0) }
        }

        /// The number of kills: `WAYBILL_CLUSTER_KILLS`, or 3.
        static let kills = number("KILLS") ?? 3
        /// The smallest number of messages: `WAYBILL_CLUSTER_MESSAGES`, or 1,000 for each kill.
        static let messages = number("MESSAGES") ?? kills * 1_000
        private static let period = Duration.seconds(10)
        /// More numbers than this are not sent, however long the kills take: for four times the expected time, and for
        /// five minutes at least, since a node of a busy machine needs minutes to be in step.
        private static let capacity =
            messages * max(4, Int(Duration.seconds(300) / (period * kills)))
        private static let lanes = 50
        /// Errors after which a message may be sent again: it is lost, or may come twice.
        private static let retried: Set<WaybillError.Code> = [
            .connectionLost, .connectionRefused, .notConnected, .timedOut, .rejected,
        ]

        /// Hands out the numbers at a steady rate.
        private final class Dispenser: Sendable {
            private struct State: Sendable {
                var next = 0
                var isCalm = false
            }

            private let state = Locked(State())
            private let begin = ContinuousClock.now
            private let interval = period * kills / messages

            /// The next number, and the time to send it at; nil when all are sent.
            func next() -> (number: Int, time: ContinuousClock.Instant)? {
                state.withLock { state in
                    guard state.next < (state.isCalm ? messages : ClusterRun.capacity) else {
                        return nil
                    }
                    defer { state.next += 1 }
                    return (state.next, state.isCalm ? begin : begin + interval * state.next)
                }
            }

            /// The kills are over.
            func calm() { state.withLock { $0.isCalm = true } }

            var count: Int { state.withLock { $0.next } }
        }

        /// A node took so long to be in step that no number is left to send.
        private struct NumbersSpent: Error {
            let node: Int
        }

        let name: String
        let cluster: Cluster
        private let dispenser = Dispenser()
        private let ledger: NumberedLedger
        private let published = Pulse()
        private let arrived = Pulse()
        private let passedOver = PassedOver()

        init(_ name: String, _ cluster: Cluster) {
            self.name = name
            self.cluster = cluster
            ledger = NumberedLedger(count: Self.capacity, lanes: Self.lanes)
        }

        /// Makes the run, and expects that nothing is lost.
        func callAsFunction(_ sides: Sides) async throws {
            let begin = ContinuousClock.now
            async let counted: Void = count(sides.messages)
            let watchers = [
                Task { await published.watch(sides.publisher.states) },
                Task { await arrived.watch(sides.subscriber.states) },
                Task { await passedOver.watch(sides.passedOver) },
            ]
            defer { for watcher in watchers { watcher.cancel() } }
            async let sent: Void = send(sides.send)
            let periods = try await killNodes()
            await sent
            try await settle()
            let time = begin.duration(to: .now)
            for transport in [sides.publisher, sides.subscriber] { await transport.shutdown() }
            await counted
            report(periods, time, passedOver: passedOver.count)
        }

        private func send(_ send: @escaping @Sendable (Int) async throws -> Void) async {
            await withTaskGroup { group in
                for _ in 0..<Self.lanes {
                    group.addTask {
                        while !Task.isCancelled, let (number, time) = dispenser.next() {
                            try? await Task.sleep(until: time, clock: .continuous)
                            await deliver(number, send)
                        }
                    }
                }
            }
        }

        /// Sends one number until it is acknowledged.
        private func deliver(
            _ number: Int,
            _ send: @Sendable (Int) async throws -> Void
        ) async {
            while true {
                ledger.began(number)
                do {
                    try await send(number)
                    ledger.succeeded(number)
                    return published.beat()
                } catch {
                    let code = (error as? WaybillError)?.code
                    ledger.failed(number, code?.name ?? "\(error)")
                    guard let code, Self.retried.contains(code) else {
                        // A run that has failed cancels its senders.
                        if !Task.isCancelled { Issue.record(error) }
                        return
                    }
                    try? await Task.sleep(for: .milliseconds(50))
                }
            }
        }

        /// Counts the messages until the transport is shut down.
        private func count(_ messages: Messages<Message>) async {
            do {
                for try await message in messages {
                    ledger.arrived(message.text.flatMap { Int($0) })
                    arrived.beat()
                }
            } catch {
                if (error as? WaybillError)?.code != .shutDown { Issue.record(error) }
            }
        }

        private struct Period {
            var publisher: (silence: Duration, wasLost: Bool)
            var subscriber: (silence: Duration, wasLost: Bool)
        }

        private func killNodes() async throws -> [Period] {
            defer { dispenser.calm() }
            try await Task.sleep(for: .seconds(2))
            var periods: [Period] = []
            for kill in 0..<Self.kills {
                let next = ContinuousClock.now + Self.period
                let node = kill % cluster.ports.count
                for pulse in [published, arrived] { pulse.begin() }
                try await cluster.kill(node)
                try await Task.sleep(for: .seconds(1))
                try await cluster.start(node)
                // Without traffic a kill would show nothing.
                guard dispenser.count < Self.capacity else { throw NumbersSpent(node: node) }
                try await Task.sleep(until: next, clock: .continuous)
                // The next period begins with traffic in both directions.
                for pulse in [published, arrived] { try await pulse.nextBeat(within: .seconds(60)) }
                periods.append(Period(publisher: published.end(), subscriber: arrived.end()))
            }
            return periods
        }

        /// Waits for messages that are still on their way, as long as any come.
        private func settle() async throws {
            var (count, limit) = (ledger.arrivedCount, ContinuousClock.now + .seconds(60))
            while count < dispenser.count, ContinuousClock.now < limit {
                try await Task.sleep(for: .milliseconds(50))
                guard ledger.arrivedCount > count else { continue }
                count = ledger.arrivedCount
                limit = ContinuousClock.now + .seconds(60)
            }
            // A message that is acknowledged too late comes again.
            try await Task.sleep(for: .seconds(3))
        }

        private func report(_ periods: [Period], _ time: Duration, passedOver: Int) {
            let verdict = ledger.verdict
            let sides = [
                ("publisher", periods.map(\.publisher)), ("subscriber", periods.map(\.subscriber)),
            ]
            let silences = sides.map { name, periods in
                let lost = periods.filter(\.wasLost).map(\.silence).sorted()
                let all = periods.map(\.silence).sorted()
                return
                    "\(name) cut \(lost.count) times, \(Self.words(lost)); all \(Self.words(all))"
            }
            let affected = periods.compactMap { period in
                let sides = [period.publisher, period.subscriber].filter(\.wasLost)
                return sides.map(\.silence).max()
            }
            let line = """
                cluster, \(name): \(periods.count) kills in \(Self.seconds(time)), \
                \(verdict.successes) acknowledged; traffic again after \(Self.words(affected.sorted())); \
                \(silences.joined(separator: "; ")); passed over by the server \(passedOver): \
                \(verdict.description)
                """
            print(line)
            let sent = dispenser.count
            #expect(sent >= Self.messages, "\(line)")
            #expect(verdict.successes == sent, "\(line)")
            #expect(verdict.arrived + verdict.lost == sent, "\(line)")
            #expect(verdict.lost == 0, "\(line)")
            #expect(verdict.unresolved == 0, "\(line)")
            #expect(verdict.resolvedTwice == 0, "\(line)")
            #expect(verdict.unknown == 0, "\(line)")
            // A kill that cuts no connection tests nothing.
            #expect(!affected.isEmpty, "\(line)")
        }

        private static func words(_ sorted: [Duration]) -> String {
            guard let worst = sorted.last else { return "none" }
            return "median \(seconds(sorted[sorted.count / 2])), worst \(seconds(worst))"
        }

        private static func seconds(_ duration: Duration) -> String {
            let hundredths = duration / .milliseconds(10)
            return "\((hundredths).rounded() / 100) s"
        }
    }
#endif
