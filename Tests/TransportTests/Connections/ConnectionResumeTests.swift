import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting

/// Design 5.2 and 5.3: the order of actions after a reconnection, and the outcome of calls.
@Suite(
    "Every transport: resuming (design 5.2, 5.3)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionResumeTests {
    /// The words of these kinds, in order.
    private func order(_ bench: Bench, from client: Int, of words: [String]) -> [String] {
        bench.words(from: client).filter { words.contains(String($0.dropFirst(2))) }
    }

    @Test(
        "5.2: re-subscribed, each acknowledged, before what was queued (not SSE: its sends go by themselves)",
        arguments: Way.shared
    )
    func subscriptionsFirst(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        let others = try await bench.provider.messages(.listen("lounge"), as: String.self)
        var watch = bench.watch()
        await bench.lose(&watch)
        let last = bench.lastClient
        var calls: [Call<Receipt>] = []
        for number in 0..<3 { calls.append(await bench.enqueue("\(number)")) }
        await bench.comeBack(&watch)
        for call in calls { #expect(await call.error() == nil) }
        var iterator = messages.makeAsyncIterator()
        for number in 0..<3 { #expect(try await iterator.next() == "\(number)") }
        let words = order(
            bench,
            from: last + 1,
            of: ["CONNECT", way.subscribeWord, way.subscribedWord, way.sendWord]
        )
        let firstSend = try #require(words.firstIndex(of: "← \(way.sendWord)"))
        let before = words[..<firstSend]
        #expect(before.first == "← CONNECT")
        #expect(before.count { $0 == "← \(way.subscribeWord)" } == 2, "\(words)")
        #expect(before.count { $0 == "→ \(way.subscribedWord)" } == 2, "\(words)")
        withExtendedLifetime(others) {}
    }

    @Test(
        "5.2: QoS 1 in flight is re-sent in order, after the subscriptions, before what was queued and what is new (MQTT)",
        arguments: Way.allMQTT
    )
    func inFlightFirst(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mute()
        var calls: [Call<Receipt>] = []
        for number in 0..<5 {
            let before = bench.dialer.swallowed
            calls.append(Call { try await bench.provider.request(.say("\(number)")) })
            await until { bench.dialer.swallowed > before }
        }
        await bench.lose(&watch)
        for number in 5..<8 {
            calls.append(await bench.enqueue("\(number)"))
        }
        let last = bench.lastClient
        bench.clock.advance(by: Bench.wait)
        await watch.until("connected")
        // A new message follows the queued ones.
        try await bench.provider.request(.say("8"))
        for call in calls { #expect(await call.error() == nil) }
        var iterator = messages.makeAsyncIterator()
        var heard: [String] = []
        for _ in 0..<9 { heard.append(try await iterator.next() ?? "") }
        #expect(heard == (0..<9).map { "\($0)" })
        await untilQuiet()
        let lines = bench.log.filter { $0.hasPrefix("client \(bench.lastClient) ") }
        #expect(bench.lastClient > last)
        let words = bench.words(from: last + 1)
        #expect(
            words.prefix(5) == [
                "← CONNECT", "→ CONNACK", "← SUBSCRIBE", "→ SUBACK", "← PUBLISH",
            ]
        )
        #expect(words.count { $0 == "← PUBLISH" } == 9 && words.count { $0 == "← SUBSCRIBE" } == 1)
        // The server's session is new, so no message is a repetition: neither version sets DUP.
        #expect(!lines.contains { $0.contains(" dup") }, "\(lines)")
        #expect(try await noMore(iterator, bench))
    }

    /// True when no further message arrives once all work is done.
    private func noMore(
        _ iterator: sending Messages<String>.AsyncIterator,
        _ bench: Bench
    ) async throws -> Bool {
        let reading = Task {
            var iterator = iterator
            return try? await iterator.next()
        }
        await untilQuiet()
        reading.cancel()
        return await reading.value == nil
    }

    @Test(
        "Part 3, 4: the link goes with calls pending: each ends once, one event of the loss, one change of state",
        arguments: Way.allCases,
        [true, false]
    )
    func pendingCalls(way: Way, isBack: Bool) async throws {
        let bench = try Bench(way) {
            if !isBack { $0.reconnection = .never }
            // All calls must be in flight at the same time.
            $0.events = { $0.limits.connectionsPerHost = 20 }
        }
        let messages = try await bench.open()
        var watch = bench.watch()
        _ = await watch.next()
        let events = bench.record()
        bench.broker.faults.withholdsReceipts = true
        if way.isMQTT { bench.dialer.mute() }
        var calls: [Call<Receipt>] = []
        for number in 0..<20 {
            // Each call is in flight before the next one starts.
            let before = bench.dialer.swallowed
            calls.append(Call { try await bench.provider.request(.say("\(number)")) })
            await until {
                way.isMQTT
                    ? bench.dialer.swallowed > before
                    : bench.count(way.sendWord) == number + 1
            }
        }
        let before = bench.dialer.swallowed
        if way == .events { bench.dialer.next(.mute) }
        let subscribing = Call {
            try await bench.provider.messages(.listen("lounge"), as: String.self)
        }
        await until {
            way.isSTOMP
                ? bench.count(way.subscribeWord) == 2 : bench.dialer.swallowed > before
        }
        bench.broker.dropConnections()
        var loss = await watch.next()
        // The transport reports the best state of all streams. The opening stream may notice the loss last.
        if way == .events, loss == "connecting (attempt 1)" { loss = await watch.next() }
        #expect(loss.hasPrefix(isBack ? "waiting" : "disconnected"), "\(loss)")
        await untilQuiet()
        // Each call over HTTP has a connection of its own, which is lost separately.
        await until { events.count(.disconnected) >= (way == .events ? 21 : 1) }
        #expect(events.count(.disconnected) == (way == .events ? 21 : 1))
        await until { !isBack || events.count(.waiting) > 0 }
        #expect(events.count(.waiting) == (isBack ? 1 : 0))
        bench.broker.faults.withholdsReceipts = false
        if isBack {
            bench.clock.advance(by: Bench.wait)
            #expect(await watch.next() == "connecting (attempt 1)")
            #expect(await watch.next() == "connected")
        }
        // A message in flight over MQTT is sent again on the next connection, and acknowledged there.
        let goesOn = isBack && way.isMQTT
        for call in calls { #expect(await call.error()?.code == (goesOn ? nil : .connectionLost)) }
        #expect(await subscribing.error()?.code == .connectionLost)
        await until { events.count(.acknowledged) + events.count(.sendFailed) >= 20 }
        await untilQuiet()
        #expect(events.count(.acknowledged) == (goesOn ? 20 : 0))
        #expect(events.count(.sendFailed) == (goesOn ? 0 : 20))
        withExtendedLifetime(messages) {}
        await bench.end()
        // Only the transport's own end is reported.
        #expect(await bench.rest(of: watch) == (isBack ? ["disconnected"] : []))
    }

    @Test(
        "Part 3, 2: two subscribers, one message: two in all; one leaves: only the other comes back",
        arguments: Way.allCases
    )
    func twoSubscribers(way: Way) async throws {
        let bench = try Bench(way)
        let first: Messages<String> = try await bench.open()
        let second = try await bench.provider.messages(.listen(), as: String.self)
        let third = try await bench.provider.messages(.listen("lounge"), as: String.self)
        try await bench.provider.request(.say("one"))
        var one = first.makeAsyncIterator()
        var other = second.makeAsyncIterator()
        #expect(try await one.next() == "one")
        #expect(try await other.next() == "one")
        first.cancel()
        third.cancel()
        #expect(try await one.next() == nil)
        // Only STOMP distinguishes two subscriptions to one topic. An event stream is ended by closing its
        // connection.
        await until {
            way == .events
                ? bench.broker.connectionCount == 2
                : bench.count("UNSUBSCRIBE") == (way.isMQTT ? 1 : 2)
        }
        var watch = bench.watch()
        let last = bench.lastClient
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        try await bench.provider.request(.say("two"))
        try await bench.provider.request(.say("marker"))
        #expect(try await other.next() == "two")
        #expect(try await other.next() == "marker")
        #expect(try await one.next() == nil)
        #expect(bench.count(way.subscribeWord, from: last + 1) == 1, "\(bench.log)")
        let after = bench.log.filter { line in
            let words = line.split(separator: " ")
            return words.count > 1 && Int(words[1]) ?? 0 > last
        }
        #expect(!after.contains { $0.contains("lounge") }, "\(after)")
    }

    @Test(
        "Part 3, 6: clean session, lost and back: still subscribed to everything",
        arguments: Way.allCases
    )
    func allTopicsAgain(way: Way) async throws {
        let bench = try Bench(way)
        var streams = [try await bench.open("room0")]
        for number in 1..<10 {
            streams.append(try await bench.provider.messages(.listen("room\(number)")))
        }
        var watch = bench.watch()
        await bench.lose(&watch)
        // Each stream has its own connection and its own wait.
        if way == .events { await until { bench.timerCount(after: Bench.wait) >= 10 } }
        await bench.comeBack(&watch)
        if way == .events { await until { bench.words().count { $0 == "→ 200" } >= 20 } }
        for (number, stream) in streams.enumerated() {
            try await bench.deliver("\(number)", to: "room\(number)", by: stream)
        }
    }

    @Test(
        "Part 3, 6: a wildcard reaches a typed stream, also after a loss (MQTT; the broker's others have none)",
        arguments: Way.allMQTT
    )
    func wildcard(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open("rooms/+/words")
        var iterator = messages.makeAsyncIterator()
        var watch = bench.watch()
        for round in 0..<3 {
            try await bench.provider.request(.say("\(round)", to: "rooms/\(round)/words"))
            #expect(try await iterator.next() == "\(round)")
            await bench.lose(&watch)
            bench.setWait(Bench.wait)
            await bench.comeBack(&watch)
        }
    }

    @Test(
        "5.3: a message is acknowledged when it was taken, also over the next link",
        arguments: Way.shared
    )
    func acknowledgedWhenTaken(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open(way.isSTOMP ? "/queue/room" : "room")
        var watch = bench.watch()
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        let last = bench.lastClient
        try await bench.provider.request(.say("hello", to: way.isSTOMP ? "/queue/room" : "room"))
        let word = way.isMQTT ? "PUBACK" : "ACK"
        await until {
            bench.words(from: last).contains { $0 == (way.isMQTT ? "→ PUBLISH" : "→ MESSAGE") }
        }
        await untilQuiet()
        #expect(bench.count(word, from: last) == 0)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        await until { bench.count(word, from: last) == 1 }
    }
}
