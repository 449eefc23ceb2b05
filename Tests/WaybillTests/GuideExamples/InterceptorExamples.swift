import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

// The examples of the pages "Tokens and other interceptors" and "Connecting and disconnecting", unchanged.

private struct Tenant: Interceptor {
    let name: String

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        request.headers["tenant"] = name
    }
}

private struct Stopwatch: ReceiptInterceptor {
    let metrics: Metrics

    func confirm(
        _ receipt: Receipt,
        of request: Request,
        after duration: Duration,
        context: InterceptorContext
    ) {
        metrics.record(duration, command: context.command)
    }
}

private struct Metrics: Sendable {
    let lines = LockedBox<[String]>([])

    func record(_ duration: Duration, command: String) {
        lines.change { $0.append("\(command) \(duration)") }
    }
}

@Suite("Guide: interceptors and the life of a connection", .inSimulation, .timeLimit(.minutes(30)))
struct InterceptorExamples {
    @Test("An interceptor of one's own, and a measuring one")
    func own() async throws {
        let clock = ManualClock()
        let metrics = Metrics()
        let mock = MockTransport(clock: clock).expect(.send)
        let chat = Provider<TestEntry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        )
        .intercepted(Tenant(name: "red"), Stopwatch(metrics: metrics))
        try await chat.request(.send(.none))
        #expect(mock.requests.map { $0.headers["tenant"] } == ["red"])
        #expect(metrics.lines.value == ["send 0.0 seconds"])
    }

    @Test("A scope connects, and disconnects however it ends")
    func scope() async throws {
        struct Failure: Error {}
        let mock = MockTransport().expect(.connect).expect(.send).expect(.disconnect)
        let chat = Provider<TestEntry>(transport: mock)
        let answer = try await chat.withConnection {
            try await chat.request(.send(.none))
            return 42
        }
        #expect(answer == 42)
        await #expect(throws: Failure.self) {
            try await chat.withConnection { throw Failure() }
        }
        let scope = Task {
            try await chat.withConnection {
                while true { try await Task.sleep(for: .seconds(3_600)) }
            }
        }
        try await waitUntil { mock.requests.count == 6 }
        scope.cancel()
        await #expect(throws: CancellationError.self) { try await scope.value }
        #expect(
            mock.requests.map(\.command.name) == [
                "connect", "send", "disconnect", "connect", "disconnect", "connect", "disconnect",
            ]
        )
    }

    @Test("A scope in which the transport is shut down ends well")
    func shutDownScope() async throws {
        let mock = MockTransport(like: .mqtt5).expect(.connect)
        let chat = Provider<TestEntry>(transport: mock)
        let answer = try await chat.withConnection {
            await chat.shutdown()
            return 42
        }
        #expect(answer == 42)
    }

    @Test("A service runs until it is cancelled, and ends when the transport gives up")
    func service() async throws {
        let mock = MockTransport().expect(.connect).expect(.disconnect)
        let chat = Provider<TestEntry>(transport: mock)
        let service = Task { try await chat.run() }
        try await waitUntil { chat.isConnected }
        service.cancel()
        try await service.value
        #expect(mock.requests.map(\.command.name) == ["connect", "disconnect"])
        #expect(!chat.isConnected)
    }
}
