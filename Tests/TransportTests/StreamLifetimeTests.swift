import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Streams whose provider and transport have no other references, over real sockets.
@Suite("Every transport: the lifetime of streams", .inSimulation, .timeLimit(.minutes(30)))
struct StreamLifetimeTests {
    enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case mqtt, stomp, events, mock

        var testDescription: String { rawValue }

        func transport(to broker: LoopbackBroker) throws -> any Transport {
            switch self {
            case .mqtt: try broker.transport(.mqtt)
            case .stomp: try broker.transport(.stomp)
            case .events: try broker.transport(.eventStream)
            case .mock: MockTransport().expect(.subscribe)
            }
        }
    }

    /// A weak reference to a transport.
    private final class Watch {
        private weak var object: AnyObject?

        init(_ transport: any Transport) {
            object = transport as AnyObject
        }

        var transport: (any Transport)? { object as? any Transport }
    }

    private func stream(
        _ kind: Kind,
        _ broker: LoopbackBroker,
        all: Bool = false
    ) async throws -> (Messages<Message>, Watch) {
        let transport = try kind.transport(to: broker)
        let provider = Provider<LoopbackEntry>(transport: transport)
        let watch = Watch(transport)
        guard all else { return (try await provider.messages(.subscribe("t")), watch) }
        return (try transport.allMessages(BufferPolicy(.dropOldest)), watch)
    }

    @Test(
        "A stream outlives its provider, and takes the transport along when it goes",
        arguments: Kind.allCases
    )
    func keepsTransport(kind: Kind) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let sender = Provider<LoopbackEntry>(
            transport: try broker.transport(.mqtt)
        )
        try await sender.request(LoopbackEntry(command: .connect))
        func run() async throws -> Watch {
            let (messages, watch) = try await stream(kind, broker)
            await untilQuiet()
            #expect(watch.transport != nil)
            var iterator = messages.makeAsyncIterator()
            for text in ["1", "2"] {
                if let mock = watch.transport as? MockTransport {
                    mock.push(Payload(text), to: "t")
                } else {
                    try await sender.request(.send(text, to: "t"))
                }
                #expect(try await iterator.next()?.text == text)
            }
            return watch
        }
        let watch = try await run()
        try await waitUntil { watch.transport == nil }
        try await waitUntil { broker.connectionCount == 1 }
        await broker.stop()
    }

    @Test("A stream that is cancelled, or has ended, keeps no transport", arguments: Kind.allCases)
    func letsGo(kind: Kind) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let (cancelled, first) = try await stream(kind, broker)
        cancelled.cancel()
        try await waitUntil { first.transport == nil }

        let (ended, second) = try await stream(kind, broker)
        await second.transport?.shutdown()
        for try await _ in ended {}
        try await waitUntil { second.transport == nil }
        withExtendedLifetime((cancelled, ended)) {}
        await broker.stop()
    }

    @Test("What looks on at all messages keeps the transport, too", arguments: Kind.allCases)
    func allMessages(kind: Kind) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        func run() async throws -> Watch {
            let (messages, watch) = try await stream(kind, broker, all: true)
            await untilQuiet()
            #expect(watch.transport != nil)
            withExtendedLifetime(messages) {}
            return watch
        }
        let watch = try await run()
        try await waitUntil { watch.transport == nil }
        await broker.stop()
    }
}
