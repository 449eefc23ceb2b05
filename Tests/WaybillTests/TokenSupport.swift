import Testing
import Waybill
import WaybillTesting
import WireTestSupport

/// An entry with any command.
struct PlainEntry: EntryType {
    var command: EntryCommand
    var topic: String? = "t"
    var needsToken = true

    static let send = PlainEntry(command: .send)
    static let connect = PlainEntry(command: .connect, topic: nil)
    static let subscribe = PlainEntry(command: .subscribe)
}

/// A source of `token 1`, `token 2` and so on, which records its calls.
final class NumberedTokens: TokenSource {
    struct Failure: Error {}

    private let body: @Sendable (Int) async throws -> Void
    private let log = LockedBox<[String]>([])

    /// - Parameter body: Called with the number of each call before the token is returned. It may wait or throw.
    init(_ body: @escaping @Sendable (Int) async throws -> Void = { _ in }) {
        self.body = body
    }

    /// For each call, `token`, or `refresh` with the refused token.
    var calls: [String] { log.value }

    func token() async throws -> String { try await next("token") }

    func refresh(_ refused: String) async throws -> String { try await next("refresh \(refused)") }

    private func next(_ call: String) async throws -> String {
        log.change { $0.append(call) }
        let number = calls.count
        try await body(number)
        return "token \(number)"
    }
}

/// Holds tasks until it is opened.
final class Gate: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    func open() { continuation.finish() }

    /// - Throws: `CancellationError`.
    func pass() async throws {
        for await _ in stream {}
        try Task.checkCancellation()
    }
}

/// Counts the requests on their way out, and the errors on their way back.
///
/// It runs on the main actor without suspending. When another task can read the count, each counted request already
/// waits in the token's interceptor.
struct Counting: Interceptor {
    let count: LockedBox<Int>

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        count.change { $0 += 1 }
    }

    func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        count.change { $0 += 1_000 }
        return .noOpinion
    }
}

/// Holds requests until a number of them have arrived. No token is refused before all requests have one.
struct Meeting: Interceptor {
    let size: Int
    private let count = LockedBox(0)

    init(size: Int) { self.size = size }

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        count.change { $0 += 1 }
        try await waitUntil { count.value >= size }
    }
}

extension MockTransport {
    /// The tokens of the requests, in order; a dash for none.
    var tokens: [String] {
        requests.map { $0.command[.password] ?? $0.headers["Authorization"] ?? "-" }
    }
}

/// The error for an expired token.
let expired = WaybillError(.unauthorized, "no", peerReason: "expired")

/// The configuration of most tests. It has no time limit, since the timer of one would also sleep by the clock.
func untimed(_ clock: any Clock<Duration> = ContinuousClock()) -> TokenInterceptor.Configuration {
    TokenInterceptor.Configuration(timeout: nil, clock: clock)
}
