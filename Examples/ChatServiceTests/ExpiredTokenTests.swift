import ChatService
import Testing
import WaybillTesting

/// Failures that a service layer survives, shown without a server. The test moves the clock, so half a minute of
/// waiting takes milliseconds.
@Suite("Chat service: tokens that expire, servers that fail", .timeLimit(.minutes(30)))
struct ExpiredTokenTests {
    let clock = ManualClock()
    let mock: MockTransport
    let account = Account()
    let refusal = WaybillError(.unauthorized, "token expired")

    init() {
        mock = MockTransport(clock: clock)
    }

    /// The service as the app builds it, with the test's clock.
    private func service(_ placement: TokenPlacement, limit: Duration? = nil) -> ChatService {
        let provider = Provider<ChatEntry>(
            transport: mock,
            configuration: ProviderConfiguration(clock: clock)
        )
        let tokens = TokenInterceptor(
            placement,
            source: account,
            configuration: .init(timeout: limit, clock: clock)
        )
        let retries = RetryPolicy(delay: .exponential(isJittered: false))
        return ChatService(provider: provider.intercepted(tokens, retries))
    }

    private var passwords: [String?] {
        mock.requests.map { $0.command[.password] }
    }

    @Test("A token expires during a hundred sends: one refresh, and every message arrives")
    func expiresInTheMiddle() async throws {
        mock.expect(.send, .after(.seconds(1), .failure(refusal)))
        let service = service(.bearer)
        let speakers = (0..<100).map { number in
            Task { try await service.say("hi", as: "user \(number)", in: "lobby") }
        }
        await clock.waitForSleepers(100)
        mock.expect(.send)
        clock.advance(by: .seconds(1))
        for speaker in speakers { try await speaker.value }
        #expect(await account.count == 2)
        #expect(
            mock.requests.suffix(100).allSatisfy { $0.headers["Authorization"] == "Bearer token 2" }
        )
    }

    @Test("For a locked account each call fails, and the sign-in is asked only five times")
    func signedOut() async throws {
        await account.lock()
        mock.expect(.subscribe, .failure(refusal))
        let service = service(.bearer)
        for _ in 0..<20 {
            let error = await #expect(throws: WaybillError.self) {
                _ = try await service.join("lobby")
            }
            #expect(error?.code == .unauthorized)
        }
        #expect(await account.count == 5)
    }

    @Test("A sign-in that hangs does not hang the app: half a minute, by a clock moved by hand")
    func hangs() async throws {
        await account.hang()
        let service = service(.password(), limit: .seconds(30))
        let connecting = Task { try await service.connect() }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(30))
        let error = await #expect(throws: WaybillError.self) { try await connecting.value }
        #expect(error?.underlying as? TokenFailure == .timedOut)
    }

    @Test("A server that is down for a while, and then has a new opinion about the token")
    func outage() async throws {
        let down = WaybillError(.connectionRefused, "down")
        mock.expect(.connect, .failure(down), .failure(down), .failure(refusal), .success)
        let service = service(.password(userName: "ada"))
        let connecting = Task { try await service.connect() }
        for delay in [1, 2] {
            await clock.waitForSleepers()
            clock.advance(by: .seconds(delay))
        }
        try await connecting.value
        #expect(passwords == ["token 1", "token 1", "token 1", "token 2"])
    }
}

/// The user's account at an identity provider, which behaves as the test says.
actor Account: TokenSource {
    struct Locked: Error {}

    private(set) var count = 0
    private var isLocked = false
    private var isHanging = false

    func lock() { isLocked = true }
    func hang() { isHanging = true }

    func token() async throws -> String {
        count += 1
        if isLocked { throw Locked() }
        if isHanging { for await _ in AsyncStream<Never>.makeStream().stream {} }
        return "token \(count)"
    }
}
