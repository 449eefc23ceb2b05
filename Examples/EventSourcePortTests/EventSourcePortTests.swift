import EventSourcePort
import Testing
import TransportTestSupport
import WaybillSSE
import WaybillTesting

/// An event of the feed, with a type for each kind.
enum News: Equatable, Sendable {
    case headline(String)
    case prices([String: Int])
    case unknown(type: String)

    static let router = MessageRouter<News>()
        .event("message", News.headline)
        .event("prices", News.prices)
        .otherwise { .unknown(type: $0[.eventType] ?? "message") }
}

@Suite("Coming from EventSource", .inSimulation, .timeLimit(.minutes(30)))
struct EventSourcePortTests {
    private enum Entry: EntryType {
        case news
        case post(String, event: String? = nil)

        var topic: String? { "news" }

        var command: EntryCommand {
            switch self {
            case .news: .subscribe
            case .post: .send
            }
        }

        var body: EntryBody {
            switch self {
            case .news: .none
            case .post(let text, _): .text(text)
            }
        }

        var headers: Headers {
            guard case .post(_, let event?) = self else { return [:] }
            return ["event": event]
        }
    }

    @Test(
        "Open, message, named event, loss and return, all with handlers; later on from where it was"
    )
    func feed() async throws {
        var configuration = LoopbackBroker.Configuration()
        configuration.eventStreamRetry = .milliseconds(1)
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        let url = broker.url(for: .eventStream)
        let transport = try SSETransport(url: url)
        let provider = Provider<Entry>(transport: transport)

        let (lines, line) = AsyncStream.makeStream(of: String.self)
        var reports = lines.makeAsyncIterator()
        let feed = try NewsFeed(url: "\(url)/news", token: "secret") { line.yield($0) }
        feed.start()
        #expect(await reports.next() == "open")
        try await provider.request(.post("hello"))
        #expect(await reports.next() == "1: hello")
        try await provider.request(.post("hallo", event: "correction"))
        #expect(await reports.next() == "correction of 2: hallo")
        broker.dropConnections()
        #expect(await reports.next() == "status 200, again soon")
        #expect(await reports.next() == "open")

        let token = feed.hear("prices") { line.yield($0.data) }
        try await provider.request(.post("3", event: "prices"))
        #expect(await reports.next() == "3")
        feed.ignore(token)
        _ = feed.hear("prices") { line.yield($0.data) }
        feed.ignoreAll("prices")
        let place = feed.stop()
        #expect(place == "3")

        try await provider.request(.post("while away"))
        let events = feed.events()
        feed.start(after: place)
        #expect(await reports.next() == "open")
        #expect(await reports.next() == "4: while away")
        var iterator = events.makeAsyncIterator()
        #expect(try await iterator.next()?.data == "while away")
        _ = feed.stop()
        #expect(try await iterator.next() == nil)
        await transport.shutdown()
        await broker.stop()
    }

    @Test("The same news as a sequence of typed values")
    func values() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let transport = try SSETransport(url: broker.url(for: .eventStream))
        let provider = Provider<Entry>(transport: transport)
        let news = try await provider.messages(.news).routed(by: News.router)
        try await provider.request(.post("Rain"))
        try await provider.request(.post(#"{"tea":3}"#, event: "prices"))
        try await provider.request(.post("?", event: "weather"))
        var heard: [News] = []
        for try await item in news {
            heard.append(item)
            if heard.count == 3 { break }
        }
        #expect(heard == [.headline("Rain"), .prices(["tea": 3]), .unknown(type: "weather")])
        await transport.shutdown()
        await broker.stop()
    }
}
