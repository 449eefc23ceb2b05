import Testing
import TransportTestSupport
import Waybill
import WaybillSSE

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

@Suite(
    "Event stream servers",
    .enabled(
        if: TestServers.port("EVENTSOURCE_RAW") != nil,
        "Python's aiohttp-sse and sse-starlette are not running: Tests/Servers/with --install -- swift test"
    ),
    // One test kills the servers that the others use.
    .serialized,
    .timeLimit(.minutes(30))
)
struct EventStreamServerTests {
    private static let all = ["EVENTSOURCE_AIOHTTP", "EVENTSOURCE_STARLETTE", "EVENTSOURCE_RAW"]

    /// Expects that a stream of numbered events is complete and in order.
    private func expectNumbered(_ heard: [Message], _ count: Int) {
        #expect(heard.count == count)
        let isWhole = heard.enumerated().allSatisfy { index, message in
            message.text == "event \(index + 1)" && message.id?.description == "\(index + 1)"
        }
        #expect(isWhole)
    }

    @Test("Numbered events with CR LF and comments, until 204 ends them", arguments: all)
    func numbered(_ server: String) async throws {
        let client = try EventStreamClient(server)
        expectNumbered(try await client.messages(.listen("/numbered?count=1000")), 1_000)
        let rest = try await client.messages(
            .listen("/numbered?count=1000", [.lastEventID("995")])
        )
        #expect(rest.map(\.text) == (996...1_000).map { "event \($0)" })
        await client.transport.shutdown()
    }

    @Test("A stream may be the answer to a POST", arguments: all)
    func post(_ server: String) async throws {
        let client = try EventStreamClient(server) { $0.reconnection = .never }
        let heard = try await client.messages(.listen("/echo", body: "one\ntwö\n three"))
        #expect(heard.map(\.text) == ["one", "twö", " three"])
        #expect(heard.allSatisfy { $0[.eventType] == "line" })
        await client.transport.shutdown()
    }

    @Test(
        "A server is killed and started again within 10,000 events: none is lost, none comes twice",
        arguments: ["aiohttp", "starlette"]
    )
    func killed(_ name: String) async throws {
        let server = "EVENTSOURCE_\(name.uppercased())"
        let requests = RequestCounter()
        let client = try EventStreamClient(server) {
            $0.buffering = .init(.holdBack, messageLimit: 100)
            $0.wireLogger = requests
        }
        let control = try EventStreamClient("EVENTSOURCE_RAW")
        var heard: [Message] = []
        let entry = EventStreamEntry.listen("/numbered?count=10000&pause=10")
        for try await message in try await client.provider.messages(entry) {
            heard.append(message)
            if [500, 3_000, 6_000].contains(heard.count) {
                let kill = EventStreamEntry.post("", to: "/kill?server=\(name)")
                try await control.provider.request(kill)
            }
        }
        expectNumbered(heard, 10_000)
        // The first request, at least one after a kill, and the one that 204 answers. The later kills may come when the
        // server has written all events.
        #expect(requests.count >= 3)
        await client.transport.shutdown()
        await control.transport.shutdown()
    }

    @Test(
        "A stream that is cut again and again, compressed or not, loses nothing",
        arguments: ["", "&coding=gzip", "&coding=deflate"]
    )
    func cut(_ coding: String) async throws {
        let requests = RequestCounter()
        let client = try EventStreamClient("EVENTSOURCE_RAW") { $0.wireLogger = requests }
        let path = "/numbered?count=10000&cut=97\(coding)"
        expectNumbered(try await client.messages(.listen(path)), 10_000)
        #expect(requests.count > 100)
        await client.transport.shutdown()
    }

    @Test(
        "A connection that ends within something begun: what is complete counts, the rest comes again",
        arguments: ["character", "line-end", "chunk-size", "chunk-end", "data"]
    )
    func broken(_ place: String) async throws {
        let client = try EventStreamClient("EVENTSOURCE_RAW")
        let heard = try await client.texts("/broken?where=\(place)")
        #expect(heard == ["größer", "größer als zuvor"])
        await client.transport.shutdown()
    }

    @Test("One byte at a time is the same stream")
    func slow() async throws {
        let client = try EventStreamClient("EVENTSOURCE_RAW")
        let heard = try await client.texts("/slow?ms=20")
        #expect(heard == ["größer\n→ 😀", "end"])
        await client.transport.shutdown()
    }

    @Test("The body's end is told by a length, by chunks or by the connection's end")
    func framing() async throws {
        for how in ["length", "chunked", "close"] {
            let client = try EventStreamClient("EVENTSOURCE_RAW")
            #expect(try await client.texts("/framed?how=\(how)") == ["a", "b", "c"])
            await client.transport.shutdown()
        }
    }

    @Test("A silent stream is asked for again where that is wanted", .realTime)
    func realTimeStall() async throws {
        let client = try EventStreamClient("EVENTSOURCE_RAW") {
            $0.timeouts.silence = .milliseconds(200)
        }
        #expect(try await client.texts("/stall") == ["1", "2"])
        await client.transport.shutdown()
    }

    @Test("A server that is busy is asked again when it says", .realTime)
    func realTimeBusy() async throws {
        let client = try EventStreamClient("EVENTSOURCE_RAW")
        let start = ContinuousClock().now
        let key = UInt64.random(in: 0 ... .max)
        #expect(try await client.texts("/busy?key=\(key)") == ["1", "2"])
        // Without Retry-After the wait would be at most 0.2 seconds. A link's clock may be 10 milliseconds off.
        #expect(ContinuousClock().now - start >= .milliseconds(980))
        await client.transport.shutdown()
    }

    @Test("A line or an event of 256 MiB is skipped in bounded memory, and the next comes")
    func endless() async throws {
        let size = TestServers.isExtended ? 1 << 30 : 256 << 20
        for what in ["line", "event"] {
            let client = try EventStreamClient("EVENTSOURCE_RAW") {
                $0.limits.lineSize = 8 << 20
                $0.limits.eventSize = 8 << 20
            }
            let before = Self.residentBytes
            let messages = try await client.provider.messages(.listen("/\(what)?bytes=\(size)"))
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next()?.text == "before")
            #expect(try await iterator.next()?.text == "after")
            // Not kept.
            #expect(Self.residentBytes - before < 128 << 20)
            await client.transport.shutdown()
        }
    }

    @Test("Many comments are no event and take no memory")
    func comments() async throws {
        let client = try EventStreamClient("EVENTSOURCE_RAW")
        let before = Self.residentBytes
        let size = TestServers.isExtended ? 1 << 30 : 16 << 20
        #expect(try await client.texts("/comments?bytes=\(size)", first: 1) == ["after"])
        #expect(Self.residentBytes - before < 256 << 20)
        await client.transport.shutdown()
    }

    @Test("Data that does not match its content coding is the server's fault")
    func lies() async throws {
        let client = try EventStreamClient("EVENTSOURCE_RAW")
        let error = await #expect(throws: WaybillError.self) { try await client.texts("/lies") }
        #expect(error?.code == .protocolViolation)
        await client.transport.shutdown()
    }

    /// The resident memory of this process; 0 where it is unknown.
    private static var residentBytes: Int {
        let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?
            .split(separator: " ")
        guard let fields, fields.count > 1, let pages = Int(fields[1]) else { return 0 }
        return pages * 4_096
    }
}
