#if os(Linux)
    import Testing
    import Waybill
    import WaybillLink
    import WaybillSSE
    import WaybillTesting
    import WireTestSupport

    /// Checks that a shutdown leaves no resources behind.
    ///
    /// The test has a process of its own (`ExitTest`), in which no other test has open connections.
    @Suite("Event stream transport: nothing is left behind", .timeLimit(.minutes(30)))
    struct NothingLeftTests {
        @Test("After shutdown there is no thread and no descriptor of ours")
        func counts() async throws {
            await #expect(processExitsWith: .success) {
                // The first round opens what the runtime keeps.
                try await round(isDropped: false)
                let before = OpenResources(loop: EventLoop.threadName)
                for number in 0..<20 { try await round(isDropped: number.isMultiple(of: 4)) }
                let after = OpenResources(loop: EventLoop.threadName)
                precondition(before.loops == 0 && after.loops == 0, "\(before) became \(after)")
                precondition(after.descriptors == before.descriptors, "\(before) became \(after)")
            }
        }

        @Test("Streams without a reader close their connections")
        func letGo() async throws {
            let broker = LoopbackBroker()
            try broker.start()
            do {
                // However busy the machine is.
                let transport = try SSETransport(url: broker.url(for: .eventStream)) {
                    $0.timeouts.connect = .seconds(600)
                    $0.timeouts.confirmation = .seconds(600)
                }
                let provider = Provider<StreamEntry>(transport: transport)
                let messages = try await provider.messages(.listen())
                try await provider.request(.post(.text("x")))
                #expect(broker.connectionCount == 2)
                withExtendedLifetime(messages) {}
            }
            try await waitUntil { broker.connectionCount == 0 }
            await broker.stop()
        }
    }

    /// Uses a broker, a transport and an event source, then shuts them down.
    private func round(isDropped: Bool) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let url = broker.url(for: .eventStream)
        let transport = try SSETransport(url: url) { $0.timeouts.connect = .seconds(120) }
        let provider = Provider<StreamEntry>(transport: transport)
        let messages = try await provider.messages(.listen())
        let source = try EventSource(url: "\(url)/events")
        let (events, event) = AsyncStream.makeStream(of: String.self)
        source.onOpen { event.yield("open") }
        source.onMessage { event.yield($0.data) }
        source.connect()
        for await line in events where line == "open" { break }
        precondition(
            OpenResources(loop: EventLoop.threadName).loops == 1,
            "the loop's thread is not seen"
        )
        try await provider.request(.post(.text("x"), to: "events"))
        var iterator: Messages<Message>.AsyncIterator? = messages.makeAsyncIterator()
        _ = try await iterator?.next()
        iterator = nil
        for await line in events where line == "x" { break }
        if isDropped { broker.dropConnections() }
        await source.shutdown()
        await transport.shutdown()
        await broker.stop()
        let refused = try SSETransport(url: url)
        _ = try? await Provider<StreamEntry>(transport: refused).messages(.listen())
        await refused.shutdown()
    }
#endif
