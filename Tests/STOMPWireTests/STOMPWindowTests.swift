import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// The limit on the requests that wait for their receipts.
@Suite("STOMP: requests in flight") struct STOMPWindowTests {
    private func harness(_ window: Int) throws -> ClientHarness {
        try ClientHarness(.v1_2) { $0.maximumInFlight = window }
    }

    /// The receipt numbers in the frames sent since the last call, in order. DISCONNECT is listed by its name.
    private func asked(_ harness: inout ClientHarness) -> [String] {
        harness.sent.split(separator: "\0").map { frame in
            let lines = frame.drop { $0 == "\n" }.split(separator: "\n")
            guard lines.first != "DISCONNECT" else { return "DISCONNECT" }
            let receipt = lines.first { $0.hasPrefix("receipt:") }
            return receipt.map { String($0.dropFirst(8)) } ?? lines.first.map(String.init) ?? ""
        }
    }

    private func answer(_ number: Int, _ harness: inout ClientHarness) {
        harness.receive("RECEIPT\nreceipt-id:\(number)\n\n\0")
    }

    @Test("No more than the window are sent; receipts let others follow, in the order of the calls")
    func window() throws {
        var harness = try harness(3)
        for number in 1...10 { try harness.send(number) }
        #expect(asked(&harness) == ["1", "2", "3"])
        answer(2, &harness)
        #expect(asked(&harness) == ["4"])
        answer(1, &harness)
        answer(4, &harness)
        #expect(asked(&harness) == ["5", "6"])
        for number in [3, 5, 6, 7, 8, 9, 10] { answer(number, &harness) }
        #expect(asked(&harness) == ["7", "8", "9", "10"])
        let receipts = [2, 1, 4, 3, 5, 6, 7, 8, 9, 10].map { "receipt \($0) \($0)" }
        #expect(harness.told() == receipts)
        #expect(harness.client.openCallCount == 0)
    }

    @Test("A receipt or a refusal of a request that is held answers nothing: it was not sent")
    func answerToHeld() throws {
        var harness = try harness(1)
        for number in 1...3 { try harness.send(number) }
        #expect(asked(&harness) == ["1"])
        answer(2, &harness)
        #expect(harness.told() == [])
        answer(1, &harness)
        // The frame is still sent, and only its own receipt completes it.
        #expect(asked(&harness) == ["2"])
        answer(2, &harness)
        #expect(harness.told() == ["receipt 1 1", "receipt 2 2"])
        #expect(asked(&harness) == ["3"])
        try harness.send(4)
        harness.receive("ERROR\nreceipt-id:4\nmessage:no\n\n\0")
        #expect(harness.told().filter { $0.hasPrefix("failed") } == [])
    }

    @Test("Ten thousand at once are never more than the window on the wire, and all are answered")
    func burst() throws {
        var harness = try harness(200)
        for number in 1...10_000 { try harness.send(number) }
        var open = asked(&harness)
        var answered = 0
        while let first = open.first, let number = Int(first) {
            #expect(open.count <= 200)
            open.removeFirst()
            answered += 1
            answer(number, &harness)
            open += asked(&harness)
        }
        #expect(answered == 10_000)
        #expect(harness.told() == (1...10_000).map { "receipt \($0) \($0)" })
    }

    @Test("A message that is withdrawn while it waits is not sent; one in flight keeps its place")
    func withdrawn() throws {
        var harness = try harness(2)
        let calls = (1...6).map { Call($0) }
        for call in calls {
            try harness.client.send(
                ["destination": "/q"],
                body: Array("x".utf8),
                call: call,
                at: .zero
            )
        }
        #expect(asked(&harness) == ["1", "2"])
        // The server has the first request although its caller has gone, so the next one is not sent yet.
        harness.client.cancel(calls[0])
        harness.client.cancel(calls[2])
        harness.client.cancel(calls[4])
        #expect(asked(&harness) == [])
        answer(1, &harness)
        #expect(asked(&harness) == ["4"])
        answer(2, &harness)
        #expect(asked(&harness) == ["6"])
        answer(4, &harness)
        answer(6, &harness)
        #expect(harness.told() == ["receipt 2 2", "receipt 4 4", "receipt 6 6"])
    }

    @Test("All that are cancelled at once send nothing in each other's place")
    func allWithdrawn() throws {
        var harness = try harness(5)
        let calls = (1...1_000).map { Call($0) }
        for call in calls {
            try harness.client.send(["destination": "/q"], body: [UInt8](), call: call, at: .zero)
        }
        #expect(asked(&harness).count == 5)
        for call in calls { harness.client.cancel(call) }
        for number in 1...5 { answer(number, &harness) }
        #expect(asked(&harness) == [])
        #expect(harness.told() == [])
        try harness.send(7)
        #expect(asked(&harness) == ["1001"])
    }

    @Test("The time for a receipt counts from the call: one that waits too long is not sent")
    func timeouts() throws {
        var harness = try harness(1)
        try harness.send(1, timeout: .seconds(30))
        try harness.send(2, timeout: .seconds(10))
        try harness.send(3, timeout: .seconds(40))
        #expect(asked(&harness) == ["1"])
        harness.advance(.seconds(10))
        #expect(harness.told() == ["timed out 2"])
        // A request that is not answered in time also gives up its place in the window.
        harness.advance(.seconds(20))
        #expect(harness.told() == ["timed out 1"])
        #expect(asked(&harness) == ["3"])
    }

    @Test("The place of one that was withdrawn in flight is free when its time is up")
    func withdrawnAndSilent() throws {
        var harness = try harness(1)
        let call = Call(1)
        try harness.client.send(["destination": "/q"], body: [UInt8](), call: call, at: .zero)
        try harness.send(2, timeout: .seconds(40))
        harness.client.cancel(call)
        #expect(asked(&harness) == ["1"])
        harness.advance(.seconds(15))
        #expect(asked(&harness) == ["2"])
        #expect(harness.told() == [])
    }

    @Test("Those that were never sent are told apart when the connection ends")
    func unsent() throws {
        var harness = try harness(2)
        for number in 1...4 { try harness.send(number) }
        harness.endOfStream()
        #expect(
            harness.told() == ["abandoned 1", "abandoned 2", "not sent 3", "not sent 4", "closed"]
        )
    }

    @Test("DISCONNECT follows what waits, and heart-beats and receipts go on until then")
    func disconnect() throws {
        var harness = try harness(1)
        for number in 1...3 { try harness.send(number) }
        harness.disconnect()
        #expect(throws: STOMPSendError.notConnected) { try harness.send(4) }
        #expect(asked(&harness) == ["1"])
        answer(1, &harness)
        #expect(asked(&harness) == ["2"])
        answer(2, &harness)
        #expect(asked(&harness) == ["3", "DISCONNECT"])
        answer(3, &harness)
        harness.receive("RECEIPT\nreceipt-id:4\n\n\0")
        let receipts = (1...3).map { "receipt \($0) \($0)" }
        #expect(harness.told() == receipts + ["closed"])
        #expect(harness.closure == .disconnected)
    }

    @Test("DISCONNECT waits no longer than closing may take")
    func slowDisconnect() throws {
        var harness = try harness(1)
        for number in 1...2 { try harness.send(number) }
        harness.disconnect()
        harness.advance(.seconds(5))
        #expect(harness.told() == ["abandoned 1", "not sent 2", "closed"])
        #expect(asked(&harness) == ["1"])
    }

    @Test("Frames without a receipt overtake, unless they build on one that waits")
    func overtaking() throws {
        var harness = try harness(1)
        try harness.send(1)
        try harness.client.send(.begin(transaction: "t"), call: Call(2), at: .zero)
        try harness.send()
        #expect(asked(&harness) == ["1", "SEND"])
        try harness.client.send(
            ["destination": "/q", "transaction": "t"],
            body: [UInt8](),
            at: .zero
        )
        try harness.client.send(.commit(transaction: "t"), at: .zero)
        #expect(asked(&harness) == [])
        answer(1, &harness)
        #expect(asked(&harness) == ["2", "SEND", "COMMIT"])
    }

    @Test("What is not a message is sent even when its caller waits no longer: others build on it")
    func withdrawnSubscription() throws {
        var harness = try harness(1)
        try harness.send(1)
        let call = Call(2)
        try harness.client.send(.subscribe(id: "s", destination: "/q"), call: call, at: .zero)
        harness.client.cancel(call)
        try harness.client.send(.unsubscribe(id: "s"), at: .zero)
        #expect(asked(&harness) == ["1"])
        answer(1, &harness)
        #expect(asked(&harness) == ["2", "UNSUBSCRIBE"])
    }

    @Test("ERROR without a receipt is the refusal of the requests to the destination that it names")
    func namedDestination() throws {
        var harness = try ClientHarness(.v1_2)
        for (number, destination) in [(1, "/queue/a"), (2, "/nowhere/x"), (3, "/nowhere")] {
            try harness.client.send(
                ["destination": destination],
                body: [UInt8](),
                call: Call(number),
                at: .zero
            )
        }
        // The text is RabbitMQ 3.10's.
        let body =
            "'/nowhere/x' is not a valid destination.\nValid destination types are: /temp-queue, /exchange.\n"
        harness.receive("ERROR\nmessage:Unknown destination\ncontent-type:text/plain\n\n\(body)\0")
        #expect(
            harness.told() == [
                "failed 2 Unknown destination", "abandoned 1", "abandoned 3", "closed",
            ]
        )
    }

    @Test(
        "An exchange or queue that is not there refuses the requests whose destination holds its name"
    )
    func notFound() throws {
        var harness = try ClientHarness(.v1_2)
        for (number, destination) in [
            (1, "/exchange/nope/x"), (2, "/queue/no"), (3, "/amq/queue/nope"),
        ] {
            try harness.client.send(
                ["destination": destination],
                body: [UInt8](),
                call: Call(number),
                at: .zero
            )
        }
        harness.receive(
            "ERROR\nmessage:not_found\n\nNOT_FOUND - no exchange 'nope' in vhost '/'\n\0"
        )
        #expect(
            harness.told() == ["failed 1 not_found", "failed 3 not_found", "abandoned 2", "closed"]
        )
    }

    @Test("A text with single quotes that name no destination refuses no request")
    func otherWords() throws {
        for body in ["it's over", "'/other' is gone", "'", "''", "/q is what 'you' want '/q"] {
            var harness = try ClientHarness(.v1_2)
            try harness.send(1)
            harness.receive("ERROR\nmessage:no\n\n\(body)\0")
            #expect(harness.told() == ["abandoned 1", "closed"], "\(body)")
        }
    }
}
