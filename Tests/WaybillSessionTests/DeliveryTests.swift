import Testing
import Waybill
import WaybillSession
import WireCore

/// The fate of messages, up to their acknowledgement to the peer.
@Suite("Deliveries", .timeLimit(.minutes(30))) struct DeliveryTests {
    private final class Acknowledger: MessageAcknowledger {
        private let lines = Locked([String]())

        var log: [String] { lines.withLock { $0 } }

        func acknowledge(_ name: Int, _ acknowledgement: Acknowledgement) {
            let word = acknowledgement.isAccepted ? "ack" : "nack"
            lines.withLock { $0.append("\(word) \(name)") }
        }
    }

    private static let ack = Request(topic: nil, command: .ack(.init(.number(1))))

    private func listener(_ options: SubscribeOption...) -> MessageListener {
        MessageListener(
            .subscribe(options: options),
            buffering: BufferPolicy(.dropOldest),
            onLeave: { _ in },
            pressure: ReadingPressure { _ in }
        )
    }

    private func deliver(
        _ name: Int,
        to listeners: [MessageListener],
        _ acknowledger: Acknowledger,
        _ manual: ManualDeliveries<Acknowledger>
    ) {
        var batch = MessageBatch(reportingTo: TransportEventSource(), hasQualities: true)
        batch.add(
            Message(topic: "t"),
            to: listeners,
            acknowledging: name,
            by: acknowledger,
            manual: manual
        )
        batch.deliver()
    }

    @Test("The peer hears of a message when all its listeners have taken it")
    func shared() async throws {
        let acknowledger = Acknowledger()
        let listeners = [listener(), listener()]
        var iterators = listeners.map { $0.source.messages.makeAsyncIterator() }
        deliver(1, to: listeners, acknowledger, ManualDeliveries())
        #expect(try await iterators[0].next()?.id == nil)
        #expect(acknowledger.log == [])
        _ = try await iterators[1].next()
        #expect(acknowledger.log == ["ack 1"])
    }

    @Test("What was settled with another one, or cannot be any longer, no longer waits")
    func removed() async throws {
        let acknowledger = Acknowledger()
        let manual = ManualDeliveries<Acknowledger>()
        let listener = listener(.manualAcknowledgement)
        var iterator = listener.source.messages.makeAsyncIterator()
        for name in 1...3 { deliver(name, to: [listener], acknowledger, manual) }
        var ids: [Message.ID] = []
        for _ in 1...3 { ids.append(try #require(try await iterator.next()?.id)) }
        manual.remove { $0 <= 2 }
        for id in ids.prefix(2) {
            #expect(throws: WaybillError.self) {
                try manual.acknowledge(id, Acknowledgement(), Self.ack)
            }
        }
        _ = try manual.acknowledge(ids[2], Acknowledgement(), Self.ack)
        #expect(acknowledger.log == ["ack 3"])
    }

    @Test("A message that is settled by hand waits for it, by its name")
    func manual() async throws {
        let acknowledger = Acknowledger()
        let manual = ManualDeliveries<Acknowledger>()
        let listener = listener(.manualAcknowledgement)
        var iterator = listener.source.messages.makeAsyncIterator()
        deliver(1, to: [listener], acknowledger, manual)
        deliver(2, to: [listener], acknowledger, manual)
        let first = try #require(try await iterator.next()?.id)
        let second = try #require(try await iterator.next()?.id)
        #expect(first != second)
        #expect(acknowledger.log == [])
        _ = try manual.acknowledge(second, Acknowledgement(isAccepted: false), Self.ack)
        _ = try manual.acknowledge(first, Acknowledgement(), Self.ack)
        #expect(acknowledger.log == ["nack 2", "ack 1"])
        for id in [first, Message.ID(.text(WireName("unknown")))] {
            #expect {
                try manual.acknowledge(id, Acknowledgement(), Self.ack)
            } throws: { error in
                let error = error as? WaybillError
                return error?.code == .invalidEntry && error?.command == "ack"
            }
        }
        #expect(acknowledger.log.count == 2)
    }

    @Test("Refused by one of several counts as refused")
    func refused() async throws {
        let acknowledger = Acknowledger()
        let manual = ManualDeliveries<Acknowledger>()
        let listeners = [listener(.manualAcknowledgement), listener()]
        var iterators = listeners.map { $0.source.messages.makeAsyncIterator() }
        deliver(1, to: listeners, acknowledger, manual)
        let id = try #require(try await iterators[0].next()?.id)
        _ = try manual.acknowledge(id, Acknowledgement(isAccepted: false), Self.ack)
        #expect(acknowledger.log == [])
        _ = try await iterators[1].next()
        #expect(acknowledger.log == ["nack 1"])
    }

    @Test("A message for manual acknowledgement that no stream takes is accepted")
    func dropped() {
        let acknowledger = Acknowledger()
        let manual = ManualDeliveries<Acknowledger>()
        let listener = listener(.manualAcknowledgement)
        let messages = listener.source.messages
        deliver(1, to: [listener], acknowledger, manual)
        messages.cancel()
        #expect(acknowledger.log == ["ack 1"])
    }

    @Test("After the end of the connection no name is known any longer")
    func end() async throws {
        let acknowledger = Acknowledger()
        let manual = ManualDeliveries<Acknowledger>()
        let listener = listener(.manualAcknowledgement)
        var iterator = listener.source.messages.makeAsyncIterator()
        deliver(1, to: [listener], acknowledger, manual)
        let id = try #require(try await iterator.next()?.id)
        manual.removeAll()
        #expect(throws: WaybillError.self) {
            try manual.acknowledge(id, Acknowledgement(), Self.ack)
        }
        #expect(acknowledger.log == [])
    }

    @Test("A stream that ends is named once, with the source")
    func leaving() {
        let left = Locked([MessageSource]())
        let listener = MessageListener(
            .subscribe,
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
