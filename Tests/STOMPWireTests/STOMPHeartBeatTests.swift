import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP: heart-beats") struct STOMPHeartBeatTests {
    /// Makes a client that offers these intervals and receives the server's intervals.
    private func harness(
        _ outgoing: Duration,
        _ incoming: Duration,
        server: String?
    ) throws -> ClientHarness {
        let request = STOMPConnect(
            host: "h",
            heartBeat: STOMPHeartBeat(outgoing: outgoing, incoming: incoming)
        )
        let headers = server.map { "heart-beat:\($0)\n" } ?? ""
        return try ClientHarness(.v1_2, request: request, headers: headers)
    }

    @Test("The header is two non-negative integers with a comma, in milliseconds")
    func text() {
        let rows: [(Duration, Duration, String)] = [
            (.seconds(10), .seconds(10), "10000,10000"), (.zero, .milliseconds(1), "0,1"),
            (.microseconds(1), .microseconds(1_500), "1,2"), (.seconds(-1), .zero, "0,0"),
            (.seconds(1 << 40), .zero, "2147483647,0"),
        ]
        for (outgoing, incoming, text) in rows {
            #expect(STOMPHeartBeat(outgoing: outgoing, incoming: incoming).text == text)
        }
    }

    @Test("Nothing else is read as one")
    func parse() {
        #expect(STOMPHeartBeat(text: "0,0") == STOMPHeartBeat.none)
        #expect(
            STOMPHeartBeat(text: "0500,20")
                == STOMPHeartBeat(outgoing: .milliseconds(500), incoming: .milliseconds(20))
        )
        #expect(
            STOMPHeartBeat(text: "99999999999999999999,1")?.outgoing == .milliseconds(2_147_483_647)
        )
        for text in ["a,b", "", ",", "1", "1,", ",1", "1,2,3", "-1,0", "+1,0", "1, 0", "1.5,0"] {
            #expect(STOMPHeartBeat(text: text) == nil, "\(text)")
        }
    }

    @Test("Each way the longer interval holds, and none if either end says zero")
    func agreement() {
        func agreed(_ one: String, _ other: String) -> String? {
            guard let one = STOMPHeartBeat(text: one), let other = STOMPHeartBeat(text: other)
            else { return nil }
            return one.agreed(with: other).text
        }
        #expect(agreed("200,0", "0,500") == "500,0")
        #expect(agreed("500,0", "0,200") == "500,0")
        #expect(agreed("0,500", "500,0") == "0,500")
        #expect(agreed("0,0", "500,500") == "0,0")
        #expect(agreed("500,500", "0,0") == "0,0")
        #expect(agreed("1000,2000", "3000,500") == "1000,3000")
    }

    @Test("A malformed heart-beat fails the connect")
    func malformed() throws {
        for text in ["a,b", "1", "-1,0"] {
            #expect(
                try harness(.zero, .zero, server: text).closure == .violation(.heartBeatInvalid)
            )
        }
    }

    @Test("A missing heart-beat means none either way")
    func missing() throws {
        var harness = try harness(.milliseconds(200), .milliseconds(500), server: nil)
        #expect(harness.connected?.heartBeat == STOMPHeartBeat.none)
        #expect(harness.client.deadline == nil)
        harness.advance(.seconds(1_000))
        #expect(harness.sent == "")
        #expect(harness.told() == [])
    }

    @Test("Something is sent in every interval: a line end when nothing else was")
    func sending() throws {
        var harness = try harness(.milliseconds(200), .zero, server: "0,500")
        #expect(harness.client.deadline == WireInstant(nanoseconds: 375_000_000))
        harness.advance(.milliseconds(374))
        #expect(harness.sent == "")
        harness.advance(.milliseconds(1))
        #expect(harness.sent == "\n")
        harness.advance(.milliseconds(374))
        #expect(harness.sent == "")
        // A frame counts as a heart-beat and starts the interval again.
        try harness.send()
        #expect(harness.sent != "")
        #expect(harness.client.deadline == WireInstant(nanoseconds: 1_124_000_000))
        harness.advance(.milliseconds(375))
        #expect(harness.sent == "\n")
        #expect(harness.told() == [])
    }

    @Test("Asked at its deadlines, a client leaves no gap above the interval")
    func gaps() throws {
        var harness = try harness(.milliseconds(1), .zero, server: "0,500")
        var last = harness.now
        for _ in 0..<100 {
            let deadline = try #require(harness.client.deadline)
            harness.advance(harness.now.duration(to: deadline))
            #expect(harness.sent == "\n")
            #expect(last.duration(to: harness.now) < .milliseconds(500))
            last = harness.now
        }
    }

    @Test("A client that can give none gives none")
    func noneToGive() throws {
        var harness = try harness(.zero, .zero, server: "0,500")
        #expect(harness.client.deadline == nil)
        harness.advance(.seconds(10))
        #expect(harness.sent == "")
    }

    @Test("Silence for twice the interval and a margin ends the connection")
    func receiving() throws {
        var harness = try harness(.zero, .milliseconds(500), server: "500,0")
        #expect(harness.client.deadline == WireInstant(nanoseconds: 1_250_000_000))
        harness.advance(.milliseconds(1_249))
        #expect(harness.told() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.closure == .heartBeatMissed)
        #expect(harness.sent == "")
        #expect(harness.client.isFinished)
    }

    @Test("A driver that has stopped reading hears nothing, and that is no silence of the server's")
    func readingHeld() throws {
        var harness = try harness(.zero, .milliseconds(500), server: "500,0")
        harness.client.holdReading(true, at: harness.now)
        #expect(harness.client.deadline == nil)
        harness.advance(.seconds(60))
        #expect(harness.told() == [])
        harness.client.holdReading(false, at: harness.now)
        harness.advance(.milliseconds(1_249))
        #expect(harness.told() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.closure == .heartBeatMissed)
    }

    @Test("Any byte is a sign of life, also one of a frame that is not complete")
    func life() throws {
        var harness = try harness(.zero, .milliseconds(500), server: "500,0")
        for piece in ["\n", "\r", "\n", "MESS", "AGE\n", "x", ":", "\\", "c\n", "\n", "b"] {
            harness.advance(.milliseconds(1_249))
            harness.receive(piece)
        }
        #expect(harness.told() == [])
        #expect(harness.client.isConnected)
        harness.advance(.milliseconds(1_250))
        #expect(harness.closure == .heartBeatMissed)
    }

    @Test("No heart-beat follows DISCONNECT, and none is missed")
    func disconnecting() throws {
        var harness = try harness(.milliseconds(100), .milliseconds(100), server: "100,100")
        harness.disconnect()
        #expect(harness.sent == "DISCONNECT\nreceipt:1\n\n\0")
        #expect(harness.client.deadline == WireInstant(nanoseconds: 5_000_000_000))
        harness.advance(.milliseconds(4_999))
        #expect(harness.sent == "")
        #expect(harness.told() == [])
    }

    @Test("A heart-beat, a receipt and a message are progress; a line end after CONNECTED is none")
    func progress() throws {
        var beating = try harness(.zero, .milliseconds(500), server: "500,0")
        beating.receive("\n")
        #expect(!beating.client.hasProgress)
        beating.advance(.milliseconds(500))
        beating.receive("\n")
        #expect(beating.client.hasProgress)

        var receiving = try harness(.zero, .zero, server: nil)
        try receiving.send(1)
        #expect(!receiving.client.hasProgress)
        receiving.receive("RECEIPT\nreceipt-id:1\n\n\0")
        #expect(receiving.client.hasProgress)

        var refused = try harness(.zero, .zero, server: nil)
        refused.receive("ERROR\nmessage:no\n\n\0")
        #expect(!refused.client.hasProgress)
    }
}
