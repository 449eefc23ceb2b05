import Waybill
import WaybillTesting

/// Tokens that say themselves when they expire, in seconds of the world's clock.
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

    /// The present token, or another one in the place of one that was refused.
    func token(replacing refused: String?) async throws -> String {
        if let token, token != refused { return token }
        // Known to be refused: not even for those who ask meanwhile.
        token = nil
        try await Task.sleep(for: world.random(.zero ... .milliseconds(1_500)))
        // Another task may have fetched one meanwhile.
        if let token, token != refused { return token }
        if world.faults.until > world.elapsed, world.chance(0.05) { throw Failure() }
        let expiry = Int(world.elapsed / .seconds(1)) + world.random(40...100)
        token = "\(expiry)"
        refreshCount += 1
        return "\(expiry)"
    }

    /// Where a client's credentials come from.
    var source: CredentialSource {
        CredentialSource { [self] occasion in
            let refused = occasion.refused?.password
            return Credentials(userName: "ada", password: try await token(replacing: refused))
        }
    }

    /// The same for the chain of a provider.
    var interceptor: TokenInterceptor {
        TokenInterceptor(
            .password(userName: "ada"),
            configuration: .init(refreshLimit: .max)
        ) { [self] refused in
            try await token(replacing: refused)
        }
    }

    /// Whether a broker lets a client in.
    static func admits(_ token: String?, in world: SimulatedWorld) -> Bool {
        guard let token, let expiry = Int(token) else { return false }
        return world.elapsed < .seconds(expiry)
    }
}
