import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WaybillWebSocket

/// The output of `print`, `dump`, interpolation and mirrors for every public type. Each value contains a secret.
@Suite("Secrets in what is printed, dumped and mirrored", .timeLimit(.minutes(30)))
struct ReflectionTests {
    private static let secret = "s3cret"

    private struct Entry: EntryType {
        var topic: String? { "t" }
        var command: EntryCommand { .subscribe }
    }

    /// Everything that is visible of a value unless a program names its secrets.
    private static func shown(_ value: Any) -> String {
        var text = "\(value)\n" + String(reflecting: value) + "\n"
        print(value, to: &text)
        debugPrint(value, to: &text)
        dump(value, to: &text)
        mirror(value, 0, &text)
        return text
    }

    private static func mirror(_ value: Any, _ depth: Int, _ text: inout String) {
        guard depth < 12 else { return }
        var next: Mirror? = Mirror(reflecting: value)
        while let mirror = next {
            for child in mirror.children {
                text += "\(child.label ?? ""): \(child.value)\n"
                self.mirror(child.value, depth + 1, &text)
            }
            next = mirror.superclassMirror
        }
    }

    private static func headers(_ place: String) -> Headers { ["token": "\(secret)-\(place)"] }

    /// A value of every public type that can hold a secret, by the type's name.
    private static func values() throws -> [(name: String, value: Any)] {
        let path = "path?token=\(secret)-query"
        let body = Payload("\(secret)-body")
        let will = Will(topic: "gone", body: body)
        let connect = EntryCommand.connect(
            .userName("\(secret)-user"),
            .password("\(secret)-password"),
            .will(will)
        )
        let credentials = Credentials(
            userName: "\(secret)-user",
            password: "\(secret)-password",
            headers: headers("credentials")
        )
        let message = Message(topic: path, body: body, headers: headers("message"))
        let request = Request(
            topic: path,
            command: connect,
            body: body,
            headers: headers("request")
        )
        var receipt = Receipt(reply: message)
        receipt.topic = path
        receipt.headers = headers("receipt")
        let refusal = HTTPRefusal(
            status: 403,
            reason: "Forbidden",
            headers: headers("refusal"),
            body: body
        )
        let error = WaybillError(.rejected, "no", topic: path, underlying: refusal)
        let stomp = STOMPServerError(message: "no", headers: headers("ERROR"), body: body)
        let proxy = ProxyOptions(
            host: "proxy",
            port: 1,
            userName: "\(secret)-user",
            password: "\(secret)-password",
            headers: headers("proxy")
        )
        let key = TLSOptions.Material.bytes(Array("\(secret)-key".utf8))
        let identity = TLSOptions.Identity.certificate(
            .file("certificate.pem"),
            key: key,
            password: "\(secret)-password"
        )
        var tls = TLSOptions()
        tls.identity = identity
        tls.authorities = [key]
        let webSocket = WebSocketOptions(headers: headers("upgrade"))
        var mqtt = MQTTConfiguration()
        (mqtt.userName, mqtt.password) = ("\(secret)-user", "\(secret)-password")
        (mqtt.will, mqtt.tls, mqtt.proxy, mqtt.webSocket) = (will, tls, proxy, webSocket)
        let scram = SCRAMAuthenticator(
            userName: "\(secret)-user",
            password: "\(secret)-password"
        )
        mqtt.authenticator = scram
        let store = InMemorySessionStore()
        let stored = StoredMessage(
            topic: path,
            body: Array(body.text?.utf8 ?? "".utf8),
            headers: [["token", "\(secret)-stored"]],
            qos: 1,
            options: [
                StoredOption("responseTopic", .text("\(secret)-replies")),
                StoredOption("correlationData", .bytes(Array("\(secret)-data".utf8))),
            ]
        )
        _ = store.insert(stored)
        mqtt.session.store = store
        var stompConfiguration = STOMPConfiguration()
        stompConfiguration.userName = "\(secret)-login"
        stompConfiguration.password = "\(secret)-passcode"
        (stompConfiguration.tls, stompConfiguration.proxy) = (tls, proxy)
        var sse = SSEConfiguration()
        (sse.userName, sse.password) = ("\(secret)-user", "\(secret)-password")
        sse.headers = headers("SSE")
        (sse.tls, sse.proxy) = (tls, proxy)
        var webSocketConfiguration = WebSocketClient.Configuration()
        webSocketConfiguration.headers = headers("WebSocket")
        webSocketConfiguration.tls = tls
        let mock = MockTransport().expect(.send, .receipt(receipt))
        var broker = LoopbackBroker.Configuration()
        broker.credentials = ["ada": "\(secret)-password"]
        let loopback = try LoopbackAuthentication.scram(["\(secret)-user": "\(secret)-password"])
        broker.authentication = loopback
        let url = "\(secret)-user:\(secret)-password@127.0.0.1:1"
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver([message])
        let token = TokenInterceptor { _ in "\(secret)-token" }
        var event = TransportEvent(.disconnected)
        event.topic = path
        event.error = error
        let transport = try MQTTTransport(url: "mqtt://\(url)", configuration: mqtt)
        var connack = MQTTConnack()
        connack.userProperties = headers("connack")
        connack.reasonString = "\(secret)-reason"
        connack.responseInformation = "\(secret)-information"
        var record = WireRecord(kind: .frame, direction: .inbound, text: "PUBLISH t")
        record.body = body
        let provider = Provider<Entry>(transport: transport)
        return [
            ("TypedEntry", TypedEntry<Entry, Message>(Entry())),
            ("EnqueuedRequest", provider.enqueue(Entry())),
            ("Payload", body), ("Headers", headers("list")), ("Will", will),
            ("Header", Headers.Header(name: "token", value: "\(secret)-value")),
            ("EntryCommand", connect),
            ("ConnectOption", ConnectOption.password("\(secret)-password")),
            ("SendOption", SendOption.responseTopic("\(secret)-topic")),
            ("SubscribeOption", SubscribeOption(.userName, "\(secret)-user")),
            ("UnsubscribeOption", UnsubscribeOption(.userName, "\(secret)-user")),
            ("AckOption", AckOption.reason("\(secret)-reason")),
            ("DisconnectOption", DisconnectOption.reason("\(secret)-reason")),
            ("EntryBody", EntryBody.text("\(secret)-text")), ("Request", request),
            (
                "AnyEntry",
                AnyEntry(
                    topic: path,
                    command: connect,
                    body: .text("\(secret)-text"),
                    headers: headers("entry")
                )
            ),
            ("EntryTopic", EntryTopic(path, qos: .exactlyOnce)),
            ("InterceptorContext", InterceptorContext(command: "send", topic: path)),
            ("Message", message), ("Receipt", receipt), ("StoredMessage", stored),
            ("StoredOption", stored.options[0]), ("Value", stored.options[1].value),
            ("InMemorySessionStore", store), ("WaybillError", error), ("HTTPRefusal", refusal),
            ("FailoverFailure", FailoverFailure(attempts: [.init(host: "h", error: error)])),
            ("Attempt", FailoverFailure.Attempt(host: "h", error: error)),
            ("MQTTReason", MQTTReason(.banned, userProperties: headers("reason"))),
            ("MQTTConnack", connack),
            (
                "MQTTAuthProperties",
                MQTTAuthProperties(
                    reasonString: "\(secret)-reason",
                    userProperties: headers("auth")
                )
            ),
            ("WireRecord", record), ("SkippingFailures", messages.skippingFailures),
            ("STOMPServerError", stomp), ("TransportEvent", event), ("Credentials", credentials),
            ("ConnectionState", ConnectionState.disconnected(cause: error)),
            ("Occasion", CredentialSource.Occasion(isReconnection: true, refused: credentials)),
            ("CredentialSource", CredentialSource { _ in credentials }),
            ("ProxyOptions", proxy), ("Material", key), ("Identity", identity),
            ("Identity", TLSOptions.Identity.pkcs12(key, password: "\(secret)-password")),
            ("TLSOptions", tls), ("WebSocketOptions", webSocket),
            ("TokenInterceptor", token), ("TokenPlacement", TokenPlacement.bearer),
            ("RetryDecision", RetryDecision.doNotRetryWithError(error)),
            ("Provider", Provider<Entry>(transport: transport).intercepted(token)),
            ("Messages", messages), ("Results", messages.results), ("MessageFeed", feed),
            ("AsyncIterator", messages.makeAsyncIterator()),
            ("SCRAMAuthenticator", scram), ("LoopbackAuthentication", loopback),
            ("MQTTConfiguration", mqtt), ("MQTTTransport", transport),
            ("STOMPConfiguration", stompConfiguration),
            (
                "STOMPTransport",
                try STOMPTransport(url: "stomp://\(url)", configuration: stompConfiguration)
            ), ("SSEConfiguration", sse),
            ("SSETransport", try SSETransport(url: "http://\(url)", configuration: sse)),
            ("EventSource", try EventSource(url: "http://\(url)", configuration: sse)),
            ("Configuration", webSocketConfiguration), ("Configuration", broker),
            ("LoopbackBroker", LoopbackBroker(configuration: broker)),
            ("Answer", LoopbackFaults.Answer(403, headers: headers("answer"), body: body)),
            ("MockTransport", mock), ("Outcome", MockTransport.Outcome.reply(body)),
            ("ScriptedByteStream", ScriptedByteStream(.expect("\(secret)-bytes"))),
        ]
    }

    @Test("No public type shows a password, a token, a key, a body or a query")
    func redacted() throws {
        let numbers = Self.secret.utf8.map { "\($0)" }.joined(separator: ", ")
        for (name, value) in try Self.values() {
            let text = Self.shown(value)
            #expect(!text.contains(Self.secret), "\(name): \(text.prefix(2_000))")
            #expect(!text.contains(numbers), "\(name): \(text.prefix(2_000))")
        }
    }

    @Test("What is no secret can be seen in a configuration")
    func useful() throws {
        var configuration = MQTTConfiguration()
        configuration.password = Self.secret
        configuration.clientIdentifier = "ada-1"
        let text = Self.shown(configuration)
        #expect(text.contains("ada-1"))
        #expect(text.contains("<redacted>"))
    }

    /// The public types that contain no data of an app or a peer, or whose content has a test of its own.
    private static let harmless: Set<String> = [
        "SubscriptionIdentifier",
        "AckMode", "AdaptiveKeepAlive", "AppLifecycleHints",
        "BufferPolicy", "BulkResults",
        "ClosureWireLogger", "Condition",
        "Code", "Completion", "Compression", "ConnectionHint",
        "ConnectionHints", "ConnectionStateSource", "ConnectionStates", "Direction",
        "DropReason", "Event", "EventStreamResponse", "Events", "FailoverOptions", "ID",
        "InMemorySessionStore",
        "Instant", "JSONBodyDecoder", "JSONBodyEncoder", "PropertyListBodyDecoder",
        "PropertyListBodyEncoder", "LearnedKeepAlive", "Kind",
        "LateDeliveryPolicy",
        "ListenerToken", "LoopbackFaults", "MQTTRedirectPolicy", "MessageRefusal", "ManualClock",
        "MessageRouter",
        "NegotiatedTLS",
        "OSLogWireLogger", "OfflinePolicy", "Order", "Overflow", "Options",
        "ProviderConfiguration", "Report",
        "QoS", "ReadyState", "Reason", "ReconnectionPolicy", "Refusal",
        "RequestAttempts", "RequestChain", "RetainHandling", "RetryBudget", "RetryDelay",
        "RetryPolicy", "STOMPReceipt", "Service",
        "SimulatedBroker", "SimulatedFaults", "SimulatedWorld", "Simulation",
        "SimulationFailure", "StandardErrorWireLogger", "Step", "StreamEvent",
        "TLSFailure",
        "TokenFailure",
        // The host of an authentication.
        "MQTTAuthenticationContext",
        // A store on disk; its mirror is empty, and an expired message has its own description.
        "CorruptFilePolicy", "SQLiteSessionStore", "SQLiteStoreError", "Stage", "Synchronization",
        // Options, and names of options and of topics. A message among updates has its own description.
        "Lookup", "MQTTPayloadFormat", "OptionKey", "OptionName", "OptionReader",
        "SubscriptionUpdate",
        // A recording, which has no body that its owner has not asked for: `RecordingSecretTests`.
        "Comparison", "Difference", "Filter", "Record", "Recorder", "Recording", "RecordingBuffer",
        "RecordingError", "RecordingReader", "Snapshot", "Status",
        "TopicStyle", "UnsupportedPolicy",
        "TransportEventSource", "TransportEvents", "Version", "WebSocketClient", "Wildcards",
        "SocketFailure", "WebSocketClosure", "WireLogBodies", "WireProtocol",
    ]

    @Test("Every public type is in the table, or known to hold no secret")
    func complete() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources")
        let names = try #require(FileManager.default.enumerator(atPath: root.path))
        let known = Self.harmless.union(try Self.values().map(\.name))
        let kinds: Set<Substring> = ["struct", "class", "enum", "actor"]
        for case let name as String in names where name.hasSuffix(".swift") {
            let url = root.appendingPathComponent(name)
            for line in try String(contentsOf: url, encoding: .utf8).split(separator: "\n") {
                let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                guard words.first == "public",
                    let kind = words.prefix(4).firstIndex(where: kinds.contains),
                    kind + 1 < words.count, words[kind + 1] != "func"
                else { continue }
                #expect(known.contains(String(words[kind + 1])), "\(name): \(line)")
            }
        }
    }

    @Test(
        "Events of an EventSource and messages of a WebSocket show their kind and length alone",
        .inSimulation
    )
    func content() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        var configuration = WebSocketClient.Configuration()
        configuration.subprotocols = ["mqtt"]
        configuration.headers = Self.headers("upgrade")
        configuration.connectTimeout = LoopbackBroker.connectTimeout
        let socket = try await WebSocketClient.connect(
            to: broker.url(for: .mqttOverWebSocket),
            configuration: configuration
        )
        #expect(!Self.shown(socket).contains(Self.secret))
        try await socket.close()
        for message in [
            WebSocketClient.Message.text(Self.secret), .binary(Array(Self.secret.utf8)),
        ] {
            #expect(!Self.shown(message).contains(Self.secret))
            #expect(!Self.shown(message).contains("115, 51"))
            #expect("\(message)".contains("6 bytes"))
        }
        let source = try EventSource(url: broker.url(for: .eventStream) + "/room")
        let (events, continuation) = AsyncStream<EventSource.Event>.makeStream()
        let (openings, opening) = AsyncStream<Void>.makeStream()
        source.onMessage { continuation.yield($0) }
        source.onOpen { opening.yield(()) }
        source.connect()
        for await _ in openings { break }
        let sender = Provider<SendEntry>(transport: try broker.transport(.mqtt))
        try await sender.request(SendEntry())
        var event: EventSource.Event?
        for await found in events {
            event = found
            break
        }
        let found = try #require(event)
        #expect(found.data == Self.secret)
        #expect(!Self.shown(found).contains(Self.secret))
        source.disconnect()
        await broker.stop()
    }

    private struct SendEntry: EntryType {
        var topic: String? { "room" }
        var command: EntryCommand { .send(qos: .atLeastOnce) }
        var body: EntryBody { .text(ReflectionTests.secret) }
    }

    // MARK: Words of a peer

    /// Characters that control a terminal, begin a new line, or reorder the text around them.
    private static let deceptive =
        "\u{202E}a\r\nb\u{2028}c\u{1B}[31m\u{9B}\u{7F}\u{200F}\u{2066}d\u{0}"

    private static func isClean(_ text: String) -> Bool {
        !text.unicodeScalars.contains { scalar in
            scalar.properties.generalCategory == .control
                || scalar.properties.generalCategory == .lineSeparator
                || [0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066].contains(
                    scalar.value
                )
        }
    }

    @Test("Words of a peer are escaped in every description")
    func escaped() {
        let text = Self.deceptive
        let error = WaybillError(.rejected, text, topic: text, peerReason: text)
        var event = TransportEvent(.disconnected)
        event.topic = text
        event.host = text
        event.error = error
        let descriptions: [Any] = [
            error, event, ConnectionState.disconnected(cause: error),
            HTTPRefusal(status: 400, reason: text, headers: [text: ""], body: Payload()),
            STOMPServerError(message: text, headers: [text: ""], body: Payload()),
            FailoverFailure(attempts: [.init(host: text, error: error)]),
            TLSFailure(.expired, detail: text), Message(topic: text, headers: [text: ""]),
            Request(topic: text, command: .send, headers: [text: ""]),
            Receipt(topic: text, reason: text), Headers(dictionaryLiteral: (text, "")),
            WireRecord(kind: .frame, direction: .inbound, text: text),
            WebSocketClient.Closure(code: .goingAway, reason: text),
            MQTTReason(.banned, text: text, userProperties: [text: ""], serverReference: text),
        ]
        for value in descriptions {
            let described = "\(value)"
            #expect(Self.isClean(described), "\(type(of: value)): \(described.debugDescription)")
        }
        #expect("\(error)".contains("\\u{202e}a\\u{d}\\u{a}b\\u{2028}c\\u{1b}[31m"))
        // Other characters are not escaped.
        #expect("\(WaybillError(.rejected, "é 漢字 שלום 👩‍🚀"))" == "rejected: é 漢字 שלום 👩‍🚀")
    }

    @Test("A server's words are escaped in errors, states, events and logs")
    func server() async throws {
        let words = "no\u{202E}evil\u{1B}[31m"
        let records = AsyncStream<String>.makeStream()
        var configuration = STOMPConfiguration()
        configuration.reconnection = .never
        configuration.wireLogger = ClosureWireLogger { records.continuation.yield("\($0)") }
        let script = ScriptedByteStream(
            .skip(1),
            .reply("ERROR\nversion:1.2\u{202E}\nmessage:\(words)\n\n\0"),
            .finish
        )
        let transport = try STOMPTransport(scripts: script, configuration: configuration)
        var states = transport.states.makeAsyncIterator()
        let events = LineLog()
        let observer = observe(transport.events) { events.append("\($0)") }
        do {
            _ = try await transport.perform(Request(topic: nil, command: .connect))
            Issue.record("no error")
        } catch {
            #expect("\(error)".contains("no\\u{202e}evil\\u{1b}[31m"))
            #expect(Self.isClean("\(error)"))
        }
        while let state = await states.next() {
            #expect(Self.isClean("\(state)"))
            if case .disconnected = state { break }
        }
        await transport.shutdown()
        observer.cancel()
        records.continuation.finish()
        await observer.value
        var lines = events.all
        for await line in records.stream { lines.append(line) }
        #expect(lines.contains { $0.contains("ERROR") })
        for line in lines { #expect(Self.isClean(line), "\(line.debugDescription)") }
    }
}
