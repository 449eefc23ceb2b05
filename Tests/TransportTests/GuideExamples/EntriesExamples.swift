import Dispatch
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

extension OptionName { fileprivate static let priority = OptionKey<Int>("priority") }

extension SendOption {
    fileprivate static func priority(_ level: Int) -> Self { Self(.priority, level) }
}

/// The examples of the guide's page about entries, over a mock.
@Suite("Guide: entries, options and brokers", .inSimulation, .timeLimit(.minutes(30)))
struct EntriesExamples {
    enum ShopEntry: EntryType {
        case connect
        case pay
        case report
        case everything
        case prices
        case close

        var topic: String? {
            switch self {
            case .connect, .close: nil
            case .pay: "payments"
            case .report: "reports"
            case .everything: "orders/+"
            case .prices: "prices"
            }
        }

        var topics: [EntryTopic] {
            switch self {
            case .everything: ["orders/+", "stock/#", EntryTopic("alerts", qos: .exactlyOnce)]
            default: topic.map { [EntryTopic($0)] } ?? []
            }
        }

        var command: EntryCommand {
            switch self {
            case .connect: .connect(.cleanStart(false), .keepAlive(.seconds(30)))
            case .pay: .send(qos: .atLeastOnce, .timeout(.seconds(5)), .expiry(.seconds(60)))
            case .report: .send(qos: .atLeastOnce, .timeout(.seconds(60)))
            case .everything, .prices: .subscribe(qos: .atLeastOnce, .retainHandling(.sendIfNew))
            case .close: .disconnect(.drainTimeout(.seconds(2)), .reason("signed out"))
            }
        }

        var retry: RetryPolicy? {
            switch self {
            case .pay: RetryPolicy(maximumAttempts: 1)
            default: nil
            }
        }
    }

    private func mock() -> MockTransport {
        MockTransport().expect(.connect).expect(.send).expect(.subscribe).expect(.disconnect)
    }

    @Test("Options, retries, timeouts and topics of an entry")
    func options() async throws {
        let mock = mock()
        let provider = Provider<ShopEntry>(transport: mock)
        try await provider.request(.connect)
        try await provider.request(.pay)
        try await provider.request(.report)
        let everything = try await provider.messages(.everything)
        mock.push("1", to: "stock/shoes/red")
        mock.push("2", to: "alerts")
        var iterator = everything.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "1")
        #expect(try await iterator.next()?.text == "2")
        try await provider.request(.close)
        let alerts = EntryTopic("alerts", qos: .exactlyOnce)
        #expect(mock.requests[3].topics == ["orders/+", "stock/#", alerts])
        #expect(mock.requests[2].command[.timeout] == .seconds(60))
    }

    private struct PriorityHeader: Interceptor {
        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            if let level = request.command[.priority] { request.headers["priority"] = "\(level)" }
            request.command[.priority] = nil
        }
    }

    @Test("An option of one's own")
    func ownOption() async throws {
        let mock = mock()
        let provider = Provider<AnyEntry>(transport: mock).intercepted(PriorityHeader())
        try await provider.request(.send(topic: "alarms", .priority(9)))
        #expect(mock.requests.first?.headers == ["priority": "9"])
        #expect(mock.requests.first?.command == .send)
    }

    @Test("Several enums through one provider, and a style of one's own")
    func severalEnums() async throws {
        let mock = mock()
        let dotted = TopicStyle(
            separator: ".",
            prefix: "/topic/",
            sendPrefix: "/app/",
            furtherLevels: "**"
        )
        let provider = Provider<AnyEntry>(transport: mock).topicStyle(dotted)
        try await provider.request(AnyEntry(ShopEntry.pay))
        _ = try await provider.messages(AnyEntry(ShopEntry.everything))
        let alerts = EntryTopic("/topic/alerts", qos: .exactlyOnce)
        let topics: [[EntryTopic]] = [
            ["/app/payments"], ["/topic/orders.*", "/topic/stock.**", alerts],
        ]
        #expect(mock.requests.map(\.topics) == topics)
    }

    @Test("Portable providers")
    func portable() async throws {
        let mock = mock()
        let provider = Provider<AnyEntry>(transport: mock)
            .whenUnsupported(.ignore([.retained, .expiry, .headers, .qos]))
            .topicStyle(.rabbitMQ)
        try await provider.request(.send(topic: "lamps/hall", body: .text("on"), qos: .atLeastOnce))
        #expect(mock.requests.first?.topic == "/topic/lamps.hall")
    }

    @Test("Handlers", .outsideSimulation)
    func handlers() async throws {
        let mock = mock()
        let provider = Provider<ShopEntry>(transport: mock)
        let lines = Locked([String]())
        let handle = provider.subscribe(of: String.self, entry: .prices, on: .main) { update in
            switch update {
            case .subscribed(let qos):
                lines.withLock { $0.append("live, QoS \(qos?.rawValue ?? 0)") }
            case .message(let price): lines.withLock { $0.append(price) }
            case .failure(let error): lines.withLock { $0.append("\(error)") }
            case .ended(let error): lines.withLock { $0.append("\(String(describing: error))") }
            }
        }
        try await waitUntil { mock.subscriptionCount == 1 }
        mock.push("12.50", to: "prices")
        try await waitUntil { lines.withLock { $0 } == ["live, QoS 0", "12.50"] }
        handle.cancel()
        let asked = Provider<AnyEntry>(transport: MockTransport().expect(.send, .reply("13.20")))
        asked.request(of: String.self, entry: .send(topic: "price", .expectsReply)) { result in
            lines.withLock { $0.append((try? result.get()) ?? "none") }
        }
        try await waitUntil { lines.withLock { $0.last } == "13.20" }
    }
}
