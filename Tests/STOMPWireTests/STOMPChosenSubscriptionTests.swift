import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// The ids of subscriptions that callers choose, and may choose again.
@Suite("STOMP: chosen ids of subscriptions") struct STOMPChosenSubscriptionTests {
    private static let message =
        "MESSAGE\nsubscription:s\nmessage-id:m\nack:m\ndestination:/q\n\nx\0"

    private func subscribe(_ id: String, over harness: inout ClientHarness) throws {
        try harness.client.send(
            .subscribe(id: id, destination: "/q", ackMode: .clientIndividual, isChosen: true),
            at: harness.now
        )
    }

    private func expectTaken(_ id: String, _ harness: inout ClientHarness) {
        _ = harness.sent
        #expect(throws: STOMPSendError.subscriptionIDTaken) {
            try subscribe(id, over: &harness)
        }
        #expect(harness.sent == "")
    }

    @Test("The id is taken until the RECEIPT of UNSUBSCRIBE, also if nothing waits for that")
    func untilReceipt() throws {
        for timeout in [Duration.seconds(1), .seconds(1_000)] {
            var harness = try ClientHarness(.v1_2)
            try subscribe("s", over: &harness)
            let end = STOMPRequest.unsubscribe(id: "s")
            try harness.client.send(end, call: Call(1), timeout: timeout, at: harness.now)
            harness.advance(.seconds(2))
            _ = harness.told()
            expectTaken("s", &harness)
            // On its way before the server handled UNSUBSCRIBE.
            harness.receive(Self.message)
            #expect(harness.told() == ["unheard, 1"])
            expectTaken("s", &harness)
            harness.receive("RECEIPT\nreceipt-id:1\n\n\0")
            _ = harness.told()
            try subscribe("s", over: &harness)
            harness.receive(Self.message)
            #expect(harness.told() == ["message s x"])
        }
    }

    @Test("Without a receipt the id is taken; the oldest of many is free again")
    func withoutReceipt() throws {
        var harness = try ClientHarness(.v1_2)
        try subscribe("s", over: &harness)
        try harness.client.send(.unsubscribe(id: "s"), at: .zero)
        for number in 1..<STOMPClientScopes.endingLimit {
            try subscribe("a\(number)", over: &harness)
            try harness.client.send(.unsubscribe(id: "a\(number)"), at: .zero)
        }
        expectTaken("s", &harness)
        try subscribe("b", over: &harness)
        try harness.client.send(.unsubscribe(id: "b"), at: .zero)
        try subscribe("s", over: &harness)
        expectTaken("b", &harness)
    }

    @Test("A message of the subscription before cannot be acknowledged")
    func tokens() throws {
        var harness = try ClientHarness(.v1_2)
        for _ in 0..<2 {
            try subscribe("s", over: &harness)
            harness.receive(Self.message)
            try harness.client.send(.unsubscribe(id: "s"), call: Call(1), at: .zero)
            harness.receive("RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0")
        }
        try subscribe("s", over: &harness)
        harness.receive(Self.message)
        _ = harness.sent
        try #require(harness.tokens.count == 3)
        for token in harness.tokens.dropLast() {
            #expect(throws: STOMPSendError.subscriptionUnknown) {
                try harness.client.send(.acknowledge(token), at: .zero)
            }
            #expect(throws: STOMPSendError.subscriptionUnknown) {
                try harness.client.send(.refuse(token), at: .zero)
            }
        }
        #expect(harness.sent == "")
        try harness.client.send(.acknowledge(harness.tokens[2]), at: .zero)
        #expect(harness.sent == "ACK\nid:m\n\n\0")
    }
}
