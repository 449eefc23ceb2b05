import Dispatch
import Testing
import Waybill
import WaybillTesting
import WireTestSupport

/// Handlers: the queue on which they run, their order, and their arguments.
@Suite("Completion handlers", .timeLimit(.minutes(30))) struct HandlerTests {
    /// The key of each queue's name.
    ///
    /// `@unchecked Sendable`, because: it is never changed. Apple's Dispatch does not say so of its type.
    private final class Key: @unchecked Sendable {
        let name = DispatchSpecificKey<String>()
    }

    private static let key = Key()

    private static func queue(_ name: String) -> DispatchQueue {
        let queue = DispatchQueue(label: name)
        queue.setSpecific(key: key.name, value: name)
        return queue
    }

    private static func provider(_ mock: MockTransport) -> Provider<AnyEntry> {
        Provider(transport: mock)
    }

    private static let subscribe = AnyEntry.subscribe(topic: "t")

    // MARK: Where

    @Test("On a queue of the caller's choice, in order")
    func queue() async throws {
        let mock = MockTransport().expect(.subscribe).expect(.connect)
        let provider = Self.provider(mock)
        let seen = LockedBox<[String]>([])
        let queue = Self.queue("mine")
        let handle = provider.request(of: String.self, entry: Self.subscribe, on: queue) { result in
            let place = DispatchQueue.getSpecific(key: Self.key.name) ?? "elsewhere"
            seen.change { $0.append("\((try? result.get()) ?? "?") \(place)") }
        }
        try await waitUntil { mock.subscriptionCount == 1 }
        for number in 0..<300 { mock.push(Payload("\(number)"), to: "t") }
        try await waitUntil { seen.value.count == 300 }
        #expect(seen.value == (0..<300).map { "\($0) mine" })
        handle.cancel()
        let connected = LockedBox("")
        provider.request(of: Void.self, entry: .connect, on: queue) { _ in
            connected.change { $0 = DispatchQueue.getSpecific(key: Self.key.name) ?? "elsewhere" }
        }
        try await waitUntil { connected.value == "mine" }
    }

    @MainActor private final class Screen {
        var lines: [String] = []
    }

    @Test("On an actor of the caller's choice, in order")
    func actor() async throws {
        let mock = MockTransport().expect(.subscribe)
        let screen = Screen()
        let count = LockedBox(0)
        let handle = Self.provider(mock).request(of: String.self, entry: Self.subscribe) {
            @MainActor result in
            screen.lines.append((try? result.get()) ?? "?")
            count.change { $0 += 1 }
        }
        try await waitUntil { mock.subscriptionCount == 1 }
        for number in 0..<300 { mock.push(Payload("\(number)"), to: "t") }
        try await waitUntil { count.value == 300 }
        #expect(await screen.lines == (0..<300).map(String.init))
        handle.cancel()
    }

    @Test("A handler that waits is waited for")
    func waiting() async throws {
        let mock = MockTransport().expect(.subscribe)
        let running = LockedBox(0)
        let most = LockedBox(0)
        let count = LockedBox(0)
        let handle = Self.provider(mock).request(of: String.self, entry: Self.subscribe) { _ in
            running.change { $0 += 1 }
            most.change { $0 = max($0, running.value) }
            await Task.yield()
            running.change { $0 -= 1 }
            count.change { $0 += 1 }
        }
        try await waitUntil { mock.subscriptionCount == 1 }
        for _ in 0..<100 { mock.push("x", to: "t") }
        try await waitUntil { count.value == 100 }
        #expect(most.value == 1)
        handle.cancel()
    }

    @Test("After a cancel on the handler's own queue it is not called any more")
    func cancelled() async throws {
        let mock = MockTransport().expect(.subscribe)
        let queue = Self.queue("mine")
        let calls = LockedBox(0)
        let handle = Self.provider(mock).subscribe(
            of: String.self,
            entry: Self.subscribe,
            on: queue
        ) { _ in
            calls.change { $0 += 1 }
        }
        try await waitUntil { calls.value == 1 }
        queue.suspend()
        mock.push("x", to: "t")
        // The handler's call waits on the queue, behind the cancellation.
        queue.async { handle.cancel() }
        mock.push("y", to: "t")
        queue.resume()
        try await waitUntil { mock.subscriptionCount == 0 }
        queue.sync {}
        #expect(calls.value <= 2)
    }

    // MARK: What

    private static func text(_ update: SubscriptionUpdate<Point>) -> String {
        switch update {
        case .subscribed(let qos): "subscribed \(qos.map { "\($0.rawValue)" } ?? "-")"
        case .message(let point): "message \(point.x)"
        case .failure(let error): "failure \(error.code.name)"
        case .ended(let error): "ended \(error?.code.name ?? "-")"
        }
    }

    @Test("A subscription tells that it is confirmed, each message, each failure, and its end")
    func updates() async throws {
        let mock = MockTransport().expect(.subscribe)
        let seen = LockedBox<[String]>([])
        Self.provider(mock).subscribe(of: Point.self, entry: Self.subscribe) { update in
            seen.change { $0.append(Self.text(update)) }
        }
        try await waitUntil { mock.subscriptionCount == 1 }
        mock.push(#"{"x":1,"y":2}"#, to: "t")
        mock.push("no point", to: "t")
        mock.push(#"{"x":2,"y":2}"#, to: "t")
        try await waitUntil { seen.value.count == 4 }
        mock.dropConnection()
        try await waitUntil { seen.value.count == 5 }
        #expect(
            seen.value == [
                "subscribed -", "message 1", "failure decodingFailed", "message 2",
                "ended connectionLost",
            ]
        )
    }

    @Test("A subscription that is refused has ended; one that is unsubscribed ends well")
    func ends() async throws {
        let mock = MockTransport()
            .expect(.subscribe, .failure(WaybillError(.rejected, "no")), .success)
            .expect(.unsubscribe)
        let seen = LockedBox<[String]>([])
        let provider = Self.provider(mock)
        provider.subscribe(of: Point.self, entry: Self.subscribe) { update in
            seen.change { $0.append(Self.text(update)) }
        }
        try await waitUntil { seen.value == ["ended rejected"] }
        provider.subscribe(of: Message.self, entry: Self.subscribe) { update in
            if case .subscribed = update { seen.change { $0.append("subscribed") } }
            if case .ended(nil) = update { seen.change { $0.append("ended") } }
        }
        try await waitUntil { seen.value.count == 2 }
        try await provider.request(.unsubscribe(topic: "t"))
        try await waitUntil { seen.value == ["ended rejected", "subscribed", "ended"] }
    }

    @Test("A command without a reply gives what stands for nothing")
    func nothing() async throws {
        let mock = MockTransport().expect(.connect).expect(.disconnect)
        let provider = Self.provider(mock)
        let texts = LockedBox<[String]>([])
        provider.request(of: String.self, entry: .connect) { result in
            texts.change { $0.append("text \((try? result.get()) == "")") }
        }
        try await waitUntil { texts.value.count == 1 }
        provider.request(of: Message.self, entry: .disconnect) { result in
            texts.change { $0.append("message \((try? result.get())?.body.isEmpty == true)") }
        }
        try await waitUntil { texts.value.count == 2 }
        provider.request(of: Point.self, entry: .connect) { result in
            guard case .failure(let error as WaybillError) = result else { return }
            texts.change { $0.append(error.code.name) }
        }
        try await waitUntil { texts.value.count == 3 }
        #expect(texts.value == ["text true", "message true", "decodingFailed"])
        #expect(mock.requests.allSatisfy { !$0.expectsReply })
    }

    @Test("A send gives what stands for nothing at once, and a reply only where that is asked for")
    func replies() async throws {
        let mock = MockTransport(like: .mqtt5)
        mock.expect(.send, topic: "a").expect(.send, topic: "b", .reply(#"{"x":1,"y":2}"#))
        let provider = Self.provider(mock)
        let seen = LockedBox<[String]>([])
        provider.request(of: String.self, entry: .send(topic: "a")) { result in
            seen.change { $0.append("text \((try? result.get()) == "")") }
        }
        try await waitUntil { seen.value.count == 1 }
        provider.request(of: Point.self, entry: .send(topic: "a")) { result in
            guard case .failure(let error as WaybillError) = result else { return }
            seen.change {
                $0.append("\(error.code.name) \(error.message.contains("expectsReply"))")
            }
        }
        try await waitUntil { seen.value.count == 2 }
        provider.request(of: Point.self, entry: .send(topic: "b", .expectsReply)) { result in
            seen.change { $0.append("point \((try? result.get())?.x ?? 0)") }
        }
        try await waitUntil { seen.value.count == 3 }
        #expect(seen.value == ["text true", "decodingFailed true", "point 1"])
        #expect(mock.requests.map(\.expectsReply) == [false, false, true])
        #expect(mock.requests.last?.command == .send(.expectsReply))
        // A receipt has the reply, too.
        let receipt = try await provider.request(.send(topic: "b", .expectsReply))
        #expect(receipt.reply?.text == #"{"x":1,"y":2}"#)
        var request = Request(topic: "b", command: .send(.expectsReply), expectsReply: true)
        request.expectsReply = false
        #expect(!request.expectsReply && request.command == .send)
    }

    @Test("A receipt, or nothing, asks for no reply, and cannot be had of a subscription")
    func receipts() async throws {
        let mock = MockTransport().expect(.send)
        let provider = Self.provider(mock)
        let seen = LockedBox<[String]>([])
        provider.request(of: Receipt.self, entry: .send(topic: "a")) { result in
            seen.change { $0.append((try? result.get())?.topic ?? "?") }
        }
        try await waitUntil { seen.value.count == 1 }
        provider.request(of: Void.self, entry: .send(topic: "b")) { result in
            seen.change { $0.append("\((try? result.get()) != nil)") }
        }
        try await waitUntil { seen.value.count == 2 }
        provider.request(of: Receipt.self, entry: Self.subscribe) { result in
            guard case .failure(let error as WaybillError) = result else { return }
            seen.change { $0.append(error.code.name) }
        }
        try await waitUntil { seen.value.count == 3 }
        #expect(seen.value == ["a", "true", "invalidEntry"])
        #expect(mock.requests.allSatisfy { !$0.expectsReply })
    }

    /// A type that no decoder makes.
    private struct Stranger: Sendable {}

    @Test("A type that nothing makes fails before anything is sent, whatever the command")
    func strangers() async throws {
        let mock = MockTransport()
        let provider = Self.provider(mock)
        let codes = LockedBox<[String]>([])
        for entry in [AnyEntry.send(topic: "t"), Self.subscribe, AnyEntry(command: .connect)] {
            provider.request(of: Stranger.self, entry: entry) { result in
                guard case .failure(let error as WaybillError) = result else { return }
                codes.change { $0.append(error.code.name) }
            }
        }
        provider.subscribe(of: Stranger.self, entry: Self.subscribe) { update in
            guard case .ended(let error?) = update else { return }
            codes.change { $0.append(error.code.name) }
        }
        try await waitUntil { codes.value.count == 4 }
        #expect(codes.value == Array(repeating: "invalidEntry", count: 4))
        #expect(mock.requests.isEmpty)
    }

    @Test("A handle of an app's own, for a stand-in of its client")
    func ownHandle() {
        let ends = LockedBox(0)
        let handle = RequestHandle { ends.change { $0 += 1 } }
        handle.cancel()
        #expect(ends.value == 1)
    }
}
