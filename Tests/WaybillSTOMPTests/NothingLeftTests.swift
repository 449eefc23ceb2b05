#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillLink
    import WaybillSTOMP
    import WaybillTesting
    import WireTestSupport

    /// Checks that a shutdown leaves no resources behind.
    ///
    /// The test has a process of its own (`ExitTest`), in which no other test has open connections.
    @Suite("STOMP transport: nothing is left behind", .timeLimit(.minutes(30)))
    struct NothingLeftTests {
        @Test("After shutdown there is no thread and no descriptor of ours")
        func counts() async throws {
            await #expect(processExitsWith: .success) {
                // The first round opens what the runtime keeps.
                for service in services { try await round(service, isDropped: false) }
                let before = await OpenResources.settled(loop: EventLoop.threadName) {
                    $0.loops == 0
                }
                for number in 0..<20 {
                    try await round(services[number % 2], isDropped: number.isMultiple(of: 4))
                }
                let after = await OpenResources.settled(loop: EventLoop.threadName) {
                    $0.loops == 0 && $0.descriptors == before.descriptors
                }
                precondition(before.loops == 0 && after.loops == 0, "\(before) became \(after)")
                precondition(after.descriptors == before.descriptors, "\(before) became \(after)")
            }
        }

        @Test("A transport without references closes its connection")
        func letGo() async throws {
            let fixture = try Fixture()
            do {
                let transport = try fixture.transport()
                let provider = Provider<STOMPEntry>(transport: transport)
                try await provider.request(.connect)
                await expectError(.timedOut) { try await ask(provider) }
                #expect(fixture.broker.connectionCount == 1)
            }
            try await waitUntil { fixture.broker.connectionCount == 0 }
            await fixture.broker.stop()
        }
    }

    /// Sends a request to a destination without a subscriber.
    private func ask(_ provider: Provider<STOMPEntry>) async throws -> Message {
        // Long enough for a slow machine to subscribe for the reply.
        try await provider.request(
            .command(.send(.timeout(.milliseconds(50))), topic: "/topic/ask"),
            as: Message.self
        )
    }

    /// Uses a broker and a transport, then shuts them down.
    private func round(_ service: LoopbackBroker.Service, isDropped: Bool) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let url = broker.url(for: service)
        let transport = try STOMPTransport(url: url) { $0.timeouts.connect = .seconds(120) }
        let provider = Provider<STOMPEntry>(transport: transport)
        let messages = try await provider.messages(.subscribe())
        precondition(
            OpenResources(loop: EventLoop.threadName).loops == 1,
            "the loop's thread is not seen"
        )
        try await provider.request(.send("x"))
        var iterator: Messages<Message>.AsyncIterator? = messages.makeAsyncIterator()
        _ = try await iterator?.next()
        iterator = nil
        _ = try? await ask(provider)
        if isDropped { broker.dropConnections() }
        await transport.shutdown()
        await broker.stop()
        let refused = try STOMPTransport(url: url)
        _ = try? await Provider<STOMPEntry>(transport: refused).request(.connect)
        await refused.shutdown()
    }
#endif
