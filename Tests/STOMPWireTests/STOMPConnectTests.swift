import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP client: connecting") struct STOMPConnectTests {
    private func connectText(_ request: STOMPConnect) throws -> String {
        var harness = try ClientHarness(nil)
        try harness.client.connect(request, at: .zero)
        return harness.sent
    }

    /// Makes a client that has sent CONNECT and receives the text as the answer.
    private func answered(
        _ text: String,
        versions: [STOMPVersion] = STOMPVersion.allCases
    ) throws -> ClientHarness {
        var harness = try ClientHarness(nil)
        try harness.client.connect(STOMPConnect(versions: versions, host: "h"), at: .zero)
        harness.receive(text)
        return harness
    }

    @Test("CONNECT carries the versions ascending, the host and the heart-beat")
    func connect() throws {
        #expect(
            try connectText(STOMPConnect(versions: [.v1_2, .v1_0, .v1_1, .v1_2], host: "h"))
                == "CONNECT\naccept-version:1.0,1.1,1.2\nhost:h\nheart-beat:10000,10000\n\n\0"
        )
        #expect(
            try connectText(STOMPConnect(versions: [.v1_2], host: "h", heartBeat: .none))
                == "CONNECT\naccept-version:1.2\nhost:h\nheart-beat:0,0\n\n\0"
        )
    }

    @Test("The command is CONNECT, and STOMP only when asked for")
    func command() throws {
        #expect(try connectText(STOMPConnect(host: "h")).hasPrefix("CONNECT\n"))
        let stomp = STOMPConnect(host: "h", usesSTOMPCommand: true)
        #expect(try connectText(stomp).hasPrefix("STOMP\naccept-version:"))
    }

    @Test("A client of 1.0 alone leaves out versions and heart-beat, and the host if it has none")
    func only1_0() throws {
        #expect(try connectText(STOMPConnect(versions: [.v1_0])) == "CONNECT\n\n\0")
        #expect(
            try connectText(STOMPConnect(versions: [.v1_0], host: "h", login: "u", passcode: "p"))
                == "CONNECT\nhost:h\nlogin:u\npasscode:p\n\n\0"
        )
    }

    @Test("Login and passcode go out raw, further headers last")
    func credentials() throws {
        let request = STOMPConnect(
            versions: [.v1_2],
            host: "h",
            login: "u",
            passcode: "a\\b:c",
            heartBeat: .none,
            headers: ["client-id": "1"]
        )
        #expect(
            try connectText(request)
                == "CONNECT\naccept-version:1.2\nhost:h\nlogin:u\npasscode:a\\b:c\n"
                + "heart-beat:0,0\nclient-id:1\n\n\0"
        )
    }

    @Test("A request that makes no sense is refused, and can be made again")
    func refusedRequests() throws {
        var harness = try ClientHarness(nil)
        let rows: [(STOMPConnect, STOMPSendError)] = [
            (STOMPConnect(versions: [], host: "h"), .noVersion),
            (STOMPConnect(), .hostMissing),
            (
                STOMPConnect(host: "h", passcode: "a\nb"),
                .encoding(.lineBreakNotAllowed("passcode"))
            ),
            (STOMPConnect(host: "h", headers: ["receipt": "1"]), .headerReserved("receipt")),
            (STOMPConnect(host: "h", headers: ["login": "u"]), .headerReserved("login")),
        ]
        for (request, expected) in rows {
            #expect(throws: expected) { try request.check() }
            #expect(throws: expected) { try harness.client.connect(request, at: .zero) }
        }
        #expect(harness.sent == "")
        #expect(harness.client.deadline == nil)
        try harness.client.connect(STOMPConnect(host: "h"), at: .zero)
        #expect(throws: STOMPSendError.notConnected) {
            try harness.client.connect(STOMPConnect(host: "h"), at: .zero)
        }
    }

    @Test("Nothing can be sent before CONNECTED, nor after the end")
    func tooEarly() throws {
        var harness = try ClientHarness(nil)
        try harness.client.connect(STOMPConnect(host: "h"), at: .zero)
        for _ in 0..<2 {
            _ = harness.sent
            let token = STOMPAckToken(identifier: "1", subscriptionID: "1", generation: 1)
            #expect(throws: STOMPSendError.notConnected) { try harness.send() }
            #expect(throws: STOMPSendError.notConnected) { try harness.subscribe("1") }
            #expect(throws: STOMPSendError.notConnected) {
                try harness.client.send(.unsubscribe(id: "1"), at: .zero)
            }
            #expect(throws: STOMPSendError.notConnected) {
                try harness.client.send(.acknowledge(token), at: .zero)
            }
            #expect(throws: STOMPSendError.notConnected) {
                try harness.client.send(.refuse(token), at: .zero)
            }
            #expect(throws: STOMPSendError.notConnected) {
                try harness.client.send(.begin(transaction: "t"), at: .zero)
            }
            #expect(throws: STOMPSendError.notConnected) {
                try harness.client.send(.commit(transaction: "t"), at: .zero)
            }
            #expect(throws: STOMPSendError.notConnected) {
                try harness.client.send(.abort(transaction: "t"), at: .zero)
            }
            #expect(harness.sent == "")
            harness.disconnect()
        }
        #expect(harness.closure == .disconnected)
        #expect(harness.client.isFinished)
    }

    // MARK: CONNECTED

    @Test("CONNECTED opens the connection, its headers raw")
    func connected() throws {
        let harness = try answered(
            "CONNECTED\nversion:1.2\nsession:a\\cb\nserver:s/1\nheart-beat:0,20000\nx:y\n\n\0"
        )
        let connected = try #require(harness.connected)
        #expect(connected.version == .v1_2)
        #expect(connected.session == "a\\cb")
        #expect(connected.server == "s/1")
        #expect(connected.headers.first("x") == "y")
        #expect(
            connected.heartBeat == STOMPHeartBeat(outgoing: .seconds(20), incoming: .zero)
        )
        #expect(harness.client.isConnected)
        #expect(harness.client.version == .v1_2)
    }

    @Test("The connection has the version of CONNECTED: escapes and ACK follow it")
    func version() throws {
        var harness = try answered("CONNECTED\nversion:1.1\n\n\0")
        #expect(harness.told() == ["connected 1.1"])
        _ = harness.sent
        #expect(throws: STOMPSendError.encoding(.lineBreakNotAllowed("x"))) {
            try harness.client.send(["destination": "/q", "x": "\r"], body: [UInt8](), at: .zero)
        }
        try harness.subscribe("0", .client)
        harness.receive("MESSAGE\ndestination:/q\nmessage-id:7\nsubscription:0\n\nx\0")
        try harness.client.send(.acknowledge(harness.tokens[0]), at: .zero)
        #expect(harness.sent == "ACK\nmessage-id:7\nsubscription:0\n\n\0")
        harness.receive("MESSAGE\ndestination:/q\nmessage-id:7\nsubscription:0\nx:a\\rb\n\nx\0")
        #expect(harness.closure == .violation(.escapeUndefined))
    }

    @Test("CONNECTED without a version means 1.0, which has no heart-beats")
    func noVersion() throws {
        let harness = try answered("CONNECTED\nsession:1\nheart-beat:1,x\n\n\0")
        #expect(harness.connected?.version == .v1_0)
        #expect(harness.connected?.heartBeat == STOMPHeartBeat.none)
    }

    @Test("A version that was not offered is refused")
    func versionNotOffered() throws {
        for text in ["version:2.0\n", "version:1.0\n", "", "version: 1.2\n", "version:\n"] {
            let harness = try answered("CONNECTED\n\(text)\n\0", versions: [.v1_1, .v1_2])
            #expect(harness.closure == .violation(.versionNotOffered), "\(text)")
        }
    }

    @Test("ERROR instead of CONNECTED fails the connect, with message and body")
    func refused() throws {
        var harness = try answered("ERROR\nmessage:denied\\x\n\nno access\0")
        #expect(harness.told() == ["closed"])
        guard case .refused(let error) = harness.closure else {
            Issue.record("\(String(describing: harness.closure))")
            return
        }
        #expect(error.message == "denied\\x")
        #expect(error.body == Array("no access".utf8))
        #expect(harness.client.isFinished)
    }

    @Test("Any other frame before CONNECTED fails the connect")
    func otherFrame() throws {
        let message = "MESSAGE\ndestination:/a\nmessage-id:1\nsubscription:0\n\nx\0"
        #expect(
            try answered(message).closure == .violation(.frameBeforeConnected(.message))
        )
        #expect(
            try answered("RECEIPT\nreceipt-id:1\n\n\0").closure
                == .violation(.frameBeforeConnected(.receipt))
        )
        var idle = try ClientHarness(nil)
        idle.receive("CONNECTED\n\n\0")
        #expect(idle.closure == .violation(.frameBeforeConnected(.connected)))
    }

    @Test("Silence, and the end of the stream, before CONNECTED fail the connect")
    func silence() throws {
        var silent = try answered("\n")
        #expect(silent.client.deadline == WireInstant(nanoseconds: 10_000_000_000))
        silent.advance(.milliseconds(9_999))
        #expect(silent.told() == [])
        silent.advance(.milliseconds(1))
        #expect(silent.closure == .connectTimedOut)
        #expect(silent.client.deadline == nil)
        var ended = try answered("CONNECTED\nversion:1.2\n")
        ended.endOfStream()
        #expect(ended.closure == .endOfStream)
    }

    @Test("What comes after the end is ignored")
    func afterTheEnd() throws {
        var harness = try answered("ERROR\n\n\0CONNECTED\nversion:1.2\n\n\0")
        harness.receive("CONNECTED\nversion:1.2\n\n\0")
        harness.endOfStream()
        harness.disconnect()
        harness.advance(.seconds(100))
        #expect(harness.told() == ["closed"])
        #expect(harness.connected == nil)
    }

    @Test("A second CONNECTED breaks the protocol")
    func twice() throws {
        var harness = try ClientHarness(.v1_2)
        harness.receive("CONNECTED\nversion:1.2\n\n\0")
        #expect(harness.closure == .violation(.connectedTwice))
    }
}
