#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillTesting
    import WireTestSupport

    /// With a hundred waiting tasks, the order of a dictionary differs from that of their arrival.
    @Suite("First come, first served", .inSimulation, .timeLimit(.minutes(30)))
    struct WakingOrderTests {
        @Test("Requests that wait for a token go on in the order in which they came")
        func tokens() async throws {
            let gate = Gate()
            let source = NumberedTokens { _ in try await gate.pass() }
            let mock = MockTransport().expect(.send)
            let provider = Provider<PlainEntry>(transport: mock).intercepted(
                TokenInterceptor(source: source, configuration: untimed())
            )
            let order = WakingOrder()
            order.begin(100) { _ in _ = try? await provider.request(.send) }
            try await order.run(until: { !source.calls.isEmpty })
            gate.open()
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
            #expect(mock.requests.count == 100)
            #expect(source.calls.count == 1)
        }

        @Test("Observers of states hear of a change in the order in which they came")
        func states() async throws {
            let source = ConnectionStateSource()
            let order = WakingOrder()
            order.begin(100) { _ in
                for await state in source.states {
                    if case .connected = state { return }
                }
            }
            source.report(.connected)
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
        }

        @Test("Tasks that wait for sleepers of a manual clock resume in the order of their arrival")
        func sleepers() async throws {
            let clock = ManualClock()
            let order = WakingOrder()
            order.begin(100) { _ in await clock.waitForSleepers() }
            let sleeper = Task { try await clock.sleep(for: .seconds(1)) }
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
            clock.advance(by: .seconds(1))
            try await sleeper.value
        }

        @Test("Streams of a mock end in the order of their subscriptions")
        func mockStreams() async throws {
            let mock = MockTransport().expect(.subscribe)
            let provider = Provider<PlainEntry>(transport: mock)
            let order = WakingOrder()
            order.begin(100) { _ in
                guard let messages = try? await provider.messages(.subscribe) else { return }
                do { for try await _ in messages {} } catch {}
            }
            try await order.run(until: { mock.subscriptionCount == 100 })
            mock.dropConnection()
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
        }
    }
#endif
