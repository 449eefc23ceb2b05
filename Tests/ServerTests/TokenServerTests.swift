#if os(Linux)
    import Testing
    import Waybill

    @Suite(
        "Tokens that expire every second, over connections that are cut",
        .enabled(
            if: TestServers.port("TOKENS") != nil,
            "Tests/Servers/with --install tokens -- swift test --filter TokenServerTests"
        ),
        .timeLimit(.minutes(20))
    )
    struct TokenServerTests {
        @Test(
            "Configured once, an interceptor has each replaced when it is refused; nobody else notices",
            arguments: TokenRoute.all
        )
        func traffic(_ route: TokenRoute) async throws {
            let (figures, counts) = try await TokenRun(route)()
            #expect(figures.ends == [])
            // A send that is not repeated by itself may be lost with its connection, and fail for no other reason.
            var failures = figures.failures
            if !route.isQueued { failures["connectionLost"] = nil }
            #expect(failures == [:])
            #expect(figures.lost == 0)
            // Each token that has expired is replaced once, however many were refused for it, and no other is.
            #expect(figures.refreshes == counts.expired)
            #expect(counts.issued == figures.refreshes + 1)
            #expect(counts.invalid == 0)
            // There was something to see. A token is a second old at each cut, unless the machine is very slow.
            #expect(figures.cuts > 1)
            #expect(figures.refreshes * 2 >= figures.cuts)
            #expect(figures.sent.count > figures.cuts)
        }
    }
#endif
