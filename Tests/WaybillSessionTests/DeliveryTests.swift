import Testing
import Waybill
import WaybillSession
import WireCore

/// The fate of messages, up to their acknowledgement to the peer.
@Suite("Deliveries", .timeLimit(.minutes(5))) struct DeliveryTests {
    private final class Settler: DeliverySettler {
        private let lines = Locked([String]())

        var log: [String] { lines.withLock { $0 } }

        func settle(_ name: Int, _ settlement: Settlement) {
            let word = settlement.isAccepted ? "ack" : "nack"
            let transaction = settlement.transaction.map { " in \($0)" } ?? ""
            lines.withLock { $0.append("\(word) \(name)\(transaction)") }
        }
    }

    private static let ack = Request(topic: nil, command: .ack(.init(.number(1))))

    private func listener(_ mode: AcknowledgementMode = .whenTaken) -> MessageListener {
        MessageListener(
            SubscribeOptions(acknowledgement: mode),
            buffering: BufferPolicy(.dropOldest),
            onLeave: { _ in },
            pressure: ReadingPressure { _ in }
        )
    }

    private func deliver(
        _ name: Int,
        to listeners: [MessageListener],
        _ settler: Settler,
        _ manual: ManualDeliveries<Settler>
    ) {
        var batch = MessageBatch(reportingTo: TransportEventSource(), hasQualities: true)
        batch.add(
            Message(topic: "t"),
            to: listeners,
            settling: name,
            by: settler,
            manual: manual
        )
        batch.deliver()
    }

    @Test("The peer hears of a message when all its listeners have taken it")
    func shared() async throws {
        let settler = Settler()
        let listeners = [listener(), listener()]
        var iterators = listeners.map { $0.source.messages.makeAsyncIterator() }
        deliver(1, to: listeners, settler, ManualDeliveries())
        #expect(try await iterators[0].next()?.id == nil)
        #expect(settler.log == [])
        _ = try await iterators[1].next()
        #expect(settler.log == ["ack 1"])
    }

    @Test("What was settled with another one, or cannot be any longer, no longer waits")
    func removed() async throws {
        let settler = Settler()
        let manual = ManualDeliveries<Settler>()
        let listener = listener(.manual)
        var iterator = listener.source.messages.makeAsyncIterator()
        for name in 1...3 { deliver(name, to: [listener], settler, manual) }
        var ids: [Message.ID] = []
        for _ in 1...3 { ids.append(try #require(try await iterator.next()?.id)) }
        manual.remove { $0 <= 2 }
        for id in ids.prefix(2) {
            #expect(throws: WaybillError.self) { try manual.settle(id, Settlement(), Self.ack) }
        }
        _ = try manual.settle(ids[2], Settlement(), Self.ack)
        #expect(settler.log == ["ack 3"])
    }

    @Test("A message that is settled by hand waits for it, by its name")
    func manual() async throws {
        let settler = Settler()
        let manual = ManualDeliveries<Settler>()
        let listener = listener(.manual)
        var iterator = listener.source.messages.makeAsyncIterator()
        deliver(1, to: [listener], settler, manual)
        deliver(2, to: [listener], settler, manual)
        let first = try #require(try await iterator.next()?.id)
        let second = try #require(try await iterator.next()?.id)
        #expect(first != second)
        #expect(settler.log == [])
        _ = try manual.settle(second, Settlement(isAccepted: false, transaction: "x"), Self.ack)
        _ = try manual.settle(first, Settlement(), Self.ack)
        #expect(settler.log == ["nack 2 in x", "ack 1"])
        for id in [first, Message.ID(.text(WireName("unknown")))] {
            #expect {
                try manual.settle(id, Settlement(), Self.ack)
            } throws: { error in
                let error = error as? WaybillError
                return error?.code == .invalidEntry && error?.command == "ack"
            }
        }
        #expect(settler.log.count == 2)
    }

    @Test("Refused by one of several counts as refused")
    func refused() async throws {
        let settler = Settler()
        let manual = ManualDeliveries<Settler>()
        let listeners = [listener(.manual), listener()]
        var iterators = listeners.map { $0.source.messages.makeAsyncIterator() }
        deliver(1, to: listeners, settler, manual)
        let id = try #require(try await iterators[0].next()?.id)
        _ = try manual.settle(id, Settlement(isAccepted: false), Self.ack)
        #expect(settler.log == [])
        _ = try await iterators[1].next()
        #expect(settler.log == ["nack 1"])
    }

    @Test("A message for manual acknowledgement that no stream takes is accepted")
    func dropped() {
        let settler = Settler()
        let manual = ManualDeliveries<Settler>()
        let listener = listener(.manual)
        let messages = listener.source.messages
        deliver(1, to: [listener], settler, manual)
        messages.cancel()
        #expect(settler.log == ["ack 1"])
    }

    @Test("After the end of the connection no name is known any longer")
    func end() async throws {
        let settler = Settler()
        let manual = ManualDeliveries<Settler>()
        let listener = listener(.manual)
        var iterator = listener.source.messages.makeAsyncIterator()
        deliver(1, to: [listener], settler, manual)
        let id = try #require(try await iterator.next()?.id)
        manual.removeAll()
        #expect(throws: WaybillError.self) { try manual.settle(id, Settlement(), Self.ack) }
        #expect(settler.log == [])
    }

    @Test("A stream that ends is named once, with the source")
    func leaving() {
        let left = Locked([MessageSource]())
        let listener = MessageListener(
            SubscribeOptions(),
            buffering: BufferPolicy(.dropOldest),
            onLeave: { source in left.withLock { $0.append(source) } },
            pressure: ReadingPressure { _ in }
        )
        let messages = listener.source.messages
        messages.cancel()
        messages.cancel()
        #expect(left.withLock { $0.count } == 1)
        #expect(left.withLock { $0.first } === listener.source)
    }
}
