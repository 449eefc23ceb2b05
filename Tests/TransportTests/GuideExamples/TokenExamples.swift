import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

// The example of the page "Tokens and other interceptors" that needs a transport, unchanged.

/// A service that says where to connect.
private struct Account: Sendable {
    struct Grant: Sendable {
        let userName: String
        let token: String
        let url: URL?
    }

    private let number = Kept(0)

    func grant(replacing token: String?) async throws -> Grant {
        let count = number.withLock { number in
            number += 1
            return number
        }
        return Grant(
            userName: "ada",
            token: token == nil ? "t\(count)" : "new",
            url: URL(string: "ws://node\(count):7/mqtt?X-Amz-Signature=s\(count)")
        )
    }
}

@Suite("Guide: credentials", .inSimulation, .timeLimit(.minutes(30)))
struct TokenExamples {
    @Test("A service that says where to connect is asked before each attempt")
    func address() async throws {
        let account = Account()
        var configuration = MQTTConfiguration()
        configuration.credentials = CredentialSource { occasion in
            let grant = try await account.grant(replacing: occasion.refused?.password)
            return Credentials(userName: grant.userName, password: grant.token, url: grant.url)
        }
        let clock = ManualClock()
        let transport = try MQTTTransport(
            to: LoopbackBroker(clock: clock),
            overWebSocket: true,
            configuration: configuration,
            clock: clock
        )
        let log = LineLog()
        observe(transport.events) { event in
            if event.kind == .connecting { log.append(event.host ?? "") }
        }
        let provider = Provider<CommandEntry>(transport: transport)
        try await provider.connect()
        try await provider.disconnect()
        try await provider.connect()
        await transport.shutdown()
        try await waitUntil { log.all.count == 2 }
        #expect(log.all == ["node1:7", "node2:7"])
    }
}
