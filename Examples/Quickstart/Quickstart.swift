import ChatService
import Waybill
import WaybillMQTT
import WaybillTesting

/// A chat over real MQTT frames: against a broker inside this process, or `--url mqtt://HOST:PORT`.
@main
struct Quickstart {
    static func main() async throws {
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            print(Options.usage)
            return
        }
        guard let url = options.url else {
            let broker = LoopbackBroker()
            try broker.start()
            print("A broker inside this process listens on \(broker.url)\n")
            try await chat(over: broker.url, options)
            await broker.stop()
            return
        }
        try await chat(over: url, options)
    }

    /// Two people in one room.
    private static func chat(over url: String, _ options: Options) async throws {
        let (ada, adaTransport) = try service("ada", url, options)
        let (bob, bobTransport) = try service("bob", url, options)

        try await ada.connect()
        try await bob.connect()

        let room = "lobby-\(UInt32.random(in: 0 ... .max))"
        let heard = try await ada.join(room)
        try await bob.say("Hello, Ada!", as: "bob", in: room)
        try await ada.say("Hello, Bob. This came over MQTT.", as: "ada", in: room)
        try await bob.say("Bye.", as: "bob", in: room)

        for try await message in heard {
            print("  \(message.sender) says: \(message.text)")
            if message.text == "Bye." { break }
        }

        try await ada.leave(room)
        try await ada.disconnect()
        try await bob.disconnect()
        await adaTransport.shutdown()
        await bobTransport.shutdown()
        print("\nThe same enum runs in unit tests over a mock: Examples/ChatServiceTests.")
    }

    /// One person's service: the enum, a token interceptor, and MQTT underneath.
    private static func service(
        _ name: String,
        _ url: String,
        _ options: Options
    ) throws -> (ChatService, MQTTTransport) {
        let logger = ClosureWireLogger { record in
            print("\(name) \(record)")
        }
        var configuration = MQTTConfiguration(version: options.version)
        configuration.wireLogger = logger
        let transport = try MQTTTransport(url: url, configuration: configuration)
        var provider = Provider<ChatEntry>(transport: transport)
        if let token = options.token {
            provider = provider.intercepted(TokenInterceptor(userName: name) { token })
        }
        return (ChatService(provider: provider), transport)
    }
}

/// What the command line says.
private struct Options {
    static let usage = """
        usage: Quickstart [--url mqtt://HOST:PORT] [--mqtt 3.1.1|5] [--token TOKEN]
        """

    var url: String?
    var version = MQTTConfiguration.Version.v5
    /// What the token interceptor puts into the password; nil goes without. A broker of one's own may check
    /// it; the one in this process takes any.
    var token: String?

    init?(_ arguments: ArraySlice<String>) {
        var rest = arguments
        while let argument = rest.popFirst() {
            switch argument {
            case "--url":
                guard let value = rest.popFirst() else { return nil }
                url = value
            case "--mqtt":
                switch rest.popFirst() {
                case "5": version = .v5
                case "3.1.1": version = .v3_1_1
                default: return nil
                }
            case "--token":
                guard let value = rest.popFirst() else { return nil }
                token = value
            default: return nil
            }
        }
        if url == nil, token == nil { token = "a-token-that-is-never-printed" }
    }
}
