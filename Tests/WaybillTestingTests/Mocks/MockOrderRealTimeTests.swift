#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillTesting
    import WireCore
    import WireTestSupport

    /// Events of two threads at a mock, in every order that its locks allow.
    @Suite("Mock transport: order", .realTime, .timeLimit(.minutes(30)))
    struct MockOrderRealTimeTests {
        private static let old = Request(topic: "old", command: .send)
        private static let new = Request(topic: "new", command: .send)

        /// Success, and from then on the thread may be interrupted.
        private static let arming = MockTransport.Outcome.answer { _ in
            UnlockInterruption.arm()
            return .success
        }

        @Test(
            "The last state is that of the connection, when it is dropped while it comes back",
            .enabled(if: LockObserver.isCompiledIn)
        )
        func states() async {
            await #expect(processExitsWith: .success) {
                for count in 1...10 {
                    let mock = MockTransport(like: .mqtt5).expect(.connect, Self.arming)
                    mock.interruptConnection()
                    UnlockInterruption.plan(count) { mock.dropConnection() }
                    mock.restoreConnection()
                    try await waitUntil { mock.connects.count == 1 }
                    await letOthersRun()
                    await UnlockInterruption.finish()
                    await letOthersRun()
                    var states = mock.states.makeAsyncIterator()
                    let last = await states.next()
                    guard case .disconnected? = last else {
                        preconditionFailure("\(count): \(String(describing: last))")
                    }
                }
            }
        }

        @Test(
            "Requests that have waited for the connection are recorded before new ones",
            .enabled(if: LockObserver.isCompiledIn)
        )
        func waiting() async {
            await #expect(processExitsWith: .success) {
                for isPlain in [false, true] {
                    for count in 1...10 {
                        let clock = ManualClock()
                        let mock =
                            isPlain
                            ? MockTransport(clock: clock)
                            : MockTransport(like: .mqtt5, clock: clock)
                        mock.expect(.connect, Self.arming).expect(.send)
                        mock.interruptConnection()
                        let old = Task { try await mock.perform(Self.old) }
                        await clock.waitForSleepers()
                        UnlockInterruption.plan(count) { _ = try? await mock.perform(Self.new) }
                        if isPlain { UnlockInterruption.arm() }
                        mock.restoreConnection()
                        _ = try await old.value
                        await letOthersRun()
                        await UnlockInterruption.finish()
                        try await waitUntil { mock.requests.count == 2 }
                        let topics = mock.requests.map { $0.topic ?? "" }
                        precondition(topics == ["old", "new"], "\(isPlain), \(count): \(topics)")
                    }
                }
            }
        }

        @Test(
            "A subscription ends with the connection, also when it is just being added",
            .enabled(if: LockObserver.isCompiledIn)
        )
        func subscriptions() async {
            await #expect(processExitsWith: .success) {
                for isShutdown in [false, true] {
                    for count in 1...10 {
                        let mock = MockTransport(like: .mqtt5)
                            .expect(.connect).expect(.subscribe, Self.arming)
                        UnlockInterruption.plan(count) {
                            if isShutdown { await mock.shutdown() } else { mock.dropConnection() }
                        }
                        let messages = try await mock.subscribe(
                            Request(topic: "t", command: .subscribe)
                        )
                        await UnlockInterruption.finish()
                        precondition(mock.subscriptionCount == 0, "\(isShutdown), \(count)")
                        do {
                            for try await _ in messages {}
                            precondition(isShutdown, "\(count)")
                        } catch {
                            precondition(!isShutdown, "\(count): \(error)")
                        }
                    }
                }
            }
        }
    }
#endif
