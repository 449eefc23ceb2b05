import Testing
import Waybill
import WaybillTesting

/// Design 5.2 and 5.3: what happens when the link is back, in which order, and what becomes of calls.
@Suite("Every transport: resuming (design 5.2, 5.3)", .serialized, .timeLimit(.minutes(1)), .benchesEnd)
struct ConnectionResumeTests {
    /// The words of one kind among those wanted, in order.
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
        let isBatched = way == .mqtt311
        #expect(before.count { $0 == "← \(way.subscribeWord)" } == (isBatched ? 1 : 2), "\(words)")
        #expect(before.count { $0 == "→ \(way.subscribedWord)" } == (isBatched ? 1 : 2), "\(words)")
        withExtendedLifetime(others) {}
        await bench.end()
    }

    @Test(
        "5.2: QoS 1 in flight is re-sent in order, after the subscriptions, before what was queued (MQTT)",
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
        // New, behind what waited.
        try await bench.provider.request(.say("8"))
        for call in calls { #expect(await call.error() == nil) }
        var iterator = messages.makeAsyncIterator()
        var heard: [String] = []
        for _ in 0..<9 { heard.append(try await iterator.next() ?? "") }
        #expect(heard == (0..<9).map { "\($0)" })
        await bench.settle()
        print("INFLIGHT", way, bench.log.joined(separator: "\n"))
        await bench.end()
    }

    @Test("Part 3, 4: the link goes with calls pending: each ends once", arguments: Way.allCases)
    func pendingCalls(way: Way) async throws {
        for isBack in [true, false] {
            let bench = try Bench(way) { if !isBack { $0.reconnection = .never } }
            let messages = try await bench.open()
            var watch = bench.watch()
            _ = await watch.next()
            bench.broker.faults.withholdsReceipts = true
            if way.isMQTT { bench.dialer.mute() }
            var calls: [Call<Receipt>] = []
            for number in 0..<20 {
                // One by one: each is under way before the link goes.
                let before = bench.dialer.swallowed
                calls.append(Call { try await bench.provider.request(.say("\(number)")) })
                await until {
                    way.isMQTT
                        ? bench.dialer.swallowed > before
                        : bench.count(way.sendWord) == number + 1
                }
            }
            bench.broker.dropConnections()
            // One state change, and no other.
            let loss = await watch.next()
            #expect(loss.hasPrefix(isBack ? "waiting" : "disconnected"), "\(loss)")
            bench.broker.faults.withholdsReceipts = false
            if isBack {
                bench.clock.advance(by: Bench.wait)
                #expect(await watch.next() == "connecting (attempt 1)")
                #expect(await watch.next() == "connected")
            }
            for call in calls {
                let error = await call.error()
                // In flight in MQTT: it goes on, and is acknowledged over the next link.
                #expect(error?.code == (isBack && way.isMQTT ? nil : .connectionLost))
            }
            withExtendedLifetime(messages) {}
            await bench.end()
        }
    }

    @Test(
        "Part 3, 2: two subscribers, one message: two in all; one leaves: only the other comes back",
        arguments: Way.allCases
    )
    func twoSubscribers(way: Way) async throws {
        let bench = try Bench(way)
        var first: Messages<String>? = try await bench.open()
        let second = try await bench.provider.messages(.listen(), as: String.self)
        try await bench.provider.request(.say("one"))
        var one = first?.makeAsyncIterator()
        var other = second.makeAsyncIterator()
        #expect(try await one?.next() == "one")
        #expect(try await other.next() == "one")
        one = nil
        first?.cancel()
        first = nil
        var watch = bench.watch()
        let last = bench.lastClient
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        try await bench.provider.request(.say("two"))
        #expect(try await other.next() == "two")
        #expect(bench.count(way.subscribeWord, from: last + 1) == 1, "\(bench.log)")
        await bench.end()
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
        // Each stream has a link, and a wait, of its own.
        if way == .events { await until { bench.timerCount(after: Bench.wait) >= 10 } }
        await bench.comeBack(&watch)
        if way == .events { await until { bench.words().count { $0 == "→ 200" } >= 20 } }
        for (number, stream) in streams.enumerated() {
            try await bench.provider.request(.say("\(number)", to: "room\(number)"))
            var iterator = stream.makeAsyncIterator()
            #expect(try await iterator.next() == "\(number)")
        }
        await bench.end()
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
        await bench.end()
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
        await letOthersRun()
        #expect(bench.count(word, from: last) == 0)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        await until { bench.count(word, from: last) == 1 }
        await bench.end()
    }
}
