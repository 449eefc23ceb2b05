public import Waybill

extension TokenInterceptor {
    /// Puts an access token into each CONNECT, and has one that the server refuses replaced once.
    ///
    /// - Parameter fetch: Gets a token: the first one, or another in the place of one that was refused.
    public static func chat(
        fetch: @escaping @Sendable (_ refused: String?) async throws -> String
    ) -> TokenInterceptor {
        TokenInterceptor(
            .header("Authorization", on: [.connect]) { "Bearer \($0)" },
            fetch: fetch
        )
    }
}
