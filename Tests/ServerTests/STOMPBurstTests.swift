import Testing
import Waybill
import WaybillSTOMP
import WireCore

/// Many requests at once, and requests that RabbitMQ refuses with its own texts.
@Suite(
    "RabbitMQ: bursts and refusals",
    .enabled(
        if: STOMPServer.areRabbitMQsRunning,
        "RabbitMQ is not running: Tests/Servers/with --install rabbitmq -- swift test"
    ),
    .serialized,
    .timeLimit(.minutes(30))
)
struct STOMPBurstTests {
    private func queue(_ name: String) -> String {
        "/queue/waybill-\(UInt64.random(in: 0 ... .max))-\(name)"
    }

    @Test(
        "Ten thousand sends at once all arrive, with the defaults",
        arguments: STOMPServer.rabbitMQs
    )
    func sends(server: STOMPServer) async throws {
        let count = 10_000
        let queue = queue("burst")
        let (transport, provider) = try server.provider()
        try await provider.request(.connect)
        let sends = (0..<count).map { number in
            Task { _ = try await provider.request(.send(.init("\(number)"), to: queue)) }
        }
        var failures: [any Error] = []
        for send in sends {
            do { try await send.value } catch { failures.append(error) }
        }
        #expect(
            failures.isEmpty,
            "\(failures.count), such as \(failures.first.map { "\($0)" } ?? "")"
        )
        guard case .connected = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
        let consumer = try server.transport {
            $0.buffering = BufferPolicy(.fail, messageLimit: count)
        }
        var heard = Set<String>()
        for try await message in try await Provider<FrameEntry>(transport: consumer)
            .messages(.subscribe(queue, .auto))
        {
            heard.insert(message.text ?? "")
            if heard.count == count { break }
        }
        #expect(heard == Set((0..<count).map { "\($0)" }))
        await consumer.shutdown()
        await transport.shutdown()
    }

    /// A request and its reply.
    private enum EchoEntry: EntryType {
        case ask(Int, at: String)
        case questions(at: String)
        case answer(Int, to: Message)

        var topic: String? {
            switch self {
            case .ask(_, let topic), .questions(let topic): topic
            case .answer(_, let message): message.replyTopic
            }
        }

        var command: EntryCommand {
            switch self {
            case .ask: .send(qos: .atLeastOnce)
            case .questions: .subscribe(qos: .atLeastOnce)
            case .answer(_, let message): .reply(to: message, qos: .atLeastOnce)
            }
        }

        var body: EntryBody {
            switch self {
            case .ask(let number, _), .answer(let number, _): .json(number)
            case .questions: .none
            }
        }
    }

    @Test("A thousand questions at once are all answered", arguments: STOMPServer.rabbitMQs)
    func questions(server: STOMPServer) async throws {
        let topic = queue("questions")
        let answering = try server.transport()
        let answerer = Provider<EchoEntry>(transport: answering)
        let questions = try await answerer.messages(.questions(at: topic))
        let service = Task {
            for try await question in questions {
                let number = question.text.flatMap { Int($0) } ?? -1
                // The answers are sent concurrently, too.
                Task { _ = try? await answerer.request(.answer(number + 1, to: question)) }
            }
        }
        let asking = try server.transport()
        let asker = Provider<EchoEntry>(transport: asking)
        let answers = (0..<1_000).map { number in
            Task { () async throws -> Int in try await asker.request(.ask(number, at: topic)) }
        }
        for (number, answer) in answers.enumerated() {
            #expect(try await answer.value == number + 1)
        }
        service.cancel()
        await asking.shutdown()
        await answering.shutdown()
    }

    @Test(
        "A destination that RabbitMQ does not know is a refusal, which no retry can help",
        arguments: STOMPServer.rabbitMQs,
        ["/nowhere/x", "/exchange/waybill-nowhere/x"]
    )
    func unknownDestination(server: STOMPServer, destination: String) async throws {
        // Over WebSocket, RabbitMQ 3.10 closes without an ERROR when an exchange is missing ("STOMP died").
        if destination.hasPrefix("/exchange"), !server.isOverTCP { return }
        for entry in [
            FrameEntry.send("x", to: destination), .subscribe(destination, .auto),
        ] {
            let (transport, provider) = try server.provider()
            let error = await #expect(throws: WaybillError.self) {
                if case .subscribe = entry {
                    _ = try await provider.messages(entry)
                } else {
                    try await provider.request(entry)
                }
            }
            #expect(error?.code == .rejected)
            #expect(error?.isRetryable == false)
            #expect(error?.peerReason == "Unknown destination" || error?.peerReason == "not_found")
            #expect(error?.topic == destination)
            await transport.shutdown()
        }
    }

    @Test("A destination that is refused costs no other request", arguments: STOMPServer.rabbitMQs)
    func refusedAmongOthers(server: STOMPServer) async throws {
        let queue = queue("others")
        let transport = try server.transport { $0.reconnection = ReconnectionPolicy() }
        let provider = Provider<FrameEntry>(transport: transport)
            .intercepted(RetryPolicy(maximumAttempts: 5, delay: .none))
        try await provider.request(.connect)
        let messages = try await provider.messages(.subscribe(queue, .clientIndividual))
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.send("x", to: "/nowhere/x"))
        }
        #expect(error?.code == .rejected && error?.attempt == 1)
        // The transport reconnects after the ERROR, and restores the subscription.
        try await provider.request(.send("still here", to: queue))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "still here")
        await transport.shutdown()
    }
}
