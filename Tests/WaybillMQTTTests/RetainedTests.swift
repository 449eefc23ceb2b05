import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// The retained messages of a filter that several streams share.
@Suite(
    "MQTT transport: retained messages for each listener",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct RetainedTests {
    /// The texts up to the first live message. Retained ones are marked.
    private func texts(
        _ iterator: inout Messages<Message>.AsyncIterator,
        until last: String
    ) async throws -> [String] {
        var texts: [String] = []
        while let message = try await iterator.next() {
            texts.append((message.isRetained ? "kept " : "") + (message.text ?? ""))
            if message.text == last { break }
        }
        return texts
    }

    @Test(
        "Each listener gets them once, as if it were alone",
        arguments: ways,
        QoS.allCases
    )
    func each(way: Way, qos: QoS) async throws {
        let fixture = try Fixture(way.service)
        let (transport, provider) = try fixture.provider(way.version)
        for name in ["a", "b"] {
            try await provider.request(
                .send(name, to: "r/\(name)", qos: .atLeastOnce, .retained)
            )
        }
        let first = try await provider.messages(.subscribe("r/+", qos: qos))
        let second = try await provider.messages(.subscribe("r/+", qos: qos))
        try await provider.request(.send("c", to: "r/c", qos: .atLeastOnce, .retained))
        let third = try await provider.messages(.subscribe("r/+", qos: qos))
        try await provider.request(.send("live", to: "r/a", qos: .atLeastOnce))
        var one = first.makeAsyncIterator()
        var two = second.makeAsyncIterator()
        var three = third.makeAsyncIterator()
        #expect(try await texts(&one, until: "live") == ["kept a", "kept b", "c", "live"])
        #expect(try await texts(&two, until: "live") == ["kept a", "kept b", "c", "live"])
        #expect(try await texts(&three, until: "live") == ["kept a", "kept b", "kept c", "live"])
        #expect(fixture.lines.count("← SUBSCRIBE") == 3)
        await fixture.end(transport)
    }

    @Test("A listener that leaves takes nothing from the others, nor one that wants none")
    func leaving() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        try await provider.request(.send("a", to: "r", qos: .atLeastOnce, .retained))
        let first = try await provider.messages(.subscribe("r", qos: .atLeastOnce))
        let quiet = try await provider.messages(
            .subscribe("r", qos: .atLeastOnce, .retainHandling(.doNotSend))
        )
        #expect(fixture.lines.count("← SUBSCRIBE") == 1)
        let second = try await provider.messages(.subscribe("r", qos: .atLeastOnce))
        second.cancel()
        let third = try await provider.messages(.subscribe("r", qos: .atLeastOnce))
        try await provider.request(.send("live", to: "r", qos: .atLeastOnce))
        for (stream, expected) in [
            (first, ["kept a", "live"]), (quiet, ["live"]), (third, ["kept a", "live"]),
        ] {
            var iterator = stream.makeAsyncIterator()
            #expect(try await texts(&iterator, until: "live") == expected)
        }
        await fixture.end(transport)
    }

    @Test(
        "One that joins while a SUBSCRIBE without retained messages is under way gets them by its own",
        arguments: [RetainHandling.doNotSend, .sendIfNew]
    )
    func joining(handling: RetainHandling) async throws {
        let options: UInt8 = handling == .doNotSend ? 0x21 : 0x11
        let script = ScriptedByteStream(
            .skip(27),
            .reply(("20 03 00 00 00" as Hex).bytes),
            // With subscription identifier 1.
            .expect(("82 09 0001 02 0B01 0001 72" as Hex).bytes + [options]),
            // Sent before the first SUBSCRIBE is answered, with Retain Handling 0.
            .expect(("82 09 0002 02 0B01 0001 72 01" as Hex).bytes),
            .reply(("90 04 0001 00 01 90 04 0002 00 01" as Hex).bytes),
            // A retained message, then a live one.
            .reply(("31 05 0001 72 00 61 30 05 0001 72 00 62" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5)
        try await provider.request(.connect)
        let first = Task {
            try await provider.messages(
                .subscribe("r", qos: .atLeastOnce, .retainHandling(handling))
            )
        }
        try await waitUntil { script.hasReached(4) || !script.failures.isEmpty }
        #expect(script.failures == [])
        let second = Task { try await provider.messages(.subscribe("r", qos: .atLeastOnce)) }
        var one = try await first.value.makeAsyncIterator()
        var two = try await second.value.makeAsyncIterator()
        #expect(try await texts(&one, until: "b") == ["b"])
        #expect(try await texts(&two, until: "b") == ["kept a", "b"])
        #expect(script.failures == [])
        await transport.shutdown()
    }

    @Test("A better quality of service brings them to the new listener alone", arguments: ways)
    func better(way: Way) async throws {
        let fixture = try Fixture(way.service)
        let (transport, provider) = try fixture.provider(way.version)
        try await provider.request(.send("a", to: "r", qos: .atLeastOnce, .retained))
        let low = try await provider.messages(.subscribe("r", qos: .atMostOnce))
        let high = try await provider.messages(.subscribe("r", qos: .atLeastOnce))
        try await provider.request(.send("live", to: "r", qos: .atLeastOnce))
        for stream in [low, high] {
            var iterator = stream.makeAsyncIterator()
            #expect(try await texts(&iterator, until: "live") == ["kept a", "live"])
        }
        await fixture.end(transport)
    }
}
