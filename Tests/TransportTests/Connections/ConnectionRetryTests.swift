import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

/// Design 5.4 and 5.5 over real frames, with connections that are lost and restored.
@Suite(
    "Every transport: interceptors, retries and tokens (design 5.4, 5.5)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionRetryTests {
    /// The kind of request that is refused.
    enum Kind: CaseIterable, Sendable { case connect, subscribe, send }

    /// The requests that a server can refuse for good, and the form of the refusal:
    ///
    /// | | connect | subscribe | send |
    /// | --- | --- | --- | --- |
    /// | MQTT 3.1.1 | CONNACK | SUBACK | nothing: it can only take a message or hang up |
    /// | MQTT 5 | CONNACK | SUBACK | PUBACK, see ``refusedMessages(attempts:)`` |
    /// | STOMP | ERROR | ERROR, and hangs up | ERROR, and hangs up |
    /// | event streams | nothing: each subscription connects | 403 | 503 |
    static let refusals: [(way: Way, kind: Kind)] = Way.allCases.flatMap { way in
        Kind.allCases.filter { kind in
            switch kind {
            case .connect: way != .events
            case .subscribe: true
            case .send: !way.isMQTT
            }
        }.map { (way, $0) }
    }

    @Test(
        "Part 3, 1: a server that refuses for ever: so many attempts of connect, subscribe and send, and no more",
        arguments: refusals,
        [2, 4]
    )
    func retryLimit(refusal: (way: Way, kind: Kind), attempts: Int) async throws {
        let (way, kind) = refusal
        let bench = try Bench(way)
        if kind != .connect, way != .events { try await bench.provider.request(.connect) }
        switch kind {
        case .connect: bench.broker.faults.refusesConnections = .serverUnavailable
        case .subscribe: bench.broker.faults.refusesSubscriptions = ["room"]
        case .send where way.isSTOMP: bench.broker.faults.answersWithError = [.send: .max]
        case .send:
            bench.broker.faults.answers = Array(repeating: .init(503), count: attempts + 1)
        }
        let before = bench.count("CONNECT")
        let provider = bench.provider.intercepted(
            RetryPolicy(
                maximumAttempts: attempts,
                delay: .none,
                codes: [.rejected, .unauthorized, .connectionRefused, .connectionLost]
            )
        )
        let call = Call {
            switch kind {
            case .connect: try await provider.request(.connect)
            case .subscribe: _ = try await provider.messages(.listen())
            case .send: try await provider.request(.say("hello"))
            }
        }
        await bench.passWaits(until: call)
        let error = await call.error()
        #expect(error?.attempt == attempts, "\(String(describing: error))")
        let word =
            switch kind {
            case .connect: "CONNECT"
            case .subscribe: way.subscribeWord
            case .send: way.sendWord
            }
        await untilQuiet()
        let count = bench.count(word) - (kind == .connect ? before : 0)
        #expect(count == attempts, "\(bench.log)")
    }

    @Test(
        "Part 3, 1: a server that refuses each message for ever, by PUBACK (MQTT 5; over WebSocket, the same packets)",
        arguments: [2, 4]
    )
    func refusedMessages(attempts: Int) async throws {
        let bench = try Bench(.mqtt5)
        // CONNECT of 48 bytes, and CONNACK. Then PUBLISH of 44 bytes, each with its own identifier, and "not
        // authorized".
        var steps: [ScriptedByteStream.Step] = [.skip(48), .reply([0x20, 3, 0, 0, 0])]
        for identifier in 1...UInt8(attempts + 1) {
            steps += [
                .expect([0x32, 42, 0, 4] + "room".utf8 + [0, identifier]), .skip(34),
                .reply([0x40, 3, 0, identifier, 0x87]),
            ]
        }
        let script = ScriptedByteStream(steps: steps)
        bench.dialer.next(.script(script))
        try await bench.provider.request(.connect)
        let provider = bench.provider.intercepted(
            RetryPolicy(maximumAttempts: attempts, delay: .none, codes: [.unauthorized])
        )
        let error = await failure { try await provider.request(.say("hello")) }
        #expect(error?.code == .unauthorized && error?.attempt == attempts)
        await untilQuiet()
        // The script would refuse one more, too.
        #expect(script.failures.isEmpty, "\(script.failures)")
        #expect(bench.dialer.written == 48 + 44 * attempts)
    }

    @Test(
        "5.4: refused with the connection: connected, subscribed, then sent again, each step awaited (STOMP)",
        arguments: Way.allSTOMP
    )
    func refusedWithTheConnection(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        let last = bench.lastClient
        let events = bench.record()
        bench.broker.faults.answersWithError = [.send: 1]
        let provider = bench.provider.intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .none, codes: [.rejected, .connectionLost])
        )
        let call = Call { try await provider.request(.say("hello")) }
        await watch.until("waiting")
        await until { events.count(.retrying) == 1 }
        await untilQuiet()
        #expect(!call.isDone)
        await bench.comeBack(&watch)
        #expect(await call.error() == nil)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        #expect(
            bench.words(from: last + 1).prefix(6) == [
                "← CONNECT", "→ CONNECTED", "← SUBSCRIBE", "→ RECEIPT", "← SEND", "→ RECEIPT",
            ]
                || bench.words(from: last + 1).prefix(6) == [
                    "← CONNECT", "→ CONNECTED", "← SUBSCRIBE", "→ RECEIPT", "← SEND", "→ MESSAGE",
                ],
            "\(bench.log)"
        )
    }

    @Test(
        "5.4: lost with the link: sent again over the next one; in flight in MQTT it goes on, with no need of a retry",
        arguments: Way.allCases
    )
    func lostWithTheLink(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        var iterator = messages.makeAsyncIterator()
        // An event stream resumes after its last event, so it needs one.
        try await bench.provider.request(.say("before"))
        #expect(try await iterator.next() == "before")
        let before = bench.count(way.sendWord)
        let events = bench.record()
        loseAnswers(bench)
        let provider = bench.provider.intercepted(
            RetryPolicy(maximumAttempts: 2, delay: .none, codes: [.connectionLost])
        )
        let call = Call { try await provider.request(.say("hello")) }
        await until {
            way.isMQTT ? bench.dialer.swallowed > 0 : bench.count(way.sendWord) == before + 1
        }
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        #expect(await call.error() == nil)
        #expect(try await iterator.next() == "hello")
        await until { way.isMQTT || events.count(.retrying) > 0 }
        await untilQuiet()
        let retries = events.all(.retrying)
        #expect(retries.count == (way.isMQTT ? 0 : 1))
        #expect(retries.allSatisfy { $0.attempt == 2 && $0.error?.code == .connectionLost })
        #expect(bench.count(way.sendWord) == before + (way.isMQTT ? 1 : 2), "\(bench.log)")
    }

    /// Loses the answer to the next send on the open connections. Over MQTT the send is lost, too.
    private func loseAnswers(_ bench: Bench) {
        if bench.way.isMQTT { bench.dialer.mute() } else { bench.dialer.deafen() }
    }

    private struct Once: EntryType {
        var topic: String? { "room" }
        var command: EntryCommand { .send(qos: .atMostOnce) }
        var body: EntryBody { .text("once") }
    }

    @Test(
        "5.4: what may have arrived and must not arrive twice is never sent again (STOMP, SSE; QoS 0 waits for nothing)",
        arguments: Way.allSTOMP + [.events]
    )
    func notIdempotent(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        // Over HTTP this makes a connection, which is kept for the next send.
        try await bench.provider.request(.say("before"))
        loseAnswers(bench)
        let provider = Provider<Once>(transport: bench.transport)
            .intercepted(RetryPolicy(maximumAttempts: 5, delay: .none, codes: [.connectionLost]))
        let call = Call { try await provider.request(Once()) }
        await until { bench.count(way.sendWord) == 2 }
        await bench.lose(&watch)
        let error = await call.error()
        #expect(error?.code == .connectionLost && error?.attempt == 1)
        await bench.comeBack(&watch)
        await untilQuiet()
        #expect(bench.count(way.sendWord) == 2, "\(bench.log)")
        withExtendedLifetime(messages) {}
    }

    /// Adds a header after a short wait, and records what it sees.
    private struct Marking: Interceptor {
        let name: String
        let seen: Kept<[String]>
        var isLast = false

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            await Task.yield()
            seen.withLock { seen in
                seen.append("\(name)\(context.attempt) \(request.headers.map(\.name))")
            }
            request.headers[name] = "\(context.attempt)"
            guard isLast else { return }
            if context.attempt == 1 { throw WaybillError(.connectionRefused, "not yet") }
            // MQTT 3.1.1 cannot send headers.
            request.headers = [:]
        }

        func retry(
            _ request: Request,
            after error: WaybillError,
            context: InterceptorContext
        ) async -> RetryDecision {
            seen.withLock { $0.append("original \(request.headers.map(\.name))") }
            return isLast ? .retry(count: 1, delay: .zero) : .noOpinion
        }
    }

    @Test(
        "Part 3, 3: the second interceptor sees what the first has added; the original is unchanged",
        arguments: Way.allCases
    )
    func chain(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        let seen = Kept([String]())
        let provider = bench.provider.intercepted(Marking(name: "a", seen: seen))
            .intercepted(Marking(name: "b", seen: seen, isLast: true))
        try await provider.request(.say("hello"))
        let none = "[]"
        #expect(
            seen.withLock { $0 } == [
                "a1 \(none)", "b1 [\"a\"]", "original \(none)", "original \(none)", "a2 \(none)",
                "b2 [\"a\"]",
            ]
        )
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
    }
}
