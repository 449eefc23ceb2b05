import Combine
import Dispatch
import Testing
import Waybill
import WaybillTesting

/// The publishers, with subscribers of Combine's kind.
@Suite("Publishers", .timeLimit(.minutes(30))) struct PublisherTests {
    /// What a subscriber was told.
    enum Event: Equatable, Sendable {
        case value(String)
        case finished
        case failed(WaybillError.Code?)
    }

    /// A subscriber that demands by hand.
    ///
    /// `@unchecked Sendable`, because: every access goes through the queue.
    private final class Recorder<Input, Failure: Error>: Subscriber, @unchecked Sendable {
        private let queue = DispatchQueue(label: "recorder")
        private let words: (Input) -> String
        private var events: [Event] = []
        private var subscription: (any Subscription)?

        init(_ words: @escaping (Input) -> String) { self.words = words }

        var all: [Event] { queue.sync { events } }

        func receive(subscription: any Subscription) {
            queue.sync { self.subscription = subscription }
        }

        func receive(_ input: Input) -> Subscribers.Demand {
            queue.sync { events.append(.value(words(input))) }
            return .none
        }

        func receive(completion: Subscribers.Completion<Failure>) {
            queue.sync {
                switch completion {
                case .finished: events.append(.finished)
                case .failure(let error): events.append(.failed((error as? WaybillError)?.code))
                }
            }
        }

        func request(_ demand: Subscribers.Demand) { queue.sync { subscription }?.request(demand) }

        func cancel() { queue.sync { subscription }?.cancel() }

        /// Returns when so many events were told.
        func wait(for count: Int) async throws -> [Event] {
            while all.count < count { try await Task.sleep(for: .milliseconds(1)) }
            return all
        }
    }

    private let mock = MockTransport().expect(.subscribe)

    private func messages<Value: Decodable & Sendable>(
        of type: Value.Type
    ) async throws -> Messages<Value> {
        try await Provider<AnyEntry>(transport: mock).messages(.subscribe(topic: "t"))
    }

    private func push(_ texts: String...) {
        for text in texts { mock.push(Payload(text), to: "t") }
    }

    @Test("Messages arrive as they are demanded, and no more")
    func demand() async throws {
        let recorder = Recorder<Int, any Error> { "\($0)" }
        try await messages(of: Int.self).publisher.subscribe(recorder)
        push("1", "2", "3")
        recorder.request(.max(2))
        #expect(try await recorder.wait(for: 2) == [.value("1"), .value("2")])
        try await Task.sleep(for: .milliseconds(20))
        #expect(recorder.all.count == 2)
        recorder.request(.unlimited)
        #expect(try await recorder.wait(for: 3).last == .value("3"))
        recorder.cancel()
        push("4")
        try await Task.sleep(for: .milliseconds(20))
        #expect(recorder.all.count == 3)
    }

    @Test("Each subscriber gets every message")
    func twoSubscribers() async throws {
        let messages = try await messages(of: Int.self)
        let recorders = (0..<2).map { _ in Recorder<Int, any Error> { "\($0)" } }
        for recorder in recorders {
            messages.publisher.subscribe(recorder)
            recorder.request(.unlimited)
        }
        push("1", "2")
        for recorder in recorders {
            #expect(try await recorder.wait(for: 2) == [.value("1"), .value("2")])
        }
    }

    @Test("A message that cannot be decoded fails the publisher; the one of results goes on")
    func undecodable() async throws {
        let messages = try await messages(of: Int.self)
        let plain = Recorder<Int, any Error> { "\($0)" }
        let results = Recorder<Result<Int, WaybillError>, any Error> { result in
            (try? result.get()).map { "\($0)" } ?? "undecodable"
        }
        messages.publisher.subscribe(plain)
        messages.results.publisher.subscribe(results)
        plain.request(.unlimited)
        results.request(.unlimited)
        push("1", "x", "2")
        #expect(try await plain.wait(for: 2) == [.value("1"), .failed(.decodingFailed)])
        #expect(
            try await results.wait(for: 3) == [.value("1"), .value("undecodable"), .value("2")]
        )
    }

    @Test("The loss of the connection fails the publisher of messages, behind them")
    func loss() async throws {
        let recorder = Recorder<Int, any Error> { "\($0)" }
        try await messages(of: Int.self).publisher.subscribe(recorder)
        push("1")
        mock.dropConnection()
        recorder.request(.unlimited)
        #expect(try await recorder.wait(for: 2) == [.value("1"), .failed(.connectionLost)])
    }

    @Test("States begin with the present one")
    func states() async throws {
        let provider = Provider<AnyEntry>(transport: MockTransport().expect(.connect))
        let recorder = Recorder<ConnectionState, Never> { $0.isConnected ? "on" : "off" }
        provider.states.publisher.subscribe(recorder)
        recorder.request(.unlimited)
        #expect(try await recorder.wait(for: 1) == [.value("off")])
        try await provider.connect()
        while recorder.all.last != .value("on") { try await Task.sleep(for: .milliseconds(1)) }
        recorder.cancel()
    }

    @Test("Operators and sink work as with any publisher")
    func operators() async throws {
        let seen = Recorder<Int, any Error> { "\($0)" }
        try await messages(of: Int.self).publisher
            .filter { $0 % 2 == 0 }
            .map { $0 * 10 }
            .prefix(2)
            .subscribe(seen)
        seen.request(.unlimited)
        push("1", "2", "3", "4", "5", "6")
        #expect(try await seen.wait(for: 3) == [.value("20"), .value("40"), .finished])
    }

    @Test("Events of the transport arrive, and cancelling ends them")
    func events() async throws {
        let provider = Provider<AnyEntry>(transport: MockTransport().expect(.connect))
        let recorder = Recorder<TransportEvent, Never> { _ in "event" }
        provider.events.publisher.subscribe(recorder)
        recorder.request(.max(1))
        try await provider.connect()
        #expect(try await recorder.wait(for: 1) == [.value("event")])
        recorder.cancel()
    }
}
