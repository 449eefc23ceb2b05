import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP client: receipts, errors and the end") struct STOMPClientTests {
    // MARK: SEND and receipts

    @Test("SEND asks for a receipt only if a call waits for it, with a number of its own")
    func receipts() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.send()
        #expect(harness.sent == "SEND\ncontent-length:1\ndestination:/q\n\nx\0")
        try harness.send(1)
        try harness.send(2)
        #expect(
            harness.sent
                == "SEND\ncontent-length:1\ndestination:/q\nreceipt:1\n\nx\0"
                + "SEND\ncontent-length:1\ndestination:/q\nreceipt:2\n\nx\0"
        )
        #expect(harness.client.openCallCount == 2)
        harness.receive("RECEIPT\nreceipt-id:2\n\n\0RECEIPT\nreceipt-id:1\n\n\0")
        #expect(harness.told() == ["receipt 2 2", "receipt 1 1"])
        #expect(harness.client.openCallCount == 0)
    }

    @Test("A receipt without a waiting call is reported as a trace and is not fatal")
    func unknownReceipt() throws {
        var harness = try ClientHarness(.v1_2) { $0.isTracing = true }
        try harness.send(1)
        _ = harness.told()
        for id in ["2", "0", "01", "a", "", "99999999999999999999"] {
            harness.receive("RECEIPT\nreceipt-id:\(id)\n\n\0")
            #expect(harness.told().last == "< receipt without a pending request, 0", "\(id)")
        }
        #expect(harness.client.isConnected)
        #expect(harness.client.openCallCount == 1)
    }

    @Test("A message needs a destination; content-length and receipt are not the caller's")
    func reserved() throws {
        var harness = try ClientHarness(.v1_2)
        let rows: [(STOMPHeaders, STOMPSendError)] = [
            ([:], .destinationMissing), (["destination": ""], .destinationMissing),
            (["destination": "/q", "receipt": "1"], .headerReserved("receipt")),
            (["destination": "/q", "content-length": "1"], .headerReserved("content-length")),
            (["destination": "/q", "transaction": "t"], .transactionUnknown),
            (["destination": "/q", "x": "\0"], .encoding(.nullCharacter("x"))),
        ]
        for (headers, expected) in rows {
            #expect(throws: expected) {
                try harness.client.send(headers, body: [UInt8](), call: Call(1), at: .zero)
            }
        }
        #expect(harness.sent == "")
        #expect(harness.client.openCallCount == 0)
        // The refused requests have used no receipt number.
        try harness.send(1)
        #expect(harness.sent.contains("receipt:1\n"))
    }

    @Test("Every frame but CONNECT may ask for a receipt, which completes just that request")
    func receiptOnAny() throws {
        var harness = try ClientHarness(.v1_2)
        let client = { (number: Int) in Call(number) }
        try harness.client.send(
            .subscribe(id: "0", destination: "/q", ackMode: .client),
            call: client(1),
            at: .zero
        )
        harness.receive("MESSAGE\ndestination:/q\nmessage-id:1\nsubscription:0\nack:a\n\n\0")
        let token = harness.tokens[0]
        try harness.client.send(.begin(transaction: "t"), call: client(2), at: .zero)
        try harness.client.send(.acknowledge(token, transaction: "t"), call: client(3), at: .zero)
        try harness.client.send(.refuse(token), call: client(4), at: .zero)
        try harness.client.send(.commit(transaction: "t"), call: client(5), at: .zero)
        try harness.client.send(.begin(transaction: "t"), call: client(6), at: .zero)
        try harness.client.send(.abort(transaction: "t"), call: client(7), at: .zero)
        try harness.client.send(.unsubscribe(id: "0"), call: client(8), at: .zero)
        #expect(
            harness.sent
                == "SUBSCRIBE\nid:0\ndestination:/q\nack:client\nreceipt:1\n\n\0"
                + "BEGIN\ntransaction:t\nreceipt:2\n\n\0"
                + "ACK\nid:a\ntransaction:t\nreceipt:3\n\n\0" + "NACK\nid:a\nreceipt:4\n\n\0"
                + "COMMIT\ntransaction:t\nreceipt:5\n\n\0" + "BEGIN\ntransaction:t\nreceipt:6\n\n\0"
                + "ABORT\ntransaction:t\nreceipt:7\n\n\0" + "UNSUBSCRIBE\nid:0\nreceipt:8\n\n\0"
        )
        // The message has confirmed its subscription.
        #expect(harness.told().contains("receipt 1 "))
        for number in (1...8).reversed() {
            harness.receive("RECEIPT\nreceipt-id:\(number)\n\n\0")
            #expect(harness.told() == (number == 1 ? [] : ["receipt \(number) \(number)"]))
        }
    }

    @Test("A call waits 15 seconds, or its own timeout; a later receipt completes no call")
    func timeouts() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.send(1)
        try harness.send(2, timeout: .seconds(20))
        try harness.send(3, timeout: .seconds(1))
        #expect(harness.client.deadline == WireInstant(nanoseconds: 1_000_000_000))
        harness.advance(.milliseconds(999))
        #expect(harness.told() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.told() == ["timed out 3"])
        #expect(harness.client.deadline == WireInstant(nanoseconds: 15_000_000_000))
        harness.receive("RECEIPT\nreceipt-id:3\n\n\0")
        harness.advance(.seconds(14))
        #expect(harness.told() == ["timed out 1"])
        harness.receive("RECEIPT\nreceipt-id:2\n\n\0")
        #expect(harness.told() == ["receipt 2 2"])
        #expect(harness.client.deadline == nil)
    }

    @Test("A call that is cancelled is told nothing")
    func cancel() throws {
        var harness = try ClientHarness(.v1_2)
        let call = Call(1)
        try harness.client.send(["destination": "/q"], body: [UInt8](), call: call, at: .zero)
        try harness.send(2)
        harness.client.cancel(call)
        harness.receive("RECEIPT\nreceipt-id:1\n\n\0")
        harness.endOfStream()
        #expect(harness.told() == ["abandoned 2", "closed"])
    }

    @Test("Ten thousand receipts, answered in any order, leave nothing behind")
    func manyReceipts() throws {
        var receipts = STOMPReceipts()
        var generator = SeededGenerator(seed: 51)
        var open: [UInt64] = []
        let start = WireInstant.zero
        for round in 0..<20_000 {
            let deadline = start.advanced(by: .milliseconds(Int64(generator.next() % 1_000)))
            open.append(receipts.nextNumber)
            receipts.add(Call(round), deadline: deadline)
            receipts.noteSent(UInt64(round + 1))
            if open.count > 10_000 {
                open.swapAt(Int(generator.next() % UInt64(open.count)), open.count - 1)
                let number = open.removeLast()
                let call = receipts.take(number) as? Call
                if call?.number != Int(number) - 1 { Issue.record("not the call of \(number)") }
            }
        }
        #expect(receipts.count == 10_000)
        // The other receipts expire in the order of their deadlines, each at its deadline.
        var expired = 0
        while let deadline = receipts.earliestDeadline {
            let early = WireInstant(nanoseconds: deadline.nanoseconds - 1)
            let tooEarly = receipts.takeExpired(at: early)
            let calls = receipts.takeExpired(at: deadline)
            if !tooEarly.isEmpty || calls.isEmpty { Issue.record("not in time") }
            expired += calls.count
        }
        #expect(expired == 10_000)
        #expect(receipts.count == 0)
    }

    @Test("Receipts answered out of order under a long deadline do not pile up")
    func noPile() {
        var receipts = STOMPReceipts()
        receipts.add(Call(0), deadline: .zero)
        for number in 2...100_000 as ClosedRange<UInt64> {
            receipts.add(Call(Int(number)), deadline: WireInstant(nanoseconds: Int64(number)))
            receipts.noteSent(number)
            _ = receipts.take(number)
        }
        #expect(receipts.count == 1)
        #expect(receipts.deadlineCount < 100)
    }

    // MARK: ERROR

    @Test("ERROR fails the request that it names, and the connection is over at once")
    func error() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.send(1)
        try harness.send(2)
        try harness.send(3)
        harness.receive(
            "ERROR\nreceipt-id:2\nmessage:bad\\cworse\nx:y\ncontent-length:4\n\noops\0"
        )
        #expect(harness.told() == ["failed 2 bad:worse", "abandoned 1", "abandoned 3", "closed"])
        guard case .error(let error) = harness.closure else {
            Issue.record("\(String(describing: harness.closure))")
            return
        }
        #expect(error.headers.first("x") == "y")
        #expect(error.receiptID == "2")
        #expect(error.body == Array("oops".utf8))
        #expect(harness.client.isFinished)
        #expect(throws: STOMPSendError.notConnected) { try harness.send() }
    }

    @Test("ERROR that names no request of ours ends the connection just the same")
    func unrelatedError() throws {
        for header in ["", "receipt-id:9\n", "receipt-id:01\n", "receipt-id:x\n"] {
            var harness = try ClientHarness(.v1_1)
            try harness.send(1)
            harness.receive("ERROR\n\(header)\n\0")
            #expect(harness.told() == ["abandoned 1", "closed"])
        }
    }

    // MARK: DISCONNECT

    @Test("DISCONNECT waits for its receipt; those of earlier requests still count")
    func disconnect() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.send(1)
        _ = harness.sent
        harness.disconnect()
        #expect(harness.sent == "DISCONNECT\nreceipt:2\n\n\0")
        #expect(!harness.client.isFinished)
        #expect(!harness.client.isConnected)
        harness.receive("RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0")
        #expect(harness.told() == ["receipt 1 1", "closed"])
        #expect(harness.closure == .disconnected)
        #expect(harness.client.isFinished)
    }

    @Test("A server that does not answer DISCONNECT, or closes at once, is tolerated")
    func disconnectUnanswered() throws {
        var silent = try ClientHarness(.v1_2)
        silent.disconnect()
        silent.advance(.milliseconds(4_999))
        #expect(silent.closure == nil)
        silent.advance(.milliseconds(1))
        #expect(silent.closure == .disconnected)
        var ended = try ClientHarness(.v1_2)
        try ended.send(1)
        ended.disconnect()
        ended.endOfStream()
        #expect(ended.told() == ["abandoned 1", "closed"])
        #expect(ended.closure == .disconnected)
    }

    @Test("Nothing can be sent after DISCONNECT; messages that still come are delivered")
    func afterDisconnect() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0")
        harness.disconnect()
        _ = harness.sent
        #expect(throws: STOMPSendError.notConnected) { try harness.send() }
        #expect(throws: STOMPSendError.notConnected) { try harness.subscribe("1") }
        harness.disconnect()
        harness.receive("MESSAGE\ndestination:/q\nmessage-id:1\nsubscription:0\n\nlate\0")
        #expect(harness.told() == ["message 0 late"])
        #expect(harness.sent == "")
        harness.receive("ERROR\nmessage:no\n\n\0")
        guard case .error = harness.closure else {
            Issue.record("\(String(describing: harness.closure))")
            return
        }
    }

    @Test("The end of the stream ends the calls, in their order")
    func endOfStream() throws {
        var harness = try ClientHarness(.v1_2)
        for number in 1...12 { try harness.send(number) }
        harness.endOfStream()
        #expect(harness.told() == (1...12).map { "abandoned \($0)" } + ["closed"])
        #expect(harness.closure == .endOfStream)
    }

    // MARK: Traces

    @Test("Traces show commands, ids and destinations, never bodies or other values")
    func traces() throws {
        var harness = try ClientHarness(nil) { $0.isTracing = true }
        let request = STOMPConnect(versions: [.v1_2], host: "h", login: "user", passcode: "secret")
        try harness.client.connect(request, at: .zero)
        harness.receive("CONNECTED\nversion:1.2\nsession:secret\nheart-beat:0,0\n\n\0\n\r\n")
        try harness.subscribe("0")
        try harness.client.send(
            ["destination": "/q", "token": "secret"],
            body: Array("secret".utf8),
            call: Call(1),
            at: .zero
        )
        harness.receive("\nRECEIPT\nreceipt-id:1\n\n\0")
        harness.receive("MESSAGE\ndestination:/a\\nb\nmessage-id:1\nsubscription:9\n\nsecret\0")
        #expect(
            harness.told() == [
                "> CONNECT accept-version=1.2 heart-beat=10000,10000, 86",
                "< CONNECTED version=1.2 heart-beat=0,0, 54", "connected 1.2", "< heart-beat, 3",
                "> SUBSCRIBE id=0 destination=/q, 32",
                "> SEND destination=/q receipt=1 (6 bytes), 68", "< heart-beat, 1",
                "< RECEIPT receipt-id=1, 23", "receipt 1 1",
                "< MESSAGE destination=/a\\u{a}b message-id=1 subscription=9 (6 bytes), 62",
                "< dropped: no such subscription, 0", "unheard, 6",
            ]
        )
    }
}
