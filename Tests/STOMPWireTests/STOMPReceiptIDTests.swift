import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// The ids of receipts that callers choose: no RECEIPT confirms another request than its own.
@Suite("STOMP: chosen ids of receipts") struct STOMPReceiptIDTests {
    private static let timeout = Duration.seconds(10)

    private func send(_ id: String, _ call: Call, over harness: inout ClientHarness) throws {
        try harness.client.send(
            ["destination": "/q"],
            body: [UInt8](),
            call: call,
            isRequired: true,
            receiptID: id,
            timeout: Self.timeout,
            at: harness.now
        )
    }

    /// The id is refused, and nothing is sent.
    private func expectTaken(
        _ id: String,
        _ harness: inout ClientHarness,
        _ error: STOMPSendError = .receiptTaken
    ) {
        _ = harness.sent
        #expect(harness.client.receiptFault(of: id) == error)
        #expect(throws: error) { try send(id, Call(99), over: &harness) }
        #expect(harness.sent == "")
    }

    @Test("A number is this side's, also as the id of a receipt that nothing waits for")
    func numbers() throws {
        var harness = try ClientHarness(.v1_2)
        for id in ["", "1", "7"] { expectTaken(id, &harness) }
        // No spelling of this side.
        try send("07", Call(1), over: &harness)
        harness.receive("RECEIPT\nreceipt-id:07\n\n\0")
        #expect(harness.told() == ["receipt 1 07"])
    }

    @Test("The id of a receipt that is late is taken until it comes, and confirms nothing")
    func late() throws {
        var harness = try ClientHarness(.v1_2)
        try send("a", Call(1), over: &harness)
        harness.advance(Self.timeout)
        #expect(harness.told() == ["timed out 1"])
        expectTaken("a", &harness)
        harness.receive("RECEIPT\nreceipt-id:a\n\n\0")
        #expect(harness.told() == [])
        try send("a", Call(2), over: &harness)
        harness.receive("RECEIPT\nreceipt-id:a\n\n\0")
        #expect(harness.told() == ["receipt 2 a"])
    }

    @Test("The id of a withdrawn request is taken after its time limit, too")
    func withdrawn() throws {
        var harness = try ClientHarness(.v1_2)
        let call = Call(1)
        try send("a", call, over: &harness)
        harness.client.cancel(call)
        harness.advance(Self.timeout)
        expectTaken("a", &harness)
        harness.receive("RECEIPT\nreceipt-id:a\n\n\0")
        #expect(harness.told() == [] && harness.client.receiptFault(of: "a") == nil)
    }

    @Test("A held frame that is sent in any case keeps its id until it is answered")
    func held() throws {
        for isCancelled in [false, true] {
            var harness = try ClientHarness(.v1_2) { $0.maximumInFlight = 1 }
            try harness.send(1, timeout: .seconds(40))
            let call = Call(2)
            try harness.client.send(
                .subscribe(id: "s", destination: "/q"),
                call: call,
                receiptID: "a",
                timeout: Self.timeout,
                at: harness.now
            )
            if isCancelled { harness.client.cancel(call) }
            harness.advance(Self.timeout)
            #expect(harness.told() == (isCancelled ? [] : ["timed out 2"]))
            expectTaken("a", &harness)
            harness.receive("RECEIPT\nreceipt-id:1\n\n\0")
            #expect(harness.sent == "SUBSCRIBE\nid:s\ndestination:/q\nreceipt:a\n\n\0")
            expectTaken("a", &harness)
            harness.receive("RECEIPT\nreceipt-id:a\n\n\0")
            #expect(harness.told() == ["receipt 1 1"])
            #expect(harness.client.receiptFault(of: "a") == nil)
        }
    }

    @Test("The id of a held message that is not sent is free when its turn has come")
    func dropped() throws {
        var harness = try ClientHarness(.v1_2) { $0.maximumInFlight = 1 }
        try harness.send(1)
        let call = Call(2)
        try send("a", call, over: &harness)
        harness.client.cancel(call)
        harness.receive("RECEIPT\nreceipt-id:1\n\n\0")
        _ = harness.sent
        try send("a", Call(3), over: &harness)
        harness.receive("RECEIPT\nreceipt-id:a\n\n\0")
        #expect(harness.told() == ["receipt 1 1", "receipt 3 a"])
    }

    @Test("So many ids are kept; then others are refused until a receipt comes")
    func bound() throws {
        var harness = try ClientHarness(.v1_2) { $0.maximumInFlight = 10_000 }
        for number in 1...STOMPReceipts.overdueLimit {
            try send("a\(number)", Call(number), over: &harness)
        }
        harness.advance(Self.timeout)
        _ = harness.told()
        expectTaken("b", &harness, .receiptsOverdue)
        // This side's own numbers go on.
        try harness.send(1)
        harness.receive("RECEIPT\nreceipt-id:a7\n\n\0")
        #expect(harness.client.receiptFault(of: "b") == nil)
    }
}
