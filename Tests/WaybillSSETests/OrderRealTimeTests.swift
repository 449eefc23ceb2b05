#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillSSE
    import WireCore
    import WireTestSupport

    /// Events of two threads, in every order that their locks allow.
    @Suite("Event stream transport: order", .realTime, .timeLimit(.minutes(30)))
    struct OrderRealTimeTests {
        /// Arms the interruption when a response is read.
        private struct Arming: WireLogger {
            func log(_ record: WireRecord) {
                if record.direction == .inbound { UnlockInterruption.arm() }
            }
        }

        @Test(
            "A hint that comes during another one leaves no stream behind",
            .enabled(if: LockObserver.isCompiledIn)
        )
        func hints() async {
            await #expect(processExitsWith: .success) {
                for count in 1...8 {
                    let server = HTTPServer(
                        Array(repeating: .open(Say.stream(": hi\n\n")), count: 9)
                    )
                    let transport = try server.transport()
                    let provider = Provider<StreamEntry>(transport: transport)
                    let first = try await provider.messages(.listen("a"))
                    let second = try await provider.messages(.listen("b"))
                    UnlockInterruption.plan(count) { transport.resume() }
                    UnlockInterruption.arm()
                    await transport.pause()
                    await UnlockInterruption.finish()
                    // Each stream was closed and is asked for again.
                    for _ in 0..<2_000 where server.requests.count < 4 {
                        try await Task.sleep(for: .milliseconds(1))
                    }
                    precondition(server.requests.count == 4, "\(count): \(server.requests.count)")
                    withExtendedLifetime((first, second)) {}
                    await transport.shutdown()
                }
            }
        }

        @Test(
            "The end of a subscription is the last that is told of it, also when it comes with the opening",
            .enabled(if: LockObserver.isCompiledIn)
        )
        func openings() async {
            await #expect(processExitsWith: .success) {
                for count in 1...6 {
                    let server = HTTPServer([.open([]), .refuse])
                    let transport = try server.transport { $0.wireLogger = Arming() }
                    let provider = Provider<StreamEntry>(transport: transport)
                    var iterator = transport.events.makeAsyncIterator()
                    let subscription = Task { try await provider.messages(.listen("a")) }
                    try await waitUntil { server.requests.count == 1 }
                    UnlockInterruption.plan(count) {
                        _ = try? await provider.request(.command(.unsubscribe, topic: "a"))
                    }
                    server.send(Say.stream(": hi\n\n"), on: 0)
                    await UnlockInterruption.finish()
                    await letOthersRun()
                    _ = try? await provider.request(.post(.text("x")))
                    let kinds = await take(to: .sendFailed, &iterator).map(\.kind)
                    let opening: [TransportEvent.Kind] = [.connected, .subscribed]
                    let isOpen = kinds.contains(.connected)
                    precondition(
                        kinds.prefix { $0 != .subscriptionEnded }
                            == [.connecting] + (isOpen ? opening : []) + [.disconnected],
                        "\(count): \(kinds)"
                    )
                    _ = try? await subscription.value
                    await transport.shutdown()
                }
            }
        }
    }
#endif
