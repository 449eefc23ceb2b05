import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireCore
import WireTestSupport

/// A transport that accepts every request, and acknowledges requests when a test asks for it.
private final class HoldingTransport: ImmediateTransport {
    typealias Completion = @Sendable (Result<Receipt, any Error>) -> Void

    private struct State: Sendable {
        var texts: [String] = []
        var waiting: [Completion] = []
        var withdrawnCount = 0
    }

    private let state = Locked(State())
    private let mock = MockTransport()

    var texts: [String] { state.withLock { $0.texts } }
    var withdrawnCount: Int { state.withLock { $0.withdrawnCount } }
    var states: ConnectionStates { mock.states }

    func perform(_ request: Request) async throws -> Receipt { Receipt() }
    func subscribe(_ request: Request) async throws -> Messages<Message> {
        try await mock.subscribe(request)
    }
    func shutdown() async {}

    func submit(_ request: Request, _ completion: @escaping Completion) -> Submission {
        state.withLock { state in
            state.texts.append(request.body.text ?? "")
            state.waiting.append(completion)
        }
        return .taken { self.state.withLock { $0.withdrawnCount += 1 } }
    }

    /// Acknowledges the oldest requests.
    func confirm(_ count: Int) {
        let confirmed = state.withLock { state in
            defer { state.waiting.removeFirst(count) }
            return state.waiting.prefix(count)
        }
        for completion in confirmed { completion(.success(Receipt())) }
    }
}

private struct SequenceFailure: Error {}

@Suite("Sequences of entries", .inSimulation, .timeLimit(.minutes(30))) struct BulkTests {
    private static func entries(_ numbers: Range<Int>) -> [LoopbackEntry] {
        numbers.map { .send("\($0)", to: "board") }
    }

    @Test(
        "Over a broker all are confirmed, and come in order",
        arguments: [LoopbackBroker.Service.mqtt, .stomp, .eventStream]
    )
    func brokers(_ service: LoopbackBroker.Service) async throws {
        let bench = LoopbackBench()
        let receiver = Provider<LoopbackEntry>(transport: try bench.transport(.mqtt))
        var messages = try await receiver.messages(.subscribe("board")).makeAsyncIterator()
        let sender = Provider<LoopbackEntry>(transport: try bench.transport(service))
        let count = service == .eventStream ? 200 : 3_000
        let entries = (0..<count).map { LoopbackEntry.send("\($0)", to: "board") }
        let results = await sender.request(contentsOf: entries)
        #expect(results.isComplete && results.count == count && results.firstError == nil)
        for expected in 0..<count {
            try #require(try await messages.next()?.text == "\(expected)")
        }
        let stream = AsyncStream<LoopbackEntry> { continuation in
            for number in 0..<100 { continuation.yield(.send("\(number)", to: "board")) }
            continuation.finish()
        }
        let more = await sender.request(contentsOf: stream, window: 3)
        #expect(more.isComplete && more.count == 100)
        for expected in 0..<100 {
            try #require(try await messages.next()?.text == "\(expected)")
        }
        await bench.broker.stop()
    }

    @Test("No more than the window are under way, and half of it has to be free before the next")
    func window() async throws {
        let transport = HoldingTransport()
        let provider = Provider<LoopbackEntry>(transport: transport)
        let sending = Task {
            await provider.request(contentsOf: Self.entries(0..<100), window: 8)
        }
        try await waitUntil { transport.texts.count == 8 }
        transport.confirm(3)
        await untilQuiet()
        #expect(transport.texts.count == 8)
        transport.confirm(1)
        try await waitUntil { transport.texts.count == 12 }
        for _ in 0..<23 {
            let count = transport.texts.count
            transport.confirm(4)
            try await waitUntil { transport.texts.count == min(count + 4, 100) }
        }
        transport.confirm(4)
        let results = await sending.value
        #expect(results.isComplete && results.count == 100)
        #expect(transport.texts == (0..<100).map { "\($0)" })
    }

    @Test("Cancelled, it takes no more, withdraws, and tells which were sent", arguments: [0, 2])
    func cancelled(_ confirmed: Int) async throws {
        let transport = HoldingTransport()
        let provider = Provider<LoopbackEntry>(transport: transport)
        let sending = Task {
            await provider.request(contentsOf: Self.entries(0..<100), window: 8)
        }
        try await waitUntil { transport.texts.count == 8 }
        transport.confirm(confirmed)
        sending.cancel()
        let results = await sending.value
        #expect(results.count == 8 && transport.texts.count == 8 && !results.isComplete)
        #expect(results.stopCause is CancellationError)
        #expect(transport.withdrawnCount == 8 - confirmed)
        for (number, result) in results.enumerated() {
            switch result {
            case .success: #expect(number < confirmed)
            case .failure(let error): #expect(number >= confirmed && error.code == .cancelled)
            }
        }
        let nothing = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await provider.request(contentsOf: Self.entries(0..<3))
        }
        let none = await nothing.value
        #expect(none.isEmpty && none.stopCause is CancellationError)
    }

    @Test(
        "One that fails does not stop the others, and is tried again where an interceptor says so"
    )
    func failures() async throws {
        let mock = MockTransport().expect(
            .send,
            .success,
            .failure(WaybillError(.rejected, "no")),
            .after(.zero, .success)
        )
        let provider = Provider<LoopbackEntry>(transport: mock)
        var entries = Self.entries(0..<5)
        entries[3] = .subscribe("board")
        let results = await provider.request(contentsOf: entries)
        let codes = results.map { result -> WaybillError.Code? in
            if case .failure(let error) = result { error.code } else { nil }
        }
        #expect(codes == [nil, .rejected, nil, .invalidEntry, nil])
        #expect((results.firstError as? WaybillError)?.code == .rejected)
        #expect(results.stopCause == nil && !results.isComplete)

        let slow = MockTransport().expect(
            .send,
            .failure(WaybillError(.timedOut, "slow")),
            .success
        )
        let retrying = Provider<LoopbackEntry>(transport: slow).intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .constant(.zero))
        )
        #expect(await retrying.request(contentsOf: Self.entries(0..<5)).isComplete)
        #expect(slow.requests.count == 6)
    }

    @Test("A sequence that fails ends the sending, and says why")
    func failingSequence() async throws {
        let mock = MockTransport().expect(.send)
        let provider = Provider<LoopbackEntry>(transport: mock)
        let stream = AsyncThrowingStream<LoopbackEntry, any Error> { continuation in
            for entry in Self.entries(0..<3) { continuation.yield(entry) }
            continuation.finish(throwing: SequenceFailure())
        }
        let results = await provider.request(contentsOf: stream)
        #expect(results.count == 3 && results.stopCause is SequenceFailure)
        #expect(mock.requests.count == 3)
    }
}
