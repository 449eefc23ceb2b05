import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireCore

/// Design 3: one chain of interceptors for all requests, so that a token is configured once.
@Suite(
    "Every transport: the interceptors of a connection (design 3)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionChainTests {
    /// A service with one token, which is valid until it is replaced.
    private final class Service: Sendable {
        private struct State: Sendable {
            var token = 1
            var isDown = false
            var hasRevoked = false
            var refreshCount = 0
            var shown: [String] = []
        }

        private struct Down: Error {}

        private let state = Locked(State())

        var refreshCount: Int { state.withLock { $0.refreshCount } }
        /// The tokens that clients have used, in order.
        var shown: [String] { state.withLock { $0.shown } }

        func revoke() { state.withLock { $0.token += 1 } }
        /// Makes the token source fail or work.
        func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }
        /// Makes every token invalid.
        func revokeAll() { state.withLock { $0.hasRevoked = true } }

        func admits(_ token: String?) -> Bool {
            state.withLock { state in
                state.shown.append(token ?? "-")
                return !state.hasRevoked && token == "\(state.token)"
            }
        }

        func fetch(_ refused: String?) throws -> String {
            try state.withLock { state in
                if state.isDown { throw Down() }
                if refused != nil { state.refreshCount += 1 }
                return "\(state.token)"
            }
        }
    }

    private static func bench(_ way: Way, _ service: Service) throws -> Bench {
        try Bench(way) { plan in
            plan.broker = { $0.authenticate = { _, password in service.admits(password) } }
        }
    }

    private static func tokens(_ way: Way, _ service: Service, _ clock: ManualClock)
        -> TokenInterceptor
    {
        TokenInterceptor(
            way == .events ? .bearer : .password(userName: "ada"),
            configuration: .init(timeout: nil, refreshLimit: .max, clock: clock)
        ) { refused in
            try service.fetch(refused)
        }
    }

    /// A bench of a new service, with a provider that gets its tokens there.
    private static func chain(_ way: Way) throws -> (Service, Bench, Provider<Talk>) {
        let service = Service()
        let bench = try bench(way, service)
        return (service, bench, bench.provider.intercepted(tokens(way, service, bench.clock)))
    }

    @Test("A connection made on demand shows the token", arguments: Way.allCases)
    func onDemand(way: Way) async throws {
        let (service, _, provider) = try Self.chain(way)
        let messages: Messages<String> = try await provider.messages(.listen())
        try await provider.request(.say("hello"))
        #expect(Set(service.shown) == ["1"])
        withExtendedLifetime(messages) {}
    }

    @Test(
        "A connection made on demand whose token is refused gets another one",
        arguments: Way.allCases
    )
    func refusedOnDemand(way: Way) async throws {
        let service = Service()
        let bench = try Self.bench(way, service)
        let tokens = Self.tokens(way, service, bench.clock)
        _ = try await tokens.token()
        service.revoke()
        let provider = bench.provider.intercepted(tokens)
        let messages: Messages<String> = try await provider.messages(.listen())
        #expect(service.shown == ["1", "2"] && service.refreshCount == 1)
        withExtendedLifetime(messages) {}
    }

    @Test("Each connection after a loss shows the token of its time", arguments: Way.allCases)
    func reconnections(way: Way) async throws {
        let (service, bench, provider) = try Self.chain(way)
        let messages: Messages<String> = try await provider.messages(.listen())
        var watch = bench.watch()
        for count in 1...5 {
            service.revoke()
            await bench.lose(&watch)
            await bench.comeBack(&watch)
            #expect(service.refreshCount == count)
        }
        #expect(service.shown == ["1", "1", "2", "2", "3", "3", "4", "4", "5", "5", "6"])
        withExtendedLifetime(messages) {}
    }

    @Test("The same after an explicit connect", arguments: Way.shared)
    func explicitConnect(way: Way) async throws {
        let (service, bench, provider) = try Self.chain(way)
        try await provider.connect()
        var watch = bench.watch()
        service.revoke()
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        #expect(service.shown == ["1", "1", "2"] && service.refreshCount == 1)
        #expect(provider.isConnected)
    }

    @Test("Refused again, it ends with `unauthorized` after one refresh", arguments: Way.allCases)
    func refusedTwice(way: Way) async throws {
        let (service, bench, provider) = try Self.chain(way)
        let messages: Messages<String> = try await provider.messages(.listen())
        var watch = bench.watch()
        service.revokeAll()
        await bench.lose(&watch)
        bench.clock.advance(by: Bench.wait)
        await watch.until("disconnected (unauthorized")
        let end = await failure { for try await _ in messages {} }
        #expect(end?.code == .unauthorized)
        #expect(service.shown == ["1", "1", "1"] && service.refreshCount == 1)
    }

    @Test(
        "A place of tokens that does not answer is asked at the next attempt",
        arguments: Way.allCases
    )
    func sourceDown(way: Way) async throws {
        let (service, bench, provider) = try Self.chain(way)
        let messages: Messages<String> = try await provider.messages(.listen())
        var watch = bench.watch()
        service.revoke()
        service.setDown(true)
        await bench.lose(&watch)
        bench.clock.advance(by: Bench.wait)
        await watch.until("waiting (notConnected")
        service.setDown(false)
        await bench.comeBack(&watch)
        #expect(service.shown == ["1", "1", "1", "2"])
        withExtendedLifetime(messages) {}
    }

    /// A subscription that starts offline.
    private struct Patient: EntryType {
        var topic: String? { "room" }
        var command: EntryCommand {
            .subscribe(qos: .atLeastOnce, .waitsForConnection)
        }
    }

    @Test(
        "A start without a connection waits for the place of tokens to answer",
        arguments: Way.shared
    )
    func patientStart(way: Way) async throws {
        let service = Service()
        service.setDown(true)
        let bench = try Self.bench(way, service)
        let provider = Provider<Patient>(transport: bench.transport)
            .intercepted(Self.tokens(way, service, bench.clock))
        var watch = bench.watch()
        let messages = try await provider.messages(Patient())
        await watch.until("waiting (notConnected")
        service.setDown(false)
        await bench.comeBack(&watch)
        #expect(service.shown == ["1"])
        withExtendedLifetime(messages) {}
    }

    /// Sets the user name; over HTTP a header with the same purpose.
    private struct Named: Interceptor {
        let name: String
        var seen: Kept<[String]>

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            seen.withLock { seen in
                seen.append("\(name) \(context.command)\(context.isReconnection ? " again" : "")")
            }
            if request.command.kind == .connect { request.command[.userName] = name }
        }
    }

    @Test("The chain is that of the provider that connects first, and stays", arguments: Way.shared)
    func twoProviders(way: Way) async throws {
        let seen = Kept<[String]>([])
        let bench = try Bench(way)
        let first = bench.provider.intercepted(Named(name: "first", seen: seen))
        let second = bench.provider.intercepted(Named(name: "second", seen: seen))
        try await first.request(.say("hello"))
        try await second.request(.say("hello"))
        var watch = bench.watch()
        await watch.until("connected")
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        #expect(
            seen.withLock { $0 } == [
                "first send", "first connect", "second send", "first connect again",
            ]
        )
        // An explicit connect during a reconnection uses its own chain.
        await bench.lose(&watch)
        try await second.connect()
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        #expect(seen.withLock { $0 }.suffix(2) == ["second connect again", "second connect again"])
    }

    @Test("An upgrade header is fresh at each connection", arguments: Way.webSockets)
    func upgradeHeaders(way: Way) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let dialer = TappedDialer()
        let clock = ManualClock()
        let environment = LinkEnvironment(
            dialer: dialer,
            clock: clock.linkTimers,
            random: { 500_000_000 }
        )
        let url = try #require(URL(string: broker.url(for: way.service)))
        let transport: any Transport =
            way.isMQTT
            ? try MQTTTransport(
                url: url,
                configuration: MQTTConfiguration(),
                environment: environment
            )
            : try STOMPTransport(
                url: url,
                configuration: STOMPConfiguration(),
                environment: environment
            )
        let number = Kept(0)
        let tokens = TokenInterceptor(.upgradeHeader("token") { "<\($0)>" }) { _ in
            "\(number.withLock { $0 })"
        }
        let provider = Provider<Talk>(transport: transport).intercepted(tokens)
        try await provider.request(.say("hello"))
        #expect(dialer.written.first?.contains("token: <0>\r\n") == true)
        #expect(dialer.written.first?.contains("Authorization") == false)
        await provider.shutdown()
        await broker.stop()
    }

    @Test("The connection of an event stream or a request keeps no provider alive")
    func letGo() async throws {
        final class Marker: Interceptor {}
        weak var marker: Marker?
        let bench = try Bench(.mqtt5)
        do {
            let interceptor = Marker()
            marker = interceptor
            let provider = bench.provider.intercepted(interceptor)
            try await provider.request(.say("hello"))
            try await provider.disconnect()
        }
        #expect(marker == nil)
    }
}
