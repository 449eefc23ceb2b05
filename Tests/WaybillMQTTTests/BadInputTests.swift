import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Invalid input throws a typed error before any byte is written, and disturbs no other call.
@Suite("MQTT transport: bad input", .inSimulation, .timeLimit(.minutes(30))) struct BadInputTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let entry: MQTTEntry
        let code: WaybillError.Code
        var version = MQTTConfiguration.Version.v5

        var testDescription: String { name }
    }

    private static let long = String(repeating: "x", count: 65_536)

    static let rows: [Row] = [
        Row(name: "wildcard in a send", entry: .send("x", to: "a/+"), code: .invalidEntry),
        Row(
            name: "wildcard at QoS 2",
            entry: .send("x", to: "#", qos: .exactlyOnce),
            code: .invalidEntry
        ),
        Row(name: "NUL in a topic", entry: .send("x", to: "a\0"), code: .invalidEntry),
        Row(name: "empty topic", entry: .send("x", to: ""), code: .invalidEntry),
        Row(name: "over-long topic", entry: .send("x", to: long), code: .invalidEntry),
        Row(name: "no topic", entry: .command(.send), code: .invalidEntry),
        Row(
            name: "over-long header",
            entry: .command(.send, topic: "t", headers: [long: "v"]),
            code: .invalidEntry
        ),
        Row(
            name: "NUL in a header",
            entry: .command(.send, topic: "t", headers: ["n": "\0"]),
            code: .invalidEntry
        ),
        Row(
            name: "headers in 3.1.1",
            entry: .command(.send, topic: "t", headers: ["n": "v"]),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(name: "begin", entry: .command(.begin(transaction: "x")), code: .unsupported),
        Row(name: "commit", entry: .command(.commit(transaction: "x")), code: .unsupported),
        Row(name: "abort", entry: .command(.abort(transaction: "x")), code: .unsupported),
        Row(
            name: "nack in 3.1.1",
            entry: .command(.nack(.init(.number(1)))),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "transaction of an ack",
            entry: .command(.ack(.init(.number(1)), .transaction("x"))),
            code: .unsupported
        ),
        Row(
            name: "body of a connect",
            entry: .command(.connect, body: .text("x")),
            code: .unsupported
        ),
        Row(
            name: "NUL in a user name",
            entry: .command(.connect(.userName("\0"))),
            code: .invalidEntry
        ),
        Row(
            name: "password alone in 3.1.1",
            entry: .command(.connect(.password("x"))),
            code: .invalidEntry,
            version: .v3_1_1
        ),
        Row(
            name: "wildcard in a will",
            entry: .command(.connect(.will(Will(topic: "#", body: "x")))),
            code: .invalidEntry
        ),
        Row(
            name: "topic of an ack",
            entry: .command(.ack(.init(.number(1))), topic: "t"),
            code: .unsupported
        ),
        Row(
            name: "headers of an ack",
            entry: .command(.ack(.init(.number(1))), headers: ["n": "v"]),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "body of a nack",
            entry: .command(.nack(.init(.number(1))), body: .text("x")),
            code: .unsupported
        ),
        Row(
            name: "body of an unsubscribe",
            entry: .command(.unsubscribe, topic: "t", body: .text("x")),
            code: .unsupported
        ),
        Row(
            name: "headers of an unsubscribe in 3.1.1",
            entry: .command(.unsubscribe, topic: "t", headers: ["n": "v"]),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "over-long header of an unsubscribe",
            entry: .command(.unsubscribe, topic: "t", headers: ["n": long]),
            code: .invalidEntry
        ),
        Row(
            name: "bytes declared as text",
            entry: .command(.send(.payloadFormat(.text)), topic: "t", body: .bytes([0xC3, 0x28])),
            code: .invalidEntry
        ),
        Row(
            name: "declared as text in 3.1.1",
            entry: .command(.send(.payloadFormat(.text)), topic: "t", body: .text("x")),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "will with bytes declared as text",
            entry: .command(
                .connect(.will(Will(topic: "w", body: Payload([0xFF]), .payloadFormat(.text))))
            ),
            code: .invalidEntry
        ),
        Row(
            name: "will with an expiry in 3.1.1",
            entry: .command(.connect(.will(Will(topic: "w", body: "x", .expiry(.seconds(1)))))),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "over-long header of a will",
            entry: .command(.connect(.will(Will(topic: "w", body: "x", headers: ["n": long])))),
            code: .invalidEntry
        ),
        Row(
            name: "session expiry of a connect in 3.1.1",
            entry: .command(.connect(.sessionExpiry(.seconds(1)))),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "success as the reason of a nack",
            entry: .command(.nack(.init(.number(1)), .reasonCode(.success))),
            code: .invalidEntry
        ),
        Row(
            name: "no matching subscribers as the reason of a nack",
            entry: .command(.nack(.init(.number(1)), .reasonCode(.noMatchingSubscribers))),
            code: .invalidEntry
        ),
        Row(
            name: "a reason of other packets in a nack",
            entry: .command(.nack(.init(.number(1)), .reasonCode(.packetIdentifierNotFound))),
            code: .invalidEntry
        ),
        Row(
            name: "a reason code of an ack",
            entry: .command(.ack(.init(.number(1)), .reasonCode(.quotaExceeded))),
            code: .invalidEntry
        ),
        Row(
            name: "over-long reason of a nack",
            entry: .command(.nack(.init(.number(1)), .reason(long))),
            code: .invalidEntry
        ),
        Row(
            name: "reason of an ack in 3.1.1",
            entry: .command(.ack(.init(.number(1)), .reason("r"))),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "share name of an unsubscribe in 3.1.1",
            entry: .command(.unsubscribe(.shareName("g")), topic: "t"),
            code: .unsupported,
            version: .v3_1_1
        ),
        Row(
            name: "slash in the share name of an unsubscribe",
            entry: .command(.unsubscribe(.shareName("g/h")), topic: "t"),
            code: .invalidEntry
        ),
        Row(
            name: "faulty filter to leave",
            entry: .command(.unsubscribe, topic: "a#"),
            code: .invalidEntry
        ),
    ]

    /// The subscriptions that are refused, and how.
    private static func subscriptions(
        _ version: MQTTConfiguration.Version
    ) -> [(EntryCommand, WaybillError.Code)] {
        guard version == .v5 else {
            return [
                (.subscribe(.shareName("g")), .unsupported),
                (.subscribe(.subscriptionIdentifier(7)), .unsupported),
            ]
        }
        let names = ["", "g/h", "g+", "#", "\0"].map {
            (EntryCommand.subscribe(.shareName($0)), WaybillError.Code.invalidEntry)
        }
        return names + [
            (EntryCommand.subscribe(.noLocal, .shareName("g")), .invalidEntry),
            (EntryCommand.subscribe(.subscriptionIdentifier(0)), .invalidEntry),
            (EntryCommand.subscribe(.subscriptionIdentifier(268_435_456)), .invalidEntry),
        ]
    }

    @Test("Each is refused before a connection is made", arguments: rows)
    func unconnected(row: Row) async throws {
        let transport = try MQTTTransport(
            clock: ManualClock(),
            configuration: MQTTConfiguration(version: row.version)
        )
        let provider = Provider<MQTTEntry>(transport: transport)
        // Without a script, a connection attempt would fail with another code.
        await expectError(row.code) { try await provider.request(row.entry) }
        guard case .idle = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
    }

    @Test("Each is refused while connected, and nothing is written", arguments: versions)
    func connected(version: MQTTConfiguration.Version) async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider(version)
        try await provider.request(.connect)
        for row in Self.rows where row.version == version {
            if row.entry.command.kind == .connect { continue }
            await expectError(row.code) { try await provider.request(row.entry) }
        }
        for filter in ["", "a#", "a/#/b", "\0", Self.long, "$share/g"] {
            await expectError(.invalidEntry) { try await provider.messages(.subscribe(filter)) }
        }
        await expectError(.unsupported) {
            try await provider.messages(
                .command(.subscribe(qos: .atMostOnce), topic: "t", body: .text("x"))
            )
        }
        await expectError(version == .v5 ? .invalidEntry : .unsupported) {
            try await provider.messages(
                .command(.subscribe, topic: "t", headers: ["n": Self.long])
            )
        }
        if version == .v5 {
            await expectError(.invalidEntry) {
                try await provider.messages(
                    .command(.subscribe(.shareName("g")), topic: "$share/h/t")
                )
            }
        }
        for (command, code) in Self.subscriptions(version) {
            await expectError(code) {
                try await provider.messages(.command(command, topic: "t"))
            }
        }
        if version == .v3_1_1 {
            await expectError(.unsupported) {
                try await provider.request(.send("x"), as: String.self)
            }
        }
        let messages = try await provider.messages(.subscribe())
        try await provider.request(.send("fine", qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "fine")
        #expect(fixture.lines.count("← PUBLISH") == 1)
        #expect(fixture.lines.count("← SUBSCRIBE") == 1)
        await fixture.end(transport)
    }

    @Test("A payload over the server's maximum packet size is refused; the next one goes")
    func tooLarge() async throws {
        let fixture = try Fixture { $0.maximumPacketSize = 1_000 }
        let (transport, provider) = try fixture.provider()
        try await provider.request(.connect)
        for qos in QoS.allCases {
            let large = String(repeating: "x", count: 1_000)
            await expectError(.limitExceeded) { try await provider.request(.send(large, qos: qos)) }
            try await provider.request(.send("small", qos: qos))
        }
        await fixture.end(transport)
    }

    @Test("URLs that cannot be spoken or read are refused when the transport is made")
    func urls() throws {
        for (url, code) in [
            ("http://h", WaybillError.Code.unsupported), ("stomps://h", .unsupported),
            ("h", .invalidEntry),
            ("mqtt://", .invalidEntry), ("mqtt://h:0", .invalidEntry),
            ("mqtt://h:70000", .invalidEntry),
            ("mqtt://h/path", .invalidEntry), ("", .invalidEntry),
            ("https://h", .unsupported), ("stomp+wss://h", .unsupported),
            ("mqtts://", .invalidEntry), ("mqtts://h:0", .invalidEntry),
            ("mqtts://h:70000", .invalidEntry), ("mqtts://h/path", .invalidEntry),
            ("wss://", .invalidEntry), ("wss://h:0/p", .invalidEntry),
            ("wss://h:65536/p", .invalidEntry),
        ] {
            #expect { try MQTTTransport(url: url) } throws: { ($0 as? WaybillError)?.code == code }
        }
        for url in [
            "mqtt://h", "mqtt://[::1]:1883/", "MQTT://127.0.0.1", "mqtt://u:p@h:1", "ws://h/p",
        ] {
            _ = try MQTTTransport(url: url)
        }
    }

    @Test(
        "URLs say where to connect to, and whether securely",
        arguments: [
            ("mqtt://h", "h", 1_883, false), ("mqtts://h", "h", 8_883, true),
            ("MQTTS://u:p@[::1]", "::1", 8_883, true), ("mqtts://h:1/", "h", 1, true),
            ("ws://h/p", "h", 80, false), ("wss://h/p?q", "h", 443, true),
            ("WSS://h:8443", "h", 8_443, true),
        ]
    )
    func targets(_ url: String, _ host: String, _ port: UInt16, _ isSecure: Bool) async throws {
        let dialer = TargetDialer()
        let clock = ManualClock()
        let timers = clock.linkTimers
        let transport = try MQTTTransport(
            url: try #require(URL(string: url)),
            configuration: MQTTConfiguration(),
            environment: LinkEnvironment(
                dialer: dialer,
                clock: timers,
                random: { 0 }
            )
        )
        await expectError(.connectionRefused) {
            try await Provider<MQTTEntry>(transport: transport).request(.connect)
        }
        #expect(
            dialer.dialed == [.init(endpoint: Endpoint(host: host, port: port), isSecure: isSecure)]
        )
        await transport.shutdown()
    }
}

/// A dialer that makes no connection and records the endpoints.
private final class TargetDialer: Dialer {
    struct Target: Equatable {
        let endpoint: Endpoint
        let isSecure: Bool
    }

    /// The same dialer with TLS.
    private struct Secured: Dialer {
        let base: TargetDialer

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            throw base.note(endpoint, isSecure: true)
        }
    }

    private let targets = Locked<[Target]>([])

    var dialed: [Target] { targets.withLock { $0 } }

    private func note(_ endpoint: Endpoint, isSecure: Bool) -> LinkError {
        targets.withLock { $0.append(Target(endpoint: endpoint, isSecure: isSecure)) }
        return .refused
    }

    func secured(by settings: TLSSettings) -> any Dialer { Secured(base: self) }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        throw note(endpoint, isSecure: false)
    }
}
