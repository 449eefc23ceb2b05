import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.2: the transport asks for credentials before each attempt.
@Suite(
    "Every transport: credentials (design 5.2)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionCredentialTests {
    /// Returns passwords in turn, then repeats the last one. Records the calls.
    private final class Passwords: Sendable {
        let asked = Kept<[String]>([])
        private let passwords: Kept<[String]>

        init(_ passwords: String...) { self.passwords = Kept(passwords) }

        func set(_ passwords: String...) { self.passwords.withLock { $0 = passwords } }

        var source: CredentialSource {
            CredentialSource { [self] occasion in
                asked.withLock { asked in
                    let refused = occasion.refused?.password ?? "-"
                    asked.append("\(occasion.isReconnection ? "again" : "first") \(refused)")
                }
                let password = passwords.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
                return Credentials(userName: "ada", password: password)
            }
        }
    }

    private func bench(_ way: Way, _ source: CredentialSource) throws -> Bench {
        try Bench(way) { plan in
            plan.users = ["ada": "right"]
            plan.credentials = source
        }
    }

    @Test("5.2: asked for anew before each attempt", arguments: Way.allCases)
    func beforeEachAttempt(way: Way) async throws {
        let passwords = Passwords("right")
        let bench = try bench(way, passwords.source)
        let messages = try await bench.open()
        var watch = bench.watch()
        #expect(passwords.asked.withLock { $0 } == ["first -"])
        await bench.lose(&watch)
        bench.dialer.next(.refuse, .refuse)
        for _ in 0..<2 {
            bench.clock.advance(by: Bench.wait)
            await watch.until("waiting (connectionRefused")
        }
        await bench.comeBack(&watch)
        let again = Array(repeating: "again -", count: 3)
        #expect(passwords.asked.withLock { $0 } == ["first -"] + again)
        withExtendedLifetime(messages) {}
    }

    @Test(
        "5.2: refused, they are asked for once more, and the second are taken",
        arguments: Way.allCases
    )
    func refusedOnce(way: Way) async throws {
        let passwords = Passwords("wrong", "right")
        let bench = try bench(way, passwords.source)
        let messages = try await bench.open()
        #expect(passwords.asked.withLock { $0 } == ["first -", "first wrong"])
        var watch = bench.watch()
        passwords.set("old", "right")
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        #expect(passwords.asked.withLock { $0 }.suffix(2) == ["again -", "again old"])
        withExtendedLifetime(messages) {}
    }

    @Test("5.2: refused again, it stops with `unauthorized`, no loop", arguments: Way.allCases)
    func refusedTwice(way: Way) async throws {
        let passwords = Passwords("wrong", "worse")
        let bench = try bench(way, passwords.source)
        let error = await failure { _ = try await bench.open() }
        #expect(error?.code == .unauthorized)
        #expect(passwords.asked.withLock { $0 } == ["first -", "first wrong"])
        passwords.set("right")
        let messages = try await bench.open()
        var watch = bench.watch()
        passwords.set("old", "older")
        await bench.lose(&watch)
        let dials = bench.dialer.count
        bench.clock.advance(by: Bench.wait)
        await watch.until("disconnected (unauthorized")
        #expect(passwords.asked.withLock { $0 }.suffix(2) == ["again -", "again old"])
        let end = await failure { for try await _ in messages {} }
        #expect(end?.code == .unauthorized)
        bench.clock.advance(by: .seconds(3_600))
        await untilQuiet()
        #expect(bench.dialer.count == dials + 2)
    }

    @Test(
        "5.2: a source that gives up stops it; any other error of its may pass",
        arguments: Way.allCases
    )
    func sourceFails(way: Way) async throws {
        struct Offline: Error {}
        let step = Kept(0)
        let source = CredentialSource { _ in
            let now = step.withLock { step in
                step += 1
                return step
            }
            switch now {
            case 1, 3: return Credentials(userName: "ada", password: "right")
            case 2: throw Offline()
            default: throw WaybillError(.unauthorized, "signed out")
            }
        }
        let bench = try bench(way, source)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.clock.advance(by: Bench.wait)
        await watch.until("waiting (notConnected")
        await bench.comeBack(&watch)
        await bench.lose(&watch)
        bench.clock.advance(by: Bench.wait)
        await watch.until("disconnected (unauthorized: signed out")
        #expect(bench.dialer.count == 2)
        withExtendedLifetime(messages) {}
    }

    /// A source that returns nothing until its task is cancelled, and reports when it is called.
    private func hanging(
        _ limit: Duration
    ) -> (source: CredentialSource, asked: Kept<Int>, cancelled: Kept<Int>) {
        let (asked, cancelled) = (Kept(0), Kept(0))
        let source = CredentialSource(timeout: limit) { _ in
            asked.withLock { $0 += 1 }
            for await _ in AsyncStream<Never>.makeStream().stream {}
            cancelled.withLock { $0 += 1 }
            return Credentials()
        }
        return (source, asked, cancelled)
    }

    @Test("5.2: a source that hangs is cut off by the clock", arguments: Way.allCases)
    func timeLimit(way: Way) async throws {
        let (source, asked, cancelled) = hanging(.seconds(7))
        let bench = try bench(way, source)
        let call = Call { _ = try await bench.open() }
        await until { asked.withLock { $0 } == 1 && bench.timerCount(after: .seconds(7)) == 1 }
        await bench.pass(.seconds(7), endsAt: call)
        #expect(await call.error()?.code == .timedOut)
        #expect(bench.dialer.count == 0)
        await until { cancelled.withLock { $0 } == 1 }
    }

    @Test(
        "Part 3, 5: disconnect() while they are fetched cancels that, and no connection follows",
        arguments: Way.allCases
    )
    func disconnectDuringFetch(way: Way) async throws {
        let (source, asked, cancelled) = hanging(.seconds(7))
        let bench = try bench(way, source)
        let call = Call { _ = try await bench.open() }
        await until { asked.withLock { $0 } == 1 }
        try await bench.provider.request(.disconnect)
        #expect(await call.error()?.code == .notConnected)
        await until { cancelled.withLock { $0 } == 1 }
        bench.clock.advance(by: .seconds(3_600))
        await untilQuiet()
        #expect(bench.dialer.count == 0)
        #expect("\(bench.transport.states.current)".hasPrefix("disconnected"))
    }

    @Test(
        "shutdown() while they are fetched: the call fails with `shutDown`",
        arguments: Way.allCases
    )
    func shutdownDuringFetch(way: Way) async throws {
        let (source, asked, _) = hanging(.seconds(7))
        let bench = try bench(way, source)
        let call = Call { _ = try await bench.open() }
        await until { asked.withLock { $0 } == 1 }
        await bench.transport.shutdown()
        #expect(await call.error()?.code == .shutDown)
        #expect(bench.dialer.count == 0)
    }

    @Test(
        "Disconnecting while the credentials of a reconnection are fetched",
        arguments: Way.allCases
    )
    func disconnectDuringSecondFetch(way: Way) async throws {
        let asked = Kept(0)
        let source = CredentialSource { occasion in
            asked.withLock { $0 += 1 }
            if occasion.isReconnection { for await _ in AsyncStream<Never>.makeStream().stream {} }
            return Credentials(userName: "ada", password: "right")
        }
        let bench = try bench(way, source)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        bench.clock.advance(by: Bench.wait)
        await until { asked.withLock { $0 } == 2 }
        try await bench.provider.request(.disconnect)
        await watch.until("disconnected")
        #expect(bench.dialer.count == 1)
        withExtendedLifetime(messages) {}
    }
}
