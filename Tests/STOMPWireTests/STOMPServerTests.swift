import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP server") struct STOMPServerTests {
    @Test("The highest common version is agreed; a client that offers none speaks 1.0")
    func versions() {
        let rows: [(String, STOMPVersion)] = [
            ("accept-version:1.0,1.1,1.2\n", .v1_2), ("accept-version:1.1,2.0\n", .v1_1),
            ("accept-version:1.0\n", .v1_0), ("", .v1_0),
        ]
        for (header, version) in rows {
            var harness = ServerHarness(nil)
            harness.receive("CONNECT\n\(header)host:h\nlogin:u\npasscode:p\n\n\0")
            #expect(harness.request?.version == version)
            #expect(harness.request?.host == "h")
            #expect(harness.request?.login == "u")
            #expect(harness.request?.passcode == "p")
            harness.server.accept(server: "s", session: "1", headers: ["x": "y"], at: .zero)
            let told = version > .v1_0 ? "version:\(version.text)\nheart-beat:0,0\n" : ""
            #expect(harness.sent == "CONNECTED\n\(told)server:s\nsession:1\nx:y\n\n\0")
            #expect(harness.server.version == version)
        }
    }

    @Test("Without a common version the client is told which there are")
    func noCommonVersion() {
        var harness = ServerHarness(nil) { $0.versions = [.v1_2, .v1_1] }
        harness.receive("STOMP\naccept-version:1.0,2.1\nhost:h\n\n\0")
        #expect(
            harness.sent
                == "ERROR\ncontent-length:39\nmessage:no protocol version in common\n"
                + "version:1.1,1.2\ncontent-type:text/plain\n\n"
                + "Supported protocol versions are 1.1 1.2\0"
        )
        #expect(harness.closure == .violation(.versionNotOffered))
        #expect(harness.server.isFinished)
    }

    @Test("A client can be refused")
    func refuse() {
        var harness = ServerHarness(nil)
        harness.receive("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
        harness.server.error(message: "denied", body: Array("no access".utf8))
        #expect(harness.sent == "ERROR\ncontent-length:9\nmessage:denied\n\nno access\0")
        #expect(harness.told() == ["connect 1.2", "closed"])
        #expect(harness.closure == .error)
    }

    @Test("Each frame is told with its receipt id, in each version's way")
    func events() {
        var harness = ServerHarness(.v1_2)
        harness.receive(
            "SUBSCRIBE\nid:0\ndestination:/q\nack:client-individual\nreceipt:1\n\n\0"
                + "BEGIN\ntransaction:t\n\n\0"
                + "SEND\ndestination:/q\ntransaction:t\nreceipt:2\n\nhello\0"
                + "ACK\nid:a\ntransaction:t\n\n\0" + "COMMIT\ntransaction:t\nreceipt:3\n\n\0"
                + "NACK\nid:b\n\n\0" + "BEGIN\ntransaction:t\n\n\0" + "ABORT\ntransaction:t\n\n\0"
                + "UNSUBSCRIBE\nid:0\n\n\0"
        )
        #expect(
            harness.told() == [
                "subscribe 0 /q clientIndividual 1", "begin t -", "send /q hello t 2",
                "ack a - t -", "commit t 3", "nack b - - -", "begin t -", "abort t -",
                "unsubscribe 0 -",
            ]
        )
        var middle = ServerHarness(.v1_1)
        middle.receive("NACK\nmessage-id:7\nsubscription:0\nreceipt:1\n\n\0")
        #expect(middle.told() == ["nack 7 0 - 1"])
        var old = ServerHarness(.v1_0)
        old.receive("SUBSCRIBE\ndestination:/q\n\n\0ACK\nmessage-id:7\n\n\0")
        old.receive("UNSUBSCRIBE\ndestination:/q\n\n\0")
        #expect(old.told() == ["subscribe /q /q auto -", "ack 7 - - -", "unsubscribe /q -"])
    }

    @Test("DISCONNECT is answered after the receipts that are owed")
    func disconnect() {
        var harness = ServerHarness(.v1_2)
        harness.receive(
            "SEND\ndestination:/q\nreceipt:1\n\n\0SEND\ndestination:/q\nreceipt:1\n\n\0"
                + "DISCONNECT\nreceipt:2\n\n\0SEND\ndestination:/q\n\n\0"
        )
        #expect(harness.told() == ["send /q  - 1", "send /q  - 1", "disconnect 2"])
        harness.server.receipt("1", at: .zero)
        #expect(!harness.server.isFinished)
        harness.server.receipt("1", at: .zero)
        #expect(
            harness.sent
                == "RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0"
        )
        #expect(harness.told() == ["closed"])
        #expect(harness.closure == .disconnected)
    }

    @Test("A broker that owes receipts for too long, or a client that goes, ends it, too")
    func disconnectLate() {
        var late = ServerHarness(.v1_2)
        late.receive("SEND\ndestination:/q\nreceipt:1\n\n\0DISCONNECT\n\n\0")
        late.advance(.seconds(5))
        #expect(late.closure == .disconnected)
        var gone = ServerHarness(.v1_2)
        gone.receive("SEND\ndestination:/q\nreceipt:1\n\n\0DISCONNECT\n\n\0")
        gone.server.receiveEndOfStream(at: .zero)
        _ = gone.told()
        #expect(gone.closure == .disconnected)
        var plain = ServerHarness(.v1_2)
        plain.receive("DISCONNECT\n\n\0")
        #expect(plain.sent == "")
        #expect(plain.told() == ["disconnect -", "closed"])
    }

    @Test("A violation of a frame that asked for a receipt names it")
    func violation() {
        var harness = ServerHarness(.v1_2)
        harness.receive("UNSUBSCRIBE\nid:0\nreceipt:a\\cb\n\n\0")
        #expect(harness.sent == "ERROR\nmessage:no such subscription\nreceipt-id:a\\cb\n\n\0")
    }

    @Test("Messages, receipts and errors go out only while the connection is open")
    func notOpen() throws {
        var harness = ServerHarness(nil)
        harness.server.receipt("1", at: .zero)
        harness.server.accept(at: .zero)
        #expect(throws: STOMPSendError.notConnected) {
            try harness.server.message([:], body: [UInt8](), at: .zero)
        }
        #expect(harness.sent == "")
        var open = ServerHarness(.v1_2)
        #expect(throws: STOMPSendError.encoding(.nullCharacter("x"))) {
            try open.server.message(["x": "\0"], body: [UInt8](), at: .zero)
        }
        try open.server.message(["destination": "/q"], body: Array("a".utf8), at: .zero)
        open.server.error(message: "over", receiptID: "7", headers: ["x": "y"])
        open.server.error(message: "again")
        #expect(
            open.sent
                == "MESSAGE\ncontent-length:1\ndestination:/q\n\na\0"
                + "ERROR\nmessage:over\nreceipt-id:7\nx:y\n\n\0"
        )
        #expect(open.told() == ["closed"])
    }

    @Test("A server beats and listens as agreed")
    func heartBeats() {
        var harness = ServerHarness(.v1_2, heartBeat: "500,2000")
        #expect(harness.server.deadline == WireInstant(nanoseconds: 1_500_000_000))
        harness.advance(.milliseconds(1_500))
        #expect(harness.sent == "\n")
        harness.receive("\n")
        harness.advance(.milliseconds(1_500))
        #expect(harness.sent == "\n")
        harness.advance(.milliseconds(1_000))
        #expect(harness.sent == "ERROR\nmessage:no heart-beat in time\n\n\0")
        #expect(harness.closure == .timedOut)
        var old = ServerHarness(.v1_0, heartBeat: "500,500")
        #expect(old.server.deadline == nil)
        old.advance(.seconds(100))
        #expect(old.told() == [])
    }

    @Test("CONNECT must come in ten seconds; a client may leave before that")
    func waiting() {
        var silent = ServerHarness(nil)
        silent.advance(.seconds(10))
        #expect(silent.closure == .timedOut)
        #expect(silent.server.deadline == nil)
        var gone = ServerHarness(nil)
        gone.server.receiveEndOfStream(at: .zero)
        #expect(gone.told() == ["closed"])
        #expect(gone.closure == .endOfStream)
    }

    @Test("What comes before the answer to CONNECT waits for it, in the version agreed")
    func pipelined() {
        var harness = ServerHarness(nil) { $0.isTracing = true }
        harness.receive(
            "CONNECT\naccept-version:1.1\nhost:h\n\n\0SEND\ndestination:a\\cb\n\nx\0"
        )
        #expect(
            harness.told() == [
                "< CONNECT accept-version=1.1, 36", "connect 1.1",
                "< SEND destination=a:b (1 bytes), 25",
            ]
        )
        harness.server.accept(at: .zero)
        #expect(
            harness.told() == ["> CONNECTED version=1.1 heart-beat=0,0, 39", "send a:b x - -"]
        )
    }

    @Test("A DISCONNECT that came early is answered, and what came after it is ignored")
    func pipelinedDisconnect() {
        var harness = ServerHarness(nil)
        harness.receive(
            "CONNECT\naccept-version:1.2\nhost:h\n\n\0SEND\ndestination:/q\nreceipt:1\n\n\0"
                + "DISCONNECT\nreceipt:2\n\n\0SEND\ndestination:/q\n\n\0"
        )
        harness.server.accept(at: .zero)
        #expect(harness.told() == ["connect 1.2", "send /q  - 1", "disconnect 2"])
        _ = harness.sent
        harness.server.receipt("1", at: .zero)
        #expect(harness.sent == "RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0")
        #expect(harness.closure == nil)
        #expect(harness.told() == ["closed"])
        #expect(harness.closure == .disconnected)
    }
}
