import Waybill
import WaybillTesting

/// Tokens that consist of their expiry time, in seconds of the world's clock.
///
/// `@unchecked Sendable`, because: only the tasks of one world touch it, which all run on one thread.
final class SimulatedTokens: @unchecked Sendable {
    private struct Failure: Error {}

    private let world: SimulatedWorld
    private var token: String?
    private(set) var refreshCount = 0

    init(_ world: SimulatedWorld) {
        self.world = world
    }

    /// Returns the current token, or a new one when the current one was refused.
    func token(replacing refused: String?) async throws -> String {
        if let token, token != refused { return token }
        // Once a token is refused, requests that come meanwhile must not get it either.
        token = nil
        try await Task.sleep(for: world.random(.zero ... .milliseconds(1_500)))
        // Another task may have fetched a token meanwhile.
        if let token, token != refused { return token }
        if world.faults.until > world.elapsed, world.chance(0.05) { throw Failure() }
        let expiry = Int(world.elapsed / .seconds(1)) + world.random(40...100)
        token = "\(expiry)"
        refreshCount += 1
        return "\(expiry)"
    }

    /// The credential source of a client.
    var source: CredentialSource {
        CredentialSource { [self] occasion in
            let refused = occasion.refused?.password
            return Credentials(userName: "ada", password: try await token(replacing: refused))
        }
    }

    /// The same source as an interceptor for a provider.
    var interceptor: TokenInterceptor {
        TokenInterceptor(
            .password(userName: "ada"),
            configuration: .init(refreshLimit: .max)
        ) { [self] refused in
            try await token(replacing: refused)
        }
    }

    /// True when a broker accepts the token.
    static func admits(_ token: String?, in world: SimulatedWorld) -> Bool {
        guard let token, let expiry = Int(token) else { return false }
        return world.elapsed < .seconds(expiry)
    }
}
