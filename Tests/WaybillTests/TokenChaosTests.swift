import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

/// A server with one valid token, which changes. It checks a request's token after a short wait.
private final class TokenServer: Transport {
    private let valid = LockedBox(0)
    private let source = ConnectionStateSource()

    /// The number of the valid token.
    var number: Int { valid.value }

    var states: ConnectionStates { source.states }

    func expire() { valid.change { $0 += 1 } }

    func perform(_ request: Request) async throws -> Receipt {
        let token = request.headers["Authorization"]
        for _ in 0..<(request.body.count % 7) { await Task.yield() }
        guard token == "Bearer \(number)" else { throw expired }
        return Receipt()
    }

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        throw WaybillError(.unsupported, "no streams")
    }

    func shutdown() async {}
}

/// A source that returns the valid token, and fails at times.
private final class TokenOffice: TokenSource {
    struct Closed: Error {}

    let calls = LockedBox(0)
    private let server: TokenServer
    private let dice: LockedBox<SeededGenerator>

    init(server: TokenServer, seed: UInt64) {
        self.server = server
        dice = LockedBox(SeededGenerator(seed: seed))
    }

    func token() async throws -> String {
        calls.change { $0 += 1 }
        var roll: UInt64 = 0
        dice.change { roll = $0.next() }
        for _ in 0..<(roll % 16) { await Task.yield() }
        try Task.checkCancellation()
        if roll >> 60 == 0 { throw Closed() }
        return "\(server.number)"
    }
}

@Suite("Tokens: anything at any time", .inSimulation, .timeLimit(.minutes(30)))
struct TokenChaosTests {
    @Test(
        "Every request ends once, while tokens expire, refreshes fail and callers give up",
        arguments: [1, 20_252, 987_654_321] as [UInt64]
    )
    func chaos(seed: UInt64) async throws {
        var dice = SeededGenerator(seed: seed)
        let server = TokenServer()
        let office = TokenOffice(server: server, seed: seed &+ 1)
        let interceptor = TokenInterceptor(
            source: office,
            configuration: .init(timeout: nil, refreshLimit: .max)
        )
        let provider = Provider<TestEntry>(transport: server).intercepted(interceptor)
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<2_000 {
            let roll = Int(truncatingIfNeeded: dice.next() >> 40)
            let body = EntryBody.bytes(Array(repeating: 0, count: roll % 100))
            tasks.append(Task { try await provider.request(.send(body)) })
            if roll % 50 == 0 { server.expire() }
            if roll % 700 == 0 { interceptor.forget() }
            if roll % 3 == 0 { tasks[roll % tasks.count].cancel() }
            if number % 20 == 0 { await Task.yield() }
        }
        var counts = ["done": 0, "refused": 0, "cancelled": 0]
        for task in tasks {
            switch await task.result {
            case .success: counts["done", default: 0] += 1
            case .failure(let error as WaybillError):
                #expect(error.code == .unauthorized, "\(error)")
                counts["refused", default: 0] += 1
            case .failure(let error):
                #expect(error is CancellationError, "\(error)")
                counts["cancelled", default: 0] += 1
            }
        }
        #expect(counts.values.reduce(0, +) == 2_000)
        #expect(counts["done", default: 0] > 0, "\(counts)")
        // The interceptor still works: a new request does not wait for a refresh that has failed.
        while (try? await provider.request(.send(.none))) == nil, !Task.isCancelled {}
        #expect(office.calls.value > 0)
    }
}
