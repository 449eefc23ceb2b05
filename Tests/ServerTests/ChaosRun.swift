#if os(Linux)
    import ChaosSupport
    import Foundation
    import Testing
    import WaybillLink
    import WireCore
    import WireTestSupport

    /// A run against a server through a ``ChaosProxy``, in rounds.
    ///
    /// It needs a process of its own (`processExitsWith`), since it counts the resources that are left at the end.
    struct ChaosRun: Sendable {
        /// The number of messages and faults of one round, and its seed.
        struct Round: Sendable {
            var messages: Int
            var faults: Int
            var seed: UInt64
            fileprivate let watch = Watch()

            /// Sets the text to report and the action to take if the round does not end.
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

            /// Sends all messages in lanes that run at once. A lane sends one message after the other.
            func send(
                in lanes: Int,
                _ send: @escaping @Sendable (Int) async -> Void
            ) async {
                await withTaskGroup { group in
                    for lane in 0..<lanes {
                        group.addTask {
                            for number in stride(from: lane, to: messages, by: lanes) {
                                await send(number)
                            }
                        }
                    }
                }
            }

            /// A plan for messages of about this size in the direction that is counted.
            func plan(messagesOfBytes byteCount: Int) -> ChaosPlan {
                ChaosPlan(faults: faults, messages: messages, ofBytes: byteCount)
            }
        }

        /// The state by which another thread watches a round.
        fileprivate final class Watch: Sendable {
            struct State: Sendable {
                var ends: @Sendable () -> String = { "nothing has begun" }
                var isOver = false
            }

            let state = Locked(State())
        }

        static let roundCount = 4
        /// The bytes that may stay allocated. After the first measurement come 75,000 messages and 750 faults. The
        /// limit therefore detects a leak of 28 bytes for each message, or of 3 KiB for each connection.
        private static let memoryTolerance = 2 << 20

        let name: String
        let messages: Int
        let faults: Int
        /// The shortest duration of all rounds together.
        let time: Duration

        /// - Parameters:
        ///   - name: The name of the run.
        ///   - messages: The number of messages, unless the environment says otherwise.
        ///   - faults: The smallest number of faults.
        ///   - time: The shortest duration. Four rounds are made in any case.
        init(_ name: String, messages: Int, faults: Int, for time: Duration = .zero) {
            self.name = name
            self.time = time
            self.messages = ChaosSettings.messageCount(default: messages)
            self.faults = ChaosSettings.faultCount(default: faults)
        }

        /// Runs the rounds, and expects that they leave no resources behind.
        ///
        /// - Returns: The sum of all rounds.
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
                LinkEnvironment.reclaim()
                if first == nil {
                    first = await .settled(loop: EventLoop.threadName) { $0.loops == 0 }
                }
            }
            let total = try #require(sum)
            // One short line: the pipe holds the output until the parent process reads it, and has little room.
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
            // Threads of the runtime come and go.
            #expect(after.threads <= before.threads + 4, "\(before) became \(after)")
            #expect(before.allocatedBytes > 0)
            #expect(
                after.allocatedBytes < before.allocatedBytes + Self.memoryTolerance,
                "\(before) became \(after)"
            )
            return total
        }

        /// Runs a round. If it does not end in time, reports its state and kills the process.
        ///
        /// The watching thread is not one of the pool, whose threads the hanging round may hold.
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
                // The closure is released after the lock is open.
                withExtendedLifetime(ends) {}
            }
            // A round with 25,000 messages takes 20 s.
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

        /// Prints the output of a process that has made a run.
        static func show(_ result: ExitTest.Result?) {
            guard let result else { return }
            print(String(decoding: result.standardOutputContent, as: UTF8.self))
        }
    }
#endif
