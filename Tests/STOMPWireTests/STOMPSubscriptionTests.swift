import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP client: subscriptions, acknowledgements, transactions")
struct STOMPSubscriptionTests {
    private func message(_ id: String, subscription: String?, ack: String? = nil) -> String {
        var text = "MESSAGE\ndestination:/q\nmessage-id:\(id)\n"
        if let subscription { text += "subscription:\(subscription)\n" }
        if let ack { text += "ack:\(ack)\n" }
        return text + "\n\(id)\0"
    }

    // MARK: SUBSCRIBE and UNSUBSCRIBE

    @Test(
        "SUBSCRIBE carries id and destination, and ack unless it is auto",
        arguments: STOMPVersion.allCases
    )
    func subscribe(version: STOMPVersion) throws {
        var harness = try ClientHarness(version)
        try harness.client.send(.subscribe(id: "0", destination: "/q"), at: .zero)
        try harness.client.send(
            .subscribe(
                id: "1",
                destination: "/q",
                ackMode: .client,
                headers: ["selector": "a = 1"]
            ),
            at: .zero
        )
        #expect(
            harness.sent
                == "SUBSCRIBE\nid:0\ndestination:/q\n\n\0"
                + "SUBSCRIBE\nid:1\ndestination:/q\nack:client\nselector:a = 1\n\n\0"
        )
        #expect(harness.client.scopes.subscriptions.ids == ["0", "1"])
        #expect(harness.client.scopes.subscriptions["0"]?.ackMode == .auto)
        #expect(harness.client.scopes.subscriptions["1"]?.ackMode == .client)
        #expect(harness.client.scopes.subscriptions["2"]?.ackMode == nil)
    }

    @Test("client-individual came with 1.1")
    func individual() throws {
        var old = try ClientHarness(.v1_0)
        #expect(throws: STOMPSendError.notSupported(.v1_0)) {
            try old.subscribe("0", .clientIndividual)
        }
        var harness = try ClientHarness(.v1_1)
        try harness.client.send(
            .subscribe(id: "0", destination: "/q", ackMode: .clientIndividual),
            at: .zero
        )
        #expect(harness.sent == "SUBSCRIBE\nid:0\ndestination:/q\nack:client-individual\n\n\0")
    }

    @Test("An id that is taken, and headers that are not the caller's, are refused")
    func refusedSubscriptions() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0")
        #expect(throws: STOMPSendError.subscriptionIDTaken) { try harness.subscribe("0") }
        #expect(throws: STOMPSendError.subscriptionIDTaken) { try harness.subscribe("") }
        #expect(throws: STOMPSendError.destinationMissing) {
            try harness.client.send(.subscribe(id: "1", destination: ""), at: .zero)
        }
        for name in ["id", "destination", "ack", "receipt", "content-length"] {
            #expect(throws: STOMPSendError.headerReserved(name)) {
                try harness.client.send(
                    .subscribe(id: "1", destination: "/q", headers: [name: "x"]),
                    at: .zero
                )
            }
        }
        #expect(throws: STOMPSendError.encoding(.nullCharacter("id"))) {
            try harness.client.send(.subscribe(id: "\0", destination: "/q"), at: .zero)
        }
        #expect(harness.sent == "")
        #expect(harness.client.scopes.subscriptions.ids == ["0"])
    }

    @Test("UNSUBSCRIBE carries the id of its subscription, which is free then")
    func unsubscribe() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0")
        #expect(throws: STOMPSendError.subscriptionUnknown) {
            try harness.client.send(.unsubscribe(id: "1"), at: .zero)
        }
        try harness.client.send(.unsubscribe(id: "0", headers: ["durable": "true"]), at: .zero)
        #expect(harness.sent == "UNSUBSCRIBE\nid:0\ndurable:true\n\n\0")
        #expect(throws: STOMPSendError.subscriptionUnknown) {
            try harness.client.send(.unsubscribe(id: "0"), at: .zero)
        }
        try harness.subscribe("0")
    }

    // MARK: MESSAGE

    @Test("Messages go by subscription, also when two share a destination")
    func routing() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("a")
        try harness.subscribe("b")
        harness.receive(message("1", subscription: "b") + message("2", subscription: "a"))
        harness.receive(message("3", subscription: "a") + message("4", subscription: "c"))
        #expect(harness.told() == ["message b 1", "message a 2", "message a 3", "unheard, 1"])
        try harness.client.send(.unsubscribe(id: "a"), at: .zero)
        harness.receive(message("5", subscription: "a") + message("6", subscription: "b"))
        #expect(harness.told() == ["unheard, 1", "message b 6"])
        #expect(harness.client.isConnected)
    }

    @Test("Ids with escapes and long ids route as well")
    func escapedIDs() throws {
        var harness = try ClientHarness(.v1_2)
        let ids = ["a:b\\\n", String(repeating: "long", count: 20)]
        for id in ids { try harness.subscribe(id) }
        for _ in 0..<2 {
            harness.receive(message("1", subscription: "a\\cb\\\\\\n"))
            harness.receive(message("2", subscription: ids[1]))
            #expect(harness.told() == ["message \(ids[0]) 1", "message \(ids[1]) 2"])
        }
    }

    @Test("A 1.0 server may leave out the subscription: then the destination decides")
    func routing1_0() throws {
        var harness = try ClientHarness(.v1_0)
        try harness.client.send(.subscribe(id: "0", destination: "/other"), at: .zero)
        try harness.subscribe("2")
        try harness.subscribe("1")
        harness.receive(message("1", subscription: nil) + message("2", subscription: "0"))
        harness.receive("MESSAGE\ndestination:/none\nmessage-id:3\n\n\0")
        #expect(harness.told() == ["message 1 1", "message 0 2", "unheard, 0"])
    }

    @Test("A message must have destination, message-id and, from 1.1, subscription")
    func required() throws {
        let rows: [(STOMPVersion, String, String)] = [
            (.v1_2, "message-id:1\nsubscription:0\n", "destination"),
            (.v1_2, "destination:/q\nsubscription:0\n", "message-id"),
            (.v1_2, "destination:/q\nmessage-id:1\n", "subscription"),
            (.v1_1, "destination:/q\nmessage-id:1\n", "subscription"),
            (.v1_0, "message-id:1\n", "destination"),
            (.v1_0, "destination:/q\n", "message-id"),
        ]
        for (version, headers, name) in rows {
            var harness = try ClientHarness(version)
            harness.receive("MESSAGE\n\(headers)\n\0")
            #expect(harness.closure == .violation(.headerMissing(.message, name)))
        }
    }

    @Test("A receipt header of a message means nothing: brokers echo that of SEND")
    func echoedReceipt() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0")
        try harness.send(1)
        harness.receive(
            "MESSAGE\ndestination:/q\nmessage-id:1\nsubscription:0\nreceipt:1\n"
                + "receipt-id:1\n\nx\0"
        )
        #expect(harness.told() == ["message 0 x"])
        #expect(harness.client.openCallCount == 1)
    }

    // MARK: ACK and NACK

    @Test("1.2 acknowledges by the ack header")
    func ack1_2() throws {
        for mode in [STOMPAckMode.client, .clientIndividual] {
            var harness = try ClientHarness(.v1_2)
            try harness.subscribe("0", mode)
            harness.receive(message("7", subscription: "0", ack: "x\\c9"))
            try harness.client.send(.acknowledge(harness.tokens[0]), at: .zero)
            try harness.client.send(
                .refuse(harness.tokens[0], headers: ["requeue": "false"]),
                at: .zero
            )
            #expect(
                harness.sent == "ACK\nid:x\\c9\n\n\0" + "NACK\nid:x\\c9\nrequeue:false\n\n\0"
            )
        }
    }

    @Test("1.1 acknowledges by message-id and subscription")
    func ack1_1() throws {
        var harness = try ClientHarness(.v1_1)
        try harness.subscribe("0", .clientIndividual)
        harness.receive(message("7", subscription: "0"))
        try harness.client.send(.acknowledge(harness.tokens[0]), at: .zero)
        try harness.client.send(.refuse(harness.tokens[0]), at: .zero)
        #expect(
            harness.sent
                == "ACK\nmessage-id:7\nsubscription:0\n\n\0"
                + "NACK\nmessage-id:7\nsubscription:0\n\n\0"
        )
    }

    @Test("1.0 acknowledges by message-id and has no NACK")
    func ack1_0() throws {
        var harness = try ClientHarness(.v1_0)
        try harness.subscribe("0", .client)
        harness.receive(message("7", subscription: "0"))
        try harness.client.send(.acknowledge(harness.tokens[0]), at: .zero)
        #expect(harness.sent == "ACK\nmessage-id:7\n\n\0")
        #expect(throws: STOMPSendError.notSupported(.v1_0)) {
            try harness.client.send(.refuse(harness.tokens[0]), at: .zero)
        }
    }

    @Test("A 1.2 message that is to be acknowledged and has no ack comes without a token")
    func ackMissing() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0", .auto)
        try harness.subscribe("1", .client)
        harness.receive(message("1", subscription: "0"))
        #expect(harness.told() == ["message 0 1"])
        #expect(harness.tokens == [])
        harness.receive(message("2", subscription: "1"))
        #expect(harness.told() == ["message 1 2"])
        #expect(harness.tokens == [] && harness.closure == nil)
    }

    @Test("Just the acknowledgements that are asked for are sent")
    func exactlyThose() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0", .client)
        for number in 1...3 {
            harness.receive(message("\(number)", subscription: "0", ack: "\(number)"))
        }
        #expect(harness.sent == "")
        try harness.client.send(.acknowledge(harness.tokens[2]), at: .zero)
        #expect(harness.sent == "ACK\nid:3\n\n\0")
        harness.disconnect()
        #expect(harness.sent == "DISCONNECT\nreceipt:1\n\n\0")
    }

    @Test("An acknowledgement for a subscription that has ended is refused")
    func lateAcknowledgement() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.subscribe("0", .client)
        harness.receive(message("1", subscription: "0", ack: "1"))
        for name in ["id", "message-id", "subscription", "transaction"] {
            #expect(throws: STOMPSendError.headerReserved(name)) {
                try harness.client.send(
                    .acknowledge(harness.tokens[0], headers: [name: ""]),
                    at: .zero
                )
            }
        }
        #expect(throws: STOMPSendError.transactionUnknown) {
            try harness.client.send(.acknowledge(harness.tokens[0], transaction: "t"), at: .zero)
        }
        try harness.client.send(.unsubscribe(id: "0"), at: .zero)
        _ = harness.sent
        #expect(throws: STOMPSendError.subscriptionUnknown) {
            try harness.client.send(.acknowledge(harness.tokens[0]), at: .zero)
        }
        #expect(harness.sent == "")
    }

    // MARK: Transactions

    @Test("BEGIN, COMMIT and ABORT carry the transaction, whose id is taken while it is open")
    func transactions() throws {
        var harness = try ClientHarness(.v1_2)
        try harness.client.send(.begin(transaction: "a"), at: .zero)
        try harness.client.send(.begin(transaction: "b", headers: ["x": "1"]), at: .zero)
        #expect(throws: STOMPSendError.transactionOpen) {
            try harness.client.send(.begin(transaction: "a"), at: .zero)
        }
        #expect(throws: STOMPSendError.transactionOpen) {
            try harness.client.send(.begin(transaction: ""), at: .zero)
        }
        #expect(throws: STOMPSendError.headerReserved("transaction")) {
            try harness.client.send(
                .begin(transaction: "c", headers: ["transaction": "d"]),
                at: .zero
            )
        }
        try harness.client.send(
            ["destination": "/q", "transaction": "a"],
            body: [UInt8](),
            at: .zero
        )
        try harness.client.send(.commit(transaction: "a"), at: .zero)
        try harness.client.send(.abort(transaction: "b"), at: .zero)
        #expect(
            harness.sent
                == "BEGIN\ntransaction:a\n\n\0" + "BEGIN\ntransaction:b\nx:1\n\n\0"
                + "SEND\ndestination:/q\ntransaction:a\n\n\0" + "COMMIT\ntransaction:a\n\n\0"
                + "ABORT\ntransaction:b\n\n\0"
        )
        for _ in 0..<2 {
            #expect(throws: STOMPSendError.transactionUnknown) {
                try harness.client.send(.commit(transaction: "a"), at: .zero)
            }
            #expect(throws: STOMPSendError.transactionUnknown) {
                try harness.client.send(.abort(transaction: "b"), at: .zero)
            }
        }
        #expect(harness.client.scopes.transactions == [])
        try harness.client.send(.begin(transaction: "a"), at: .zero)
        #expect(harness.client.scopes.transactions == [WireName("a")])
    }
}
