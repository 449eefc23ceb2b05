import Testing
import Waybill
import WireCore
import WireTestSupport

/// A transport outside the package needs only the public API.
@Suite("A transport of one's own", .timeLimit(.minutes(30))) struct OwnTransportTests {
    /// Acknowledges messages when they are taken, or when the app asks for it.
    private final class OwnTransport: Transport {
        private let source = ConnectionStateSource()
        private struct State: Sendable {
            var feed: MessageFeed?
            var acknowledged: [Message.ID] = []
        }

        private let state = Locked(State())

        var states: ConnectionStates { source.states }

        var acknowledged: [Message.ID] { state.withLock { $0.acknowledged } }

        func perform(_ request: Request) async throws -> Receipt {
            if request.command.kind == .ack { acknowledge(request.command.message) }
            return Receipt()
        }

        private func acknowledge(_ id: Message.ID?) {
            guard let id else { return }
            state.withLock { $0.acknowledged.append(id) }
        }

        func subscribe(_ request: Request) async throws -> Messages<Message> {
            guard request.command.kind == .subscribe else {
                throw WaybillError(.invalidEntry, "no subscription")
            }
            let isManual = request.command[.manualAcknowledgement] == true
            let (messages, feed) = Messages<Message>.makeStream(
                onTaken: { [weak self] message in
                    if !isManual { self?.acknowledge(message.id) }
                }
            )
            state.withLock { $0.feed = feed }
            return messages.keeping(self)
        }

        func push(_ messages: [Message]) {
            state.withLock { $0.feed }?.deliver(messages)
        }

        func shutdown() async {}
    }

    private func subscription(_ options: SubscribeOption...) -> Request {
        Request(topic: "a", command: .subscribe(qos: .atLeastOnce, options: options))
    }

    @Test("Messages are acknowledged when they are taken, not before")
    func whenTaken() async throws {
        let transport = OwnTransport()
        let messages = try await transport.subscribe(subscription())
        transport.push([
            Message(topic: "a", id: Message.ID("one")), Message(topic: "a", id: Message.ID(2)),
        ])
        #expect(transport.acknowledged.isEmpty)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.id == Message.ID("one"))
        #expect(transport.acknowledged == [Message.ID("one")])
        #expect(try await iterator.next()?.id?.description == "2")
        #expect(transport.acknowledged == [Message.ID("one"), Message.ID(2)])
    }

    @Test("With several consumers a message is told of once, after all have taken it")
    func shared() async throws {
        let transport = OwnTransport()
        let messages = try await transport.subscribe(subscription())
        var first = messages.makeAsyncIterator()
        var second = messages.makeAsyncIterator()
        transport.push([Message(topic: "a", id: Message.ID(1))])
        _ = try await first.next()
        #expect(transport.acknowledged.isEmpty)
        _ = try await second.next()
        #expect(transport.acknowledged == [Message.ID(1)])
    }

    @Test("By hand, the transport gets the id that it has given")
    func manual() async throws {
        let transport = OwnTransport()
        let messages = try await transport.subscribe(subscription(.manualAcknowledgement))
        transport.push([Message(topic: "a", id: Message.ID("m-1"))])
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        #expect(transport.acknowledged.isEmpty)
        _ = try await transport.perform(Request(topic: nil, command: .ack(id)))
        #expect(transport.acknowledged == [Message.ID("m-1")])
        #expect(Message.ID("1") != Message.ID(1))
    }
}
