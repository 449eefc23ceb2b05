import Foundation
import Waybill
import WaybillSSE

/// The issuer of the tokens of one test, which also counts their use: `Tests/Servers/tokens_peer.py`.
struct TokenAuthority: Sendable {
    /// The counts for the tokens of one test.
    struct Counts: Codable, Sendable {
        /// Tokens that were issued.
        var issued: Int
        /// Uses of a valid token.
        var accepted: Int
        /// Uses of an expired token.
        var refused: Int
        /// Different expired tokens that were used.
        var expired: Int
        /// Uses of something that is not a token.
        var invalid: Int
    }

    /// The name that tells the tokens of this test from those of others.
    private let run = "run\(UInt64.random(in: 0 ... .max))"
    private let client: EventStreamClient

    init() throws {
        client = try EventStreamClient("TOKENS")
    }

    /// A token that is valid for one second.
    func issue() async throws -> String {
        try await client.provider.request(.post("", to: "/issue?run=\(run)&lifetime=1"))
    }

    /// The counts so far.
    func counts() async throws -> Counts {
        try await client.provider.request(.post("", to: "/counts?run=\(run)"))
    }

    func close() async {
        await client.transport.shutdown()
    }
}
