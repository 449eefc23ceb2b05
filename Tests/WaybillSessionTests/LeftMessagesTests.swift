import Foundation
import Testing
import Waybill
import WaybillSession
import WireCore

extension OptionName {
    /// Used by one test each, because the first use makes a key known.
    fileprivate static let late = OptionKey<Bool>(stored: "test.left.late")
    fileprivate static let own = OptionKey<Bool>(stored: "test.left.own")
}

/// When there is another look at messages that wait in a store.
@Suite("Messages that were left", .timeLimit(.minutes(30))) struct LeftMessagesTests {
    private final class Clock: Sendable {
        let time = Locked(Date(timeIntervalSince1970: 1_000))
    }

    private let clock = Clock()
    private let store = InMemorySessionStore()

    private func left(_ option: String, expiry: Date? = nil) -> LeftMessages {
        let options = [StoredOption(option, .flag(true))]
        _ = store.insert(
            StoredMessage(topic: "t", body: [], qos: 1, expiry: expiry, options: options)
        )
        return LeftMessages(
            store.messages(),
            of: store,
            hasQualities: true,
            knowing: [],
            reportingTo: TransportEventSource(),
            at: { [clock] in clock.time.withLock { $0 } }
        )
    }

    /// Looks until nothing is to be done; a test that runs at the same time may make a key known.
    private func lookAgain(
        _ left: LeftMessages,
        _ packet: (StoredMessage, Request) throws(WaybillError) -> Request
    ) async throws {
        for _ in 0..<100 where !left.isEmpty(for: nil) {
            #expect(try await left.prepare(nil, packet: packet).isEmpty)
        }
        #expect(left.isEmpty(for: nil))
    }

    private func take(_: StoredMessage, _ request: Request) throws(WaybillError) -> Request {
        request
    }

    private func refuse(_: StoredMessage, _ request: Request) throws(WaybillError) -> Request {
        try OptionReader(request).finish(for: "this transport")
        return request
    }

    @Test("There is nothing to do for a message that waits, until a key is known")
    func key() async throws {
        let left = left("test.left.late")
        #expect(!left.isEmpty(for: nil))
        try await lookAgain(left, take)
        _ = OptionName.late
        #expect(!left.isEmpty(for: nil))
        #expect(try await left.prepare(nil, packet: take).count == 1)
        left.take([1])
        #expect(left.isEmpty(for: nil))
    }

    @Test("There is nothing to do for a message that waits, until it has expired")
    func expiry() async throws {
        let end = clock.time.withLock { $0 + 60 }
        let left = left("of a later version", expiry: end)
        try await lookAgain(left, take)
        clock.time.withLock { $0 = end }
        #expect(!left.isEmpty(for: nil))
        let prepared = try await left.prepare(nil, packet: take)
        #expect(throws: WaybillError.self) { try prepared.first?.packet.get() }
        #expect(prepared.count == 1 && left.waiting.count == 1)
    }

    @Test("An option that the transport refuses waits for a provider with other interceptors")
    func refused() async throws {
        _ = OptionName.own
        let left = left("test.left.own")
        try await lookAgain(left, refuse)
        #expect(left.waiting.count == 1 && store.messages().count == 1)
        #expect(try await left.prepare(nil, packet: take).count == 1)
    }
}
