import ChatService
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// One enum over three protocols: real MQTT frames, real STOMP frames through a WebSocket, and server-sent events
/// with POST. The broker runs inside this process, or elsewhere with `--url`.
@main
struct Quickstart {
    static func main() async {
        do {
            try await run(try Options(CommandLine.arguments.dropFirst()))
        } catch let refusal as Options.Refusal {
            print("Quickstart: \(refusal.reason)\n\n\(Options.usage)")
            exit(2)
        } catch {
            print("Quickstart: \(error)")
            exit(1)
        }
    }

    private static func run(_ options: Options) async throws {
        if let url = options.url, options.watches {
            return try await watch(url, options)
        } else if let url = options.url {
            try await chat(over: url, options)
        } else {
            let broker = LoopbackBroker()
            try broker.start()
            for (service, wire) in [
                (LoopbackBroker.Service.mqtt, Options.Wire.mqtt), (.stompOverWebSocket, .stomp),
                (.eventStream, .eventStream),
            ] {
                let url = broker.url(for: service)
                print("A broker inside this process listens on \(url)\n")
                var options = options
                options.wire = wire
                try await chat(over: url, options)
                print("")
            }
            await broker.stop()
        }
        print("The same enum runs in unit tests over a mock: Examples/ChatServiceTests.")
    }

    /// Two users in one room.
    private static func chat(over url: String, _ options: Options) async throws {
        let (ada, adaTransport) = try service("ada", url, options)
        let (bob, bobTransport) = try service("bob", url, options)

        let room = "lobby-\(UInt32.random(in: 0 ... .max))"
        try await ada.withConnection {
            let heard = try await ada.join(room)
            try await bob.withConnection {
                try await bob.say("Hello, Ada!", as: "bob", in: room)
                let answer = "Hello, Bob. This came over \(options.wire.rawValue)."
                try await ada.say(answer, as: "ada", in: room)
                try await bob.say("Bye.", as: "bob", in: room)
            }
            for try await message in heard {
                print("  \(message.sender) says: \(message.text)")
                if message.text == "Bye." { break }
            }
        }
        await adaTransport.shutdown()
        await bobTransport.shutdown()
    }

    /// Stays connected and prints the states, until the process is ended.
    private static func watch(_ url: String, _ options: Options) async throws {
        let (ada, transport) = try service("ada", url, options)
        try await ada.withConnection {
            for await state in transport.states { print("  \(state)") }
        }
    }

    /// The service of one user: the enum, the interceptors, and a transport below them.
    private static func service(
        _ name: String,
        _ url: String,
        _ options: Options
    ) throws -> (ChatService, any Transport) {
        let logger = ClosureWireLogger { record in
            print("\(name) \(record)")
        }
        let transport: any Transport
        var provider: Provider<ChatEntry>
        switch options.wire {
        case .mqtt:
            let mqtt = try MQTTTransport(url: url) {
                $0.version = options.version
                $0.userName = options.login
                $0.password = options.passcode
                $0.tls.authorities = options.authorities
                $0.wireLogger = logger
            }
            provider = Provider(transport: mqtt)
            transport = mqtt
        case .stomp:
            let stomp = try STOMPTransport(url: url) {
                $0.tls.authorities = options.authorities
                $0.wireLogger = logger
                $0.host = options.host
                $0.userName = options.login
                $0.password = options.passcode
            }
            // STOMP brokers have other topic names: `chat/lobby` becomes `/topic/chat.lobby`.
            provider = Provider(transport: stomp).topicStyle(.rabbitMQ)
            transport = stomp
        case .eventStream:
            let events = try SSETransport(url: url) {
                $0.tls.authorities = options.authorities
                $0.wireLogger = logger
                $0.userName = options.login
                $0.password = options.passcode
            }
            provider = Provider(transport: events)
            transport = events
        }
        if let tokens = options.tokens(of: name) { provider = provider.intercepted(tokens) }
        return (ChatService(provider: provider), transport)
    }
}

/// The options of the command line.
private struct Options {
    static let usage = """
        usage: Quickstart [--token TOKEN]
               Quickstart --url mqtt://HOST:PORT [--mqtt 3.1.1|5]
               Quickstart --url ws://HOST:PORT/PATH --mqtt 3.1.1|5
               Quickstart --url stomp://HOST:PORT | ws://HOST:PORT/PATH [--host VIRTUAL-HOST]
               Quickstart --url http://HOST:PORT/PATH

        Each takes --token TOKEN, or --login LOGIN --passcode PASSCODE. With --url and --watch the program stays connected
        and prints the states of the connection.
        mqtts, wss, stomps and https go over TLS; --ca FILE names the authority of the server's certificate.
        """

    /// Arguments that cannot be used.
    struct Refusal: Error {
        let reason: String
    }

    /// The protocols of the demonstration.
    enum Wire: String {
        case mqtt = "MQTT"
        case stomp = "STOMP"
        case eventStream = "server-sent events"
    }

    var url: String?
    /// Whether the program stays connected.
    var watches = false
    var wire = Wire.mqtt
    var version = MQTTConfiguration.Version.v5
    /// The token that the interceptor adds; nil for none. A real server may check it. The broker in this process
    /// accepts every token.
    var token: String?
    var host: String?
    var login: String?
    var passcode: String?
    /// The authorities that may sign the server's certificate; empty for the system's authorities.
    var authorities: [TLSOptions.Material] = []

    private static let names: Set = [
        "--url", "--mqtt", "--token", "--host", "--login", "--passcode", "--ca",
    ]

    init(_ arguments: ArraySlice<String>) throws {
        var rest = arguments
        var statesMQTT = false
        while let argument = rest.popFirst() {
            if argument == "--watch" {
                watches = true
                continue
            }
            guard Self.names.contains(argument) else {
                throw Refusal(reason: "unknown argument \(argument)")
            }
            guard let value = rest.popFirst() else {
                throw Refusal(reason: "\(argument) needs a value")
            }
            switch argument {
            case "--url": url = value
            case "--mqtt":
                guard let version = ["5": MQTTConfiguration.Version.v5, "3.1.1": .v3_1_1][value]
                else { throw Refusal(reason: "there is no MQTT \(value)") }
                self.version = version
                statesMQTT = true
            case "--token": token = value
            case "--host": host = value
            case "--login": login = value
            case "--passcode": passcode = value
            default: authorities = [.file(value)]
            }
        }
        if token != nil, login != nil { throw Refusal(reason: "give --token or --login, not both") }
        if watches, url == nil { throw Refusal(reason: "--watch needs --url") }
        if url == nil, token == nil, login == nil { token = "a-token-that-is-never-printed" }
        guard let url, !statesMQTT, !url.hasPrefix("mqtt") else { return }
        wire = url.hasPrefix("http") ? .eventStream : .stomp
    }

    /// The interceptor that adds the token to each connection, or to each request of event streams; nil without a
    /// token.
    func tokens(of name: String) -> TokenInterceptor? {
        guard let token else { return nil }
        return TokenInterceptor(wire == .eventStream ? .bearer : .password(userName: name)) { _ in
            token
        }
    }
}
