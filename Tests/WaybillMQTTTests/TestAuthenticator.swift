import Waybill
import WaybillMQTT
import WireCore

/// An authenticator with the method `m`, whose steps a test sets.
final class TestAuthenticator: MQTTAuthenticator {
    struct Failure: Error {}

    struct Steps: Sendable {
        var make: @Sendable (MQTTAuthenticationContext) async throws -> Void = { _ in }
        var begin: @Sendable () async throws -> [UInt8]? = { nil }
        var respond: @Sendable ([UInt8]?) async throws -> [UInt8]? = { $0 }
        var finish: @Sendable ([UInt8]?) async throws -> Void = { _ in }
        var properties = MQTTAuthProperties()
        var receive: @Sendable (MQTTAuthProperties) -> Void = { _ in }
    }

    private struct Exchange: MQTTAuthenticationExchange {
        let steps: Steps

        mutating func begin() async throws -> [UInt8]? { try await steps.begin() }
        mutating func respond(to data: [UInt8]?) async throws -> [UInt8]? {
            try await steps.respond(data)
        }
        mutating func finish(with data: [UInt8]?) async throws { try await steps.finish(data) }
        var properties: MQTTAuthProperties { steps.properties }
        mutating func receive(_ properties: MQTTAuthProperties) { steps.receive(properties) }
    }

    let method = "m"
    private let steps: Locked<Steps>
    private let made = Locked<[MQTTAuthenticationContext]>([])

    init(_ change: (inout Steps) -> Void = { _ in }) {
        var steps = Steps()
        change(&steps)
        self.steps = Locked(steps)
    }

    /// The contexts of all exchanges so far.
    var contexts: [MQTTAuthenticationContext] { made.withLock { $0 } }

    /// Changes the steps of later exchanges.
    func change(_ change: (inout Steps) -> Void) {
        steps.withLock { change(&$0) }
    }

    func makeExchange(
        _ context: MQTTAuthenticationContext
    ) async throws -> any MQTTAuthenticationExchange {
        made.withLock { $0.append(context) }
        let steps = steps.withLock { $0 }
        try await steps.make(context)
        return Exchange(steps: steps)
    }
}
