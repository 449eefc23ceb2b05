import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

@Suite("STOMP transport: failures", .inSimulation, .timeLimit(.minutes(30))) struct FailureTests {
    @Test("A refused subscription is an error with the server's words", arguments: services)
    func refusedSubscription(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        fixture.broker.faults.refusesSubscriptions = ["secret"]
        let (transport, provider) = try fixture.provider()
        let error = await expectError(.rejected) {
            try await provider.messages(.subscribe("secret"))
        }
        #expect(error?.topic == "secret" && error?.command == "subscribe")
        #expect(error?.peerReason == "Subscription refused")
        let underlying = try #require(error?.underlying as? STOMPServerError)
        #expect(underlying.headers["receipt-id"] != nil)
        // ERROR ends the connection. The next request makes a new one.
        #expect("\(transport.states.current)".hasPrefix("disconnected (connectionLost"))
        _ = try await provider.messages(.subscribe("public"))
        await fixture.end(transport)
    }

    @Test("A refused connection: credentials, and everything else", arguments: services)
    func refusedConnection(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        for (refusal, code) in [
            (LoopbackFaults.Refusal.badUserNameOrPassword, WaybillError.Code.unauthorized),
            (.notAuthorized, .unauthorized), (.serverUnavailable, .rejected),
            (.clientIdentifierNotValid, .rejected),
        ] {
            fixture.broker.faults.refusesConnections = refusal
            let (transport, provider) = try fixture.provider()
            let error = await expectError(code) { try await provider.request(.connect) }
            #expect(error?.underlying is STOMPServerError)
            await transport.shutdown()
        }
        await fixture.broker.stop()
    }

    @Test("A refused upgrade: status and body are the error's")
    func refusedUpgrade() async throws {
        let fixture = try Fixture(.stompOverWebSocket)
        fixture.broker.faults.refusesUpgrades = 503
        let (transport, provider) = try fixture.provider()
        let error = await expectError(.connectionRefused) { try await provider.request(.connect) }
        let refusal = try #require(error?.underlying as? HTTPRefusal)
        #expect(refusal.status == 503 && refusal.body.text == "refused on demand")
        fixture.broker.faults.refusesUpgrades = nil
        try await provider.request(.connect)
        #expect(fixture.broker.connectionCount == 1)
        await fixture.end(transport)
    }

    @Test("An ERROR that answers no request ends everything with the server's words")
    func errorWithoutReceipt() async throws {
        let fixture = try Fixture()
        fixture.broker.faults.withholdsReceipts = true
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(
            .subscribe("t", .receipt(.none))
        )
        let pending = Task { try await provider.request(.send("x", to: "t")) }
        // The message has arrived. Its receipt will not come.
        #expect(try await texts(1, messages) == ["x"])
        fixture.broker.disconnectClients()
        let failure = await expectError(.connectionLost) { try await pending.value }
        let end = await expectError(.connectionLost) { for try await _ in messages {} }
        for error in [failure, end] {
            #expect(error?.peerReason == "The server is going away")
            #expect(error?.underlying is STOMPServerError)
        }
        #expect("\(transport.states.current)".contains("The server is going away"))
        await fixture.end(transport)
    }

    @Test("Shut down with calls pending: each fails once, with shutDown", arguments: services)
    func shutdownWithCallsPending(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        fixture.broker.faults.withholdsReceipts = true
        let (transport, provider) = try fixture.provider { $0.timeouts.close = .milliseconds(50) }
        try await provider.request(.connect)
        let calls = (0..<10).map { number in
            Task { try await provider.request(.send("\(number)")) }
        }
        try await waitUntil { fixture.lines.count("← SEND") >= 10 }
        await transport.shutdown()
        for call in calls { await expectError(.shutDown) { try await call.value } }
        await fixture.broker.stop()
    }

    @Test("A cancelled call ends at once; what it sent stays sent")
    func cancelled() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider { $0.timeouts.close = .milliseconds(50) }
        let messages = try await provider.messages(.subscribe("t"))
        fixture.broker.faults.withholdsReceipts = true
        let call = Task { try await provider.request(.send("x", to: "t")) }
        #expect(try await texts(1, messages) == ["x"])
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        fixture.broker.faults.withholdsReceipts = false
        try await provider.request(.send("y", to: "t"))
        #expect(try await texts(1, messages) == ["y"])
        await fixture.end(transport)
    }

    @Test("Slow and split delivery changes nothing", arguments: services)
    func splitBytes(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        fixture.broker.faults.splitsWrites = 1
        fixture.broker.faults.delay = .milliseconds(2)
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe("t"))
        for text in ["1", "2", "3"] { try await provider.request(.send(text, to: "t")) }
        #expect(try await texts(3, messages) == ["1", "2", "3"])
        await fixture.end(transport)
    }

    @Test("Dropped with calls pending: every one fails once, one state change", arguments: services)
    func droppedWithCallsPending(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        fixture.broker.faults.withholdsReceipts = true
        let (transport, provider) = try fixture.provider()
        try await provider.request(.connect)
        var states = transport.states.makeAsyncIterator()
        let calls = (0..<20).map { _ in Task { try await provider.request(.send("x")) } }
        try await waitUntil { fixture.lines.count("← SEND") >= 20 }
        fixture.broker.dropConnections()
        for call in calls { await expectError(.connectionLost) { try await call.value } }
        #expect("\(await states.next()!)" == "connected")
        #expect("\(await states.next()!)".hasPrefix("disconnected (connectionLost"))
        fixture.broker.faults.withholdsReceipts = false
        try await provider.request(.connect)
        #expect("\(await states.next()!)".hasPrefix("connecting"))
        await fixture.end(transport)
    }

    // MARK: Retries

    /// Asks for a number of retries, whatever the error.
    private struct Stubborn: Interceptor {
        let count: Int

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision {
            .retry(count: count, delay: .zero)
        }
    }

    @Test(
        "The server answers ERROR for ever: exactly so many re-sends, whatever the command",
        arguments: services,
        [LoopbackFaults.Request.connect, .subscribe, .send]
    )
    func retryLimit(
        service: LoopbackBroker.Service,
        kind: LoopbackFaults.Request
    ) async throws {
        for _ in 0..<5 {
            let fixture = try Fixture(service)
            fixture.broker.faults.answersWithError = [kind: .max]
            let transport = try fixture.transport()
            let provider = Provider<STOMPEntry>(transport: transport)
                .intercepted(Stubborn(count: 3))
            let error = await expectError(.rejected) {
                switch kind {
                case .connect: try await provider.request(.connect)
                case .subscribe: _ = try await provider.messages(.subscribe("t"))
                default: try await provider.request(.send("x"))
                }
            }
            #expect(error?.attempt == 4)
            let name =
                switch kind {
                case .connect: "← CONNECT"
                case .subscribe: "← SUBSCRIBE"
                default: "← SEND"
                }
            #expect(fixture.lines.count(name) == 4)
            await fixture.end(transport)
        }
    }

    @Test("ERROR twice, then not: the third attempt does it")
    func retrySucceeds() async throws {
        let fixture = try Fixture()
        fixture.broker.faults.answersWithError = [.send: 2]
        let transport = try fixture.transport()
        let provider = Provider<STOMPEntry>(transport: transport).intercepted(Stubborn(count: 3))
        try await provider.request(.send("x"))
        #expect(fixture.lines.count("← SEND") == 3)
        await fixture.end(transport)
    }

    @Test("Two subscribers, one message: two callbacks; after a reconnect only the other's")
    func callbacks() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let heard = LineLog()
        let entry = STOMPEntry.subscribe("t")
        let first = provider.request(of: String.self, entry: entry) { result in
            if case .success(let text) = result { heard.append("first \(text)") }
        }
        let second = provider.request(of: String.self, entry: entry) { result in
            if case .success(let text) = result { heard.append("second \(text)") }
        }
        try await waitUntil { fixture.lines.count("→ RECEIPT") >= 2 }
        try await provider.request(.send("1", to: "t"))
        try await waitUntil { heard.all.count >= 2 }
        #expect(heard.all.sorted() == ["first 1", "second 1"])
        first.cancel()
        try await waitUntil { fixture.lines.count("← UNSUBSCRIBE") >= 1 }
        try await provider.request(.disconnect)
        second.cancel()
        try await provider.request(.connect)
        let again = provider.request(of: String.self, entry: entry) { result in
            if case .success(let text) = result { heard.append("again \(text)") }
        }
        try await waitUntil { fixture.lines.count("← SUBSCRIBE") >= 3 }
        try await provider.request(.send("2", to: "t"))
        try await waitUntil { heard.all.count >= 3 }
        try await provider.request(.disconnect)
        #expect(heard.all.dropFirst(2) == ["again 2"])
        again.cancel()
        await fixture.end(transport)
    }

    /// Adds a header after a short wait.
    private struct Stamp: Interceptor {
        let name: String
        let seen: LineLog

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            await Task.yield()
            seen.append("\(name) sees \(request.headers.map(\.name))")
            request.headers[name] = "\(context.attempt)"
        }

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision {
            seen.append("original \(request.headers.map(\.name))")
            return .retry(count: 1, delay: .zero)
        }
    }

    @Test("Two asynchronous interceptors: the second sees the first one's header, at every attempt")
    func interceptors() async throws {
        let fixture = try Fixture()
        fixture.broker.faults.answersWithError = [.connect: 1]
        let seen = LineLog()
        let transport = try fixture.transport()
        let provider = Provider<STOMPEntry>(transport: transport)
            .intercepted(Stamp(name: "a", seen: seen))
            .intercepted(Stamp(name: "b", seen: seen))
        try await provider.request(.connect)
        let attempt = [#"a sees []"#, #"b sees ["a"]"#]
        #expect(seen.all == attempt + ["original []"] + attempt)
        await fixture.end(transport)
    }
}
