import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// The hints of apps, and sends without a connection.
@Suite(
    "Every transport: pauses, hints and the queue",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionPauseTests {
    private func pause(_ bench: Bench) async {
        switch bench.transport {
        case let transport as MQTTTransport: await transport.pause()
        case let transport as STOMPTransport: await transport.pause()
        case let transport as SSETransport: await transport.pause()
        default: Issue.record("no such transport")
        }
    }

    private func resume(_ bench: Bench) {
        switch bench.transport {
        case let transport as MQTTTransport: transport.resume()
        case let transport as STOMPTransport: transport.resume()
        case let transport as SSETransport: transport.resume()
        default: Issue.record("no such transport")
        }
    }

    @Test(
        "A pause closes the link and keeps it closed; resuming connects at once; streams live on",
        arguments: Way.allCases,
        [false, true]
    )
    func pauseAndResume(way: Way, isHint: Bool) async throws {
        let hints = ConnectionHints()
        let bench = try Bench(way) { $0.hints = [hints] }
        let messages = try await bench.open()
        var iterator = messages.makeAsyncIterator()
        var watch = bench.watch()
        for round in 0..<3 {
            if isHint { hints.send(.pause) } else { await pause(bench) }
            await watch.until("paused")
            let dials = bench.dialer.count
            bench.clock.advance(by: .seconds(86_400))
            hints.send(.retryNow)
            await untilQuiet()
            #expect(bench.dialer.count == dials)
            if isHint { hints.send(.resume) } else { resume(bench) }
            await watch.until("connected")
            try await bench.provider.request(.say("\(round)"))
            #expect(try await iterator.next() == "\(round)")
        }
    }

    @Test(
        "A hint that there is hope cuts the wait short, whenever it comes",
        arguments: Way.allCases
    )
    func retryNow(way: Way) async throws {
        let hints = ConnectionHints()
        let bench = try Bench(way) { $0.hints = [hints] }
        let messages = try await bench.open()
        var watch = bench.watch()
        for _ in 0..<20 {
            bench.setWait(.seconds(1))
            await bench.lose(&watch)
            // The hint works at once, also before the wait has begun.
            hints.send(.retryNow)
            await watch.until("connected")
            bench.clock.advance(by: .seconds(60))
        }
        withExtendedLifetime(messages) {}
    }

    @Test("An explicit connect cuts the wait short, too", arguments: Way.shared)
    func connectNow(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        for _ in 0..<5 {
            await bench.lose(&watch)
            try await bench.provider.request(.connect)
            await watch.until("connected")
            bench.clock.advance(by: .seconds(60))
        }
        withExtendedLifetime(messages) {}
    }

    @Test("Sends while there is no link wait in order, and end once", arguments: Way.shared)
    func queue(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        var calls: [Call<Receipt>] = []
        for number in 0..<20 {
            calls.append(await bench.enqueue("\(number)"))
        }
        await bench.comeBack(&watch)
        for call in calls { #expect(await call.error() == nil) }
        var iterator = messages.makeAsyncIterator()
        for number in 0..<20 { #expect(try await iterator.next() == "\(number)") }
    }

    @Test("A send by event streams goes by a connection of its own, link or no link")
    func ownConnection() async throws {
        let bench = try Bench(.events)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        try await bench.provider.request(.say("hello"))
        await bench.comeBack(&watch)
        withExtendedLifetime(messages) {}
    }

    @Test("Full, or too late: the send fails, once, and was never sent", arguments: Way.shared)
    func bounds(way: Way) async throws {
        let hints = ConnectionHints()
        let bench = try Bench(way) { plan in
            plan.hints = [hints]
            plan.offlineQueue.messageLimit = 2
            plan.offlineQueue.timeToLive = .seconds(3)
        }
        let messages = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mode = .refuse
        await bench.lose(&watch)
        let last = bench.lastClient
        var calls: [Call<Receipt>] = []
        for number in 0..<2 {
            calls.append(await bench.enqueue("\(number)", timeout: .seconds(3)))
        }
        let error = await failure { try await bench.provider.request(.say("2")) }
        #expect(error?.code == .limitExceeded)
        await bench.pass(.seconds(3), endsAt: calls[0])
        #expect(await calls[0].error()?.code == .timedOut)
        #expect(await calls[1].error()?.code == .timedOut)
        await until { "\(bench.transport.states.current)".hasPrefix("waiting") }
        bench.dialer.mode = .open
        hints.send(.retryNow)
        await watch.until("connected")
        try await bench.deliver("after", by: messages)
        #expect(bench.count(way.sendWord, from: last + 1) == 1)
    }

    @Test(
        "Disconnecting while there is no link: what waits fails, once; streams end",
        arguments: Way.shared
    )
    func disconnectWhileAway(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        var calls: [Call<Receipt>] = []
        for number in 0..<10 { calls.append(await bench.enqueue("\(number)")) }
        try await bench.provider.request(.disconnect)
        for call in calls { #expect(await call.error()?.code == .notConnected) }
        await watch.until("disconnected")
        for try await _ in messages { Issue.record("a message") }
        bench.clock.advance(by: .seconds(3_600))
        await untilQuiet()
        #expect(bench.dialer.count == 1)
    }

    @Test("Subscribing while there is no link waits for it", arguments: Way.shared)
    func subscribeWhileAway(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        let count = bench.timerCount(after: .seconds(10))
        let call = Call { try await bench.provider.messages(.listen("lounge"), as: String.self) }
        // The call waits no longer than the connect timeout.
        await until { bench.timerCount(after: .seconds(10)) > count }
        await untilQuiet()
        #expect(!call.isDone)
        await bench.comeBack(&watch)
        let others = try await call.value()
        try await bench.deliver("hello", to: "lounge", by: others)
        withExtendedLifetime(messages) {}
    }

    @Test("Subscribing waits for no other stream: each has a connection of its own (event streams)")
    func subscribeBeside() async throws {
        let bench = try Bench(.events)
        let messages = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        let others = try await bench.provider.messages(.listen("lounge"), as: String.self)
        try await bench.deliver("hello", to: "lounge", by: others)
        #expect(bench.clock.now.offset == .zero)
        withExtendedLifetime(messages) {}
    }
}
