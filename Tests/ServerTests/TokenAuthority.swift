import Foundation
import Waybill
import WaybillSSE

/// Who issues tokens to one test, and says what has become of them: `Tests/Servers/tokens_peer.py`.
struct TokenAuthority: Sendable {
    /// What has become of the tokens of a test.
    struct Counts: Codable, Sendable {
        /// How many tokens there were.
        var issued: Int
        /// How often one was shown that was good.
        var accepted: Int
        /// How often one was shown that had expired.
        var refused: Int
        /// How many different ones were shown that had expired.
        var expired: Int
        /// How often something was shown that is no token.
        var invalid: Int
    }

    /// What distinguishes the tokens of this test from those of others.
    private let run = "run\(UInt64.random(in: 0 ... .max))"
    private let client: EventStreamClient

    init() throws {
        client = try EventStreamClient("TOKENS")
    }

    /// A token that is good for a second.
    func issue() async throws -> String {
        try await client.provider.request(.post("", to: "/issue?run=\(run)&lifetime=1"))
    }

    /// What has become of the tokens so far.
    func counts() async throws -> Counts {
        try await client.provider.request(.post("", to: "/counts?run=\(run)"))
    }

    func close() async {
        await client.transport.shutdown()
    }
}
