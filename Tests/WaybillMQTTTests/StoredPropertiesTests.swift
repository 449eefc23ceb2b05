import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a PUBLISH of MQTT 5 says beside its topic and body, over the end of the process.
@Suite(
    "MQTT transport: the properties of a stored message",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct StoredPropertiesTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let command: EntryCommand
        var headers: Headers = [:]
        /// The PUBLISH, without the bit of DUP.
        let publish: [UInt8]
    }

    static func topic(_ name: String) -> StoredOption {
        StoredOption("responseTopic", .text(name))
    }

    static func data(_ bytes: [UInt8]) -> StoredOption {
        StoredOption("correlationData", .bytes(bytes))
    }

    /// A body that is declared as text.
    static let text = StoredOption("payloadFormat", .integer(1))

    /// The message `x` to `t`, the first in its store.
    static let rows: [Row] = [
        Row(
            testDescription: "none",
            command: .send(qos: .atLeastOnce),
            publish: ("32 07 0001 74 8001 00 78" as Hex).bytes
        ),
        Row(
            testDescription: "response topic, correlation data and text",
            command: .send(
                qos: .atLeastOnce,
                .responseTopic("r"),
                .correlationData([0, 255]),
                .payloadFormat(.text)
            ),
            publish: ("32 12 0001 74 8001 0B 08 0001 72 09 0002 00FF 01 01 78" as Hex).bytes
        ),
        Row(
            testDescription: "a response topic",
            command: .send(qos: .atLeastOnce, .responseTopic("r")),
            publish: ("32 0B 0001 74 8001 04 08 0001 72 78" as Hex).bytes
        ),
        Row(
            testDescription: "correlation data of no bytes",
            command: .send(qos: .atLeastOnce, .correlationData([])),
            publish: ("32 0A 0001 74 8001 03 09 0000 78" as Hex).bytes
        ),
        Row(
            testDescription: "declared as bytes",
            command: .send(qos: .exactlyOnce, .payloadFormat(.bytes)),
            publish: ("34 09 0001 74 8001 02 01 00 78" as Hex).bytes
        ),
        Row(
            testDescription: "all that a send can have",
            command: .send(
                qos: .exactlyOnce,
                .retained,
                // The longest interval: 136 years.
                .expiry(.seconds(4_294_967_295)),
                .responseTopic("r"),
                .correlationData([7]),
                .payloadFormat(.text)
            ),
            headers: ["Content-Type": "a/b", "k": "v", "k": "w"],
            publish: ("""
            35 2A 0001 74 8001 23 03 0003 612F62 02 FFFFFFFF 08 0001 72 09 0001 07 01 01
            26 0001 6B 0001 76 26 0001 6B 0001 77 78
            """ as Hex).bytes
        ),
    ]

    private func client(
        _ script: ScriptedByteStream,
        _ store: InMemorySessionStore,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted([script], version: .v5) {
            bare(&$0)
            $0.session.cleanStart = false
            $0.session.expiry = .seconds(60)
            $0.session.store = store
            change(&$0)
        }
    }

    /// CONNECT with a session expiry, and a CONNACK.
    private func script(isPresent: Bool, _ steps: ScriptedByteStream.Step...) -> ScriptedByteStream
    {
        let connack = isPresent ? [0x20, 3, 1, 0, 0] : [0x20, 3, 0, 0, 0] as [UInt8]
        return ScriptedByteStream(steps: [.skip(21), .reply(connack)] + steps)
    }

    @Test(
        "The next process sends the same PUBLISH, with DUP where the session goes on",
        arguments: rows,
        [true, false]
    )
    func restart(_ row: Row, isPresent: Bool) async throws {
        let store = InMemorySessionStore()
        let first = script(isPresent: false, .expect(row.publish))
        let (transport, provider) = try client(first, store)
        let sending = Task {
            try await provider.request(
                .command(row.command, topic: "t", body: .bytes([0x78]), headers: row.headers)
            )
        }
        try await waitUntil { first.isComplete || !first.failures.isEmpty }
        await transport.shutdown()
        await expectError(.shutDown) { try await sending.value }
        #expect(first.failures == [])

        // Through the coding that a store of the app's own may use.
        let coded = try JSONEncoder().encode(store.messages())
        let messages = try JSONDecoder().decode([StoredMessage].self, from: coded)
        #expect(messages == store.messages() && messages.count == 1)
        let restored = InMemorySessionStore()
        _ = restored.beginSession("c")
        for var message in messages {
            // The longest interval again, whatever time has passed.
            message.expiry? += 1_000
            _ = restored.insert(message)
        }

        var expected = row.publish
        if isPresent { expected[0] |= 0x08 }
        let next = script(isPresent: isPresent, .expect(expected))
        let (later, again) = try client(next, restored)
        try await again.connect()
        try await waitUntil { next.isComplete || !next.failures.isEmpty }
        #expect(next.failures == [])
        await later.shutdown()
    }

    @Test("A message that was encoded without these properties has none")
    func olderCoding() throws {
        let coded = """
            {"id": 1, "topic": "t", "body": [120], "headers": [], "qos": 1, "isRetained": false}
            """
        let message = try JSONDecoder().decode(StoredMessage.self, from: Data(coded.utf8))
        #expect(message.options == [] && message.body == [0x78])
    }

    @Test("A message that was encoded before it had a list of options has those that it states")
    func codingWithoutOptions() throws {
        let coded = """
            {"id": 1, "topic": "t", "body": [120], "headers": [], "qos": 1, "isRetained": true, "responseTopic": "r",
            "correlationData": [1], "isText": true, "isAdapted": false, "needsToken": true}
            """
        let message = try JSONDecoder().decode(StoredMessage.self, from: Data(coded.utf8))
        let retained = StoredOption("retained", .flag(true))
        #expect(message.options == [Self.data([1]), Self.text, Self.topic("r"), retained])
    }

    @Test(
        "A stored value that no PUBLISH can have: the message is dropped, and the next one is sent",
        arguments: [
            StoredMessage(topic: "t", body: [], qos: 1, options: [topic("a/#")]),
            StoredMessage(topic: "t", body: [], qos: 1, options: [topic("")]),
            StoredMessage(topic: "t", body: [], qos: 1, options: [topic("a\u{0}")]),
            StoredMessage(
                topic: "t",
                body: [],
                qos: 1,
                options: [topic(String(repeating: "a", count: 65_536))]
            ),
            StoredMessage(
                topic: "t",
                body: [],
                qos: 2,
                options: [data([UInt8](repeating: 0, count: 65_536))]
            ),
            StoredMessage(topic: "t", body: [0xFF], qos: 1, options: [text]),
        ],
        [true, false]
    )
    func impossible(_ message: StoredMessage, keepsExchanges: Bool) async throws {
        let store = InMemorySessionStore()
        if keepsExchanges { _ = store.beginSession("c") }
        _ = store.insert(message)
        _ = store.insert(StoredMessage(topic: "t", body: [0x79], qos: 1))
        let identifier: [UInt8] = keepsExchanges ? [0x80, 2] : [0, 1]
        let publish = [0x32, 7, 0, 1, 0x74] + identifier + [0, 0x79]
        let stream = script(isPresent: false, .expect(publish))
        let (transport, provider) = try client(stream, store) {
            $0.session.cleanStart = !keepsExchanges
        }
        try await provider.connect()
        try await waitUntil { stream.isComplete || !stream.failures.isEmpty }
        #expect(stream.failures == [])
        #expect(store.messages().map(\.body) == [[0x79]])
        await transport.shutdown()
    }

    @Test("A message of QoS 2 that this process cannot send ends its exchange at the server")
    func unsendable() async throws {
        let store = InMemorySessionStore()
        _ = store.beginSession("c")
        _ = store.insert(
            StoredMessage(topic: "t", body: [0x78], qos: 2, options: [Self.data([1])])
        )
        let next = ScriptedByteStream.accepted(
            .present,
            .expect(("62 02 8001" as Hex).bytes),
            .reply(("70 02 8001" as Hex).bytes)
        )
        let (transport, provider) = try scripted([next]) {
            $0.session.cleanStart = false
            $0.session.store = store
        }
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { store.messages().isEmpty || next.failures != [] }
        #expect(next.failures == [] && next.isComplete)
        await transport.shutdown()
        var options: [OptionName?] = []
        while let event = await events.next(), event.kind != .disconnected {
            if event.kind == .sendFailed { options.append(event.error?.option) }
        }
        #expect(options == [.correlationData])
    }

    @Test("A process with MQTT 3.1.1 does not send such a message without what it says")
    func olderProtocol() async throws {
        let store = InMemorySessionStore()
        _ = store.insert(
            StoredMessage(topic: "t", body: [0x78], qos: 1, options: [Self.data([1])])
        )
        _ = store.insert(StoredMessage(topic: "t", body: [0x79], qos: 1, options: [Self.text]))
        _ = store.insert(StoredMessage(topic: "t", body: [0x7A], qos: 1))
        let next = ScriptedByteStream.accepted(
            .expect(("32 06 0001 74 0001 7A" as Hex).bytes)
        )
        let (transport, provider) = try scripted([next]) { $0.session.store = store }
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { next.isComplete }
        for option in [.correlationData, .payloadFormat] as [OptionName] {
            let failed = await take(to: .sendFailed, &events).last
            #expect(failed?.error?.option == option)
        }
        #expect(next.failures == [])
        #expect(store.messages().map(\.body) == [[0x7A]])
        await transport.shutdown()
    }

    @Test(
        "A message that the server has goes on with PUBREL, whatever its PUBLISH said",
        arguments: [
            StoredMessage(
                topic: "t",
                body: [0x78],
                contentType: "a/b",
                qos: 2,
                options: [topic("r")]
            ),
            StoredMessage(topic: "t", body: [0x78], qos: 2, options: [data([1])]),
            StoredMessage(topic: "t", body: [0xFF], qos: 2, options: [text]),
            StoredMessage(topic: "t", body: [], headers: [["k", "v"]], qos: 2),
            StoredMessage(topic: "t", body: [], qos: 2, options: [topic("a/#")]),
            StoredMessage(topic: "a/#", body: [], qos: 2),
        ],
        [MQTTConfiguration.Version.v3_1_1, .v5]
    )
    func released(_ message: StoredMessage, version: MQTTConfiguration.Version) async throws {
        let store = InMemorySessionStore()
        _ = store.beginSession("c")
        var message = message
        message.stage = .released
        _ = store.insert(message)
        let steps: [ScriptedByteStream.Step] = [
            .expect(("62 02 8001" as Hex).bytes), .reply(("70 02 8001" as Hex).bytes),
        ]
        let connack = version == .v5 ? [0x20, 3, 1, 0, 0] : [0x20, 2, 1, 0] as [UInt8]
        let length = version == .v5 ? 21 : 15
        let next = ScriptedByteStream(steps: [.skip(length), .reply(connack)] + steps)
        let (transport, provider) = try client(next, store) { configuration in
            guard version == .v3_1_1 else { return }
            configuration.version = version
            configuration.session.expiry = nil
        }
        var events = transport.events.makeAsyncIterator()
        try await provider.connect()
        try await waitUntil { next.isComplete || !next.failures.isEmpty }
        #expect(next.failures == [])
        try await waitUntil { store.messages().isEmpty }
        await transport.shutdown()
        while let event = await events.next(), event.kind != .disconnected {
            #expect(event.kind != .sendFailed)
        }
    }
}
