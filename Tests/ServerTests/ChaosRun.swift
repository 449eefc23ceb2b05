#if os(Linux)
    import ChaosSupport
    import Foundation
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    /// A run against a server through a ``ChaosProxy``, in rounds.
    ///
    /// To be made in a process of its own (`processExitsWith`): what is left of it is counted.
    struct ChaosRun: Sendable {
        /// One round: how many messages and faults, and a seed.
        struct Round: Sendable {
            var messages: Int
            var faults: Int
            var seed: UInt64
            fileprivate let watch = Watch()

            /// Says what is to be told, and done, should the round not end.
            func whenStuck(
                tell ledger: NumberedLedger,
                _ proxy: ChaosProxy,
                then cleanUp: @escaping @Sendable () -> Void = {}
            ) {
                watch.state.withLock { state in
                    state.ends = {
                        defer { cleanUp() }
                        return "\(proxy.counts.description); \(ledger.verdict.description)"
                    }
                }
            }

            /// A plan for messages of about so many bytes in the direction that counts.
            func plan(messagesOfBytes byteCount: Int) -> ChaosPlan {
                ChaosPlan(faults: faults, messages: messages, ofBytes: byteCount)
            }
        }

        /// What is known of a round from outside.
        fileprivate final class Watch: Sendable {
            struct State: Sendable {
                var ends: @Sendable () -> String = { "nothing has begun" }
                var isOver = false
            }

            let state = Locked(State())
        }

        static let roundCount = 4
        /// How much memory may stay with the threads: with 75,000 messages and 750 faults behind the first
        /// measurement this shows 28 bytes that stay with a message, or 3 KiB with a connection.
        private static let memoryTolerance = 2 << 20

        let name: String
        let messages: Int
        let faults: Int
        /// How long rounds follow one another at least.
        let time: Duration

        /// - Parameters:
        ///   - name: What is run.
        ///   - messages: How many messages flow, unless the environment says otherwise.
        ///   - faults: How many faults come at least.
        ///   - time: How long rounds follow one another at least, beyond the four that there are in any case.
        init(_ name: String, messages: Int, faults: Int, for time: Duration = .zero) {
            self.name = name
            self.time = time
            self.messages = ChaosSettings.messageCount(default: messages)
            self.faults = ChaosSettings.faultCount(default: faults)
        }

        /// Runs the rounds, and expects that none of them leaves anything behind.
        ///
        /// - Returns: All rounds together.
        @discardableResult
        func callAsFunction(
            _ round: (Round) async throws -> ChaosReport
        ) async throws -> ChaosReport {
            let seed = ChaosSettings.seed
            var sum: ChaosReport?
            var first: OpenResources?
            let end = ContinuousClock.now + time
            for number in 0... {
                guard number < Self.roundCount || ContinuousClock.now < end else { break }
                let part = Round(
                    messages: max(messages / Self.roundCount, 1),
                    faults: faults / Self.roundCount,
                    seed: seed &+ UInt64(number)
                )
                let report: ChaosReport
                do { report = try await watched(part, round) } catch {
                    Issue.record(error, "\(name), seed \(part.seed)")
                    throw error
                }
                if sum == nil { sum = report } else { sum? += report }
                SharedEventLoop.reap()
                if first == nil {
                    first = await .settled(loop: EventLoop.threadName) { $0.loops == 0 }
                }
            }
            let total = try #require(sum)
            // In few words: it waits in a pipe until somebody reads it.
            print(total.description)
            #expect(total.counts.faultCount >= faults, "\(total.description)")
            let before = try #require(first)
            let after = await OpenResources.settled(loop: EventLoop.threadName) { after in
                after.descriptors == before.descriptors && after.loops == 0
                    && after.threads <= before.threads + 4
                    && after.allocatedBytes < before.allocatedBytes + Self.memoryTolerance
            }
            print("\(before) became \(after)")
            #expect(after.descriptors == before.descriptors, "\(before) became \(after)")
            #expect(after.loops == 0, "\(before) became \(after)")
            // The runtime's own come and go.
            #expect(after.threads <= before.threads + 4, "\(before) became \(after)")
            #expect(before.allocatedBytes > 0)
            #expect(
                after.allocatedBytes < before.allocatedBytes + Self.memoryTolerance,
                "\(before) became \(after)"
            )
            return total
        }

        /// Runs a round, and ends the process, having said why, should the round not end.
        ///
        /// In a thread of its own: what hangs may hold those of the pool.
        private func watched(
            _ part: Round,
            _ round: (Round) async throws -> ChaosReport
        ) async throws -> ChaosReport {
            let watch = part.watch
            defer {
                let ends = watch.state.withLock { state in
                    defer { state = Watch.State(isOver: true) }
                    return state.ends
                }
                // Let go of with no lock held.
                withExtendedLifetime(ends) {}
            }
            // They take 20 s with 25,000 messages.
            let end = ContinuousClock.now + .seconds(300 + part.messages / 100)
            Thread.detachNewThread {
                while ContinuousClock.now < end {
                    if watch.state.withLock({ $0.isOver }) { return }
                    Thread.sleep(forTimeInterval: 0.1)
                }
                let (isOver, ends) = watch.state.withLock { ($0.isOver, $0.ends) }
                if isOver { return }
                Issue.record("\(name), seed \(part.seed), does not end: \(ends())")
                raise(SIGKILL)
            }
            return try await round(part)
        }

        /// Prints what a process has printed that has made a run.
        static func show(_ result: ExitTest.Result?) {
            guard let result else { return }
            print(String(decoding: result.standardOutputContent, as: UTF8.self))
        }
    }
#endif
