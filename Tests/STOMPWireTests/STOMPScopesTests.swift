import STOMPWire
import Testing

/// Which requests the open subscriptions and transactions of a client allow.
@Suite("STOMP client: open subscriptions and transactions") struct STOMPScopesTests {
    static let token = STOMPAckToken(identifier: "m", subscriptionID: "s", generation: 1)

    /// The requests of one connection in their order, each with its error.
    static let rows: [(STOMPRequest, STOMPSendError?)] = [
        (.unsubscribe(id: "s"), .subscriptionUnknown),
        (.acknowledge(token), .subscriptionUnknown),
        (.subscribe(id: "", destination: "/q"), .subscriptionIDTaken),
        (.subscribe(id: "s", destination: ""), .destinationMissing),
        (.subscribe(id: "s", destination: "/q", headers: ["id": "x"]), .headerReserved("id")),
        (.subscribe(id: "s", destination: "/q"), nil),
        (.subscribe(id: "s", destination: "/r"), .subscriptionIDTaken),
        (.acknowledge(token), nil),
        (.refuse(token, transaction: "t"), .transactionUnknown),
        (.commit(transaction: "t"), .transactionUnknown),
        (.begin(transaction: ""), .transactionOpen),
        (.begin(transaction: "t"), nil),
        (.begin(transaction: "t"), .transactionOpen),
        (.refuse(token, transaction: "t"), nil),
        (.abort(transaction: "t"), nil),
        (.commit(transaction: "t"), .transactionUnknown),
        (.begin(transaction: "t"), nil),
        (.commit(transaction: "t"), nil),
        (.unsubscribe(id: "s"), nil),
        (.refuse(token), .subscriptionUnknown),
        (.subscribe(id: "s", destination: "/q"), nil),
        // Of the subscription before.
        (.acknowledge(token), .subscriptionUnknown),
    ]

    @Test("A request is allowed by the requests before it", arguments: [STOMPVersion.v1_1, .v1_2])
    func order(version: STOMPVersion) throws {
        var scopes = STOMPClientScopes()
        for (request, error) in Self.rows {
            if let error {
                #expect(throws: error, "\(request)") { try scopes.frame(of: request, in: version) }
            } else {
                _ = try scopes.frame(of: request, in: version)
                scopes.note(request)
            }
        }
        #expect(scopes.subscriptions.ids == ["s"])
        #expect(scopes.transactions.isEmpty)
    }

    @Test("1.0 has neither NACK nor client-individual")
    func oldest() throws {
        var scopes = STOMPClientScopes()
        scopes.note(.subscribe(id: "s", destination: "/q", ackMode: .client))
        let individual = STOMPRequest.subscribe(
            id: "i",
            destination: "/q",
            ackMode: .clientIndividual
        )
        for request in [.refuse(Self.token), individual] {
            #expect(throws: STOMPSendError.notSupported(.v1_0)) {
                try scopes.frame(of: request, in: .v1_0)
            }
        }
        let (command, headers) = try scopes.frame(of: .acknowledge(Self.token), in: .v1_0)
        #expect(command == .ack)
        #expect(headers == ["message-id": "m"])
    }
}
