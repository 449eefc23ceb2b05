#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill

    @Suite(
        "Tokens that expire every second, over connections that are cut",
        .realTime,
        .enabled(
            if: TestServers.port("TOKENS") != nil,
            "Tests/Servers/with --install tokens -- Tests/real-time TokenRealTimeTests"
        ),
        .timeLimit(.minutes(30))
    )
    struct TokenRealTimeTests {
        @Test(
            "Configured once, an interceptor replaces each refused token; no call and no stream notices",
            arguments: TokenRoute.groups
        )
        func traffic(_ routes: [TokenRoute]) async throws {
            try await withThrowingTaskGroup { group in
                for route in routes { group.addTask { try await Self.traffic(route) } }
                try await group.waitForAll()
            }
        }

        private static func traffic(_ route: TokenRoute) async throws {
            let (figures, counts) = try await TokenRun(route)()
            #expect(figures.ends == [], "\(route)")
            // A send that is not repeated may be lost with its connection. No other failure is allowed.
            var failures = figures.failures
            if !route.isQueued { failures["connectionLost"] = nil }
            #expect(failures == [:], "\(route)")
            #expect(figures.lost == 0, "\(route)")
            // Each expired token is replaced once, however many requests were refused for it. No valid token is
            // replaced.
            #expect(figures.refreshes == counts.expired, "\(route)")
            #expect(counts.issued == figures.refreshes + 1, "\(route)")
            #expect(counts.invalid == 0, "\(route)")
            // The run has tested something. At each cut the token is a second old, unless the machine is very slow.
            #expect(figures.cuts > 1, "\(route)")
            #expect(figures.refreshes * 2 >= figures.cuts, "\(route)")
            #expect(figures.sent.count > figures.cuts, "\(route)")
        }
    }
#endif
