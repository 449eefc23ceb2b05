import Foundation
import Testing
import WaybillMQTT
import WaybillTesting

// The code of the README's first page, compiled and run.

private struct ChatMessage: Codable, Equatable, Sendable {
    var sender: String
    var text: String
}

private enum ChatEntry: EntryType {
    case join(room: String)
    case say(ChatMessage, room: String)

    var topic: String? {
        switch self {
        case .join(let room), .say(_, let room): "chat/\(room)"
        }
    }

    var command: EntryCommand {
        switch self {
        case .join: .subscribe(qos: .atLeastOnce)
        case .say: .send(qos: .atLeastOnce)
        }
    }

    var body: EntryBody {
        switch self {
        case .join: .none
        case .say(let message, _): .json(message)
        }
    }
}

@Suite("README", .timeLimit(.minutes(30))) struct ReadmeTests {
    private struct Account: Sendable {
        func token() async throws -> String { "token" }
    }

    private let account = Account()

    /// The README's calls, with a transport that the test chooses.
    private func use(_ transport: some Transport, heard: (ChatMessage) -> Void) async throws {
        let account = account
        let tokens = TokenInterceptor(.password(userName: "ada")) { _ in try await account.token() }

        let chat = Provider<ChatEntry>(transport: transport).intercepted(tokens, RetryPolicy())

        try await chat.request(.say(ChatMessage(sender: "ada", text: "Hello"), room: "lobby"))

        try await chat.withConnection {
            let messages: Messages<ChatMessage> = try await chat.messages(.join(room: "lobby"))
            try await chat.request(.say(ChatMessage(sender: "ada", text: "Bye"), room: "lobby"))
            for try await message in messages.skippingFailures {
                heard(message)
                break
            }
        }
    }

    @Test("The first page works over MQTT, with one token for both connections")
    func firstPage() async throws {
        var configuration = LoopbackBroker.Configuration()
        configuration.authenticate = { user, password in user == "ada" && password == "token" }
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        let transport = try MQTTTransport(url: broker.url(for: .mqtt)) {
            $0.clientIdentifier = "ada"
        }
        var heard: [ChatMessage] = []
        try await use(transport) { heard.append($0) }
        #expect(heard == [ChatMessage(sender: "ada", text: "Bye")])
        await transport.shutdown()
        await broker.stop()
    }

    @Test("The first page's test passes")
    func test() async throws {
        let message = ChatMessage(sender: "ada", text: "Hello")
        let mock = MockTransport(like: .mqtt5)
        mock.expect(.send, topic: "chat/lobby")
        try await Provider<ChatEntry>(transport: mock).request(.say(message, room: "lobby"))
        #expect(mock.requests.first?.contentType == "application/json")
    }

    @Test("Each line of code of the README is in this file")
    func lines() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let readme = try String(
            contentsOf: root.appendingPathComponent("README.md"),
            encoding: .utf8
        )
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let blocks = readme.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```").first ?? ""
        }
        let lines = blocks.flatMap { $0.split(separator: "\n") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.hasPrefix("//") }
        // These lines need a broker, or a loop without an end.
        let others = [
            #"let transport = try MQTTTransport(url: "mqtts://broker.example") { $0.clientIdentifier = "ada" }"#,
            "for try await message in messages.skippingFailures { print(message.text) }",
        ]
        for line in lines where !others.contains(line) {
            #expect(source.contains(line), "\(line)")
        }
        #expect(lines.count > 30)
        #expect(readme.split(separator: "\n").allSatisfy { $0.count <= 120 || $0.hasPrefix("|") })
    }
}
