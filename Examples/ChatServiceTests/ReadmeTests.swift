import Foundation
import Testing
import WaybillMQTT
import WaybillTesting

// The code of the README's first page, compiled and run.

private struct ChatMessage: Codable { var text: String }

private enum ChatEntry: EntryType {
    case join
    case say(ChatMessage)

    var topic: String? { "chat/lobby" }

    var command: EntryCommand {
        switch self {
        case .join: .subscribe(qos: .atLeastOnce)
        case .say: .send(qos: .atLeastOnce)
        }
    }

    var body: EntryBody {
        if case .say(let message) = self { .json(message) } else { .none }
    }
}

@Suite("README", .timeLimit(.minutes(30))) struct ReadmeTests {
    private struct Account: Sendable {
        func token() async throws -> String { "token" }
    }

    private let account = Account()

    /// The README's calls, with a transport that the test chooses; they end when the task is cancelled.
    private func use(_ transport: some Transport, print: (String) -> Void) async throws {
        let account = account
        let tokens = TokenInterceptor(.password(userName: "ada")) { _ in try await account.token() }
        let chat = Provider<ChatEntry>(transport: transport).intercepted(tokens, RetryPolicy())

        try await chat.withConnection {
            let messages: Messages<ChatMessage> = try await chat.messages(.join)
            try await chat.request(.say(ChatMessage(text: "Hello")))
            for try await message in messages.skippingFailures { print(message.text) }
        }
    }

    @Test("The first page works over MQTT, with a token")
    func firstPage() async throws {
        var configuration = LoopbackBroker.Configuration()
        configuration.authenticate = { user, password in user == "ada" && password == "token" }
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        let transport = try MQTTTransport(url: broker.url(for: .mqtt)) {
            $0.clientIdentifier = "ada"
        }
        let (heard, list) = AsyncStream.makeStream(of: String.self)
        let program = Task { try await use(transport) { list.yield($0) } }
        var iterator = heard.makeAsyncIterator()
        #expect(await iterator.next() == "Hello")
        program.cancel()
        await #expect(throws: CancellationError.self) { try await program.value }
        await transport.shutdown()
        await broker.stop()
    }

    @Test("The first page's test passes")
    func test() async throws {
        let mock = MockTransport(like: .mqtt5)
        mock.expect(.send, topic: "chat/lobby")
        try await Provider<ChatEntry>(transport: mock).request(.say(ChatMessage(text: "Hello")))
        #expect(mock.requests.first?.contentType == "application/json")
    }

    @Test("The program is the example, and each other line of code is in this file")
    func lines() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        func text(_ path: String) throws -> String {
            try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        }
        let readme = try text("README.md")
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let blocks = readme.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```").first ?? ""
        }
        let program = try text("Examples/FirstPage/main.swift")
        #expect(blocks.first == program)
        #expect(program.split(separator: "\n").count <= 25)
        // The parts of the program that run here: its types as they stand, and its calls, which are further to the right.
        let parts = program.components(separatedBy: "\n\nlet chat = ")
        try #require(parts.count == 2)
        let types = parts[0].components(separatedBy: "\n\n").dropFirst().joined(separator: "\n\n")
            .replacing("struct ", with: "private struct ").replacing("enum ", with: "private enum ")
        #expect(source.contains(types))
        let calls = parts[1].split(separator: "\n").dropFirst().map { "        \($0)" }
        #expect(source.contains(calls.joined(separator: "\n")))
        let lines = blocks.dropFirst().flatMap { $0.split(separator: "\n") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
        for line in lines {
            #expect(source.contains(line), "\(line)")
        }
        #expect(lines.count > 5)
        #expect(readme.split(separator: "\n").allSatisfy { $0.count <= 120 || $0.hasPrefix("|") })
    }
}
