import MQTTWire
import Testing
import WireCore

@Suite("MQTT client: the silence that a path bears") struct KeepAliveProbeTests {
    enum Event: Sendable {
        case answered(Int64), lost(Int64)
        /// The peer closed the stream in silence.
        case ended(Int64)
    }

    @Test(
        "Each event in each state: the interval that follows",
        arguments: [
            // Nothing is known.
            (0, nil, [], 60), (0, nil, [.answered(60)], 120), (0, nil, [.answered(0)], 60),
            (0, nil, [.lost(60)], 60), (0, nil, [.lost(1)], 60), (0, nil, [.lost(0)], 60),
            (0, nil, [.lost(200)], 60),
            // A device that slept for hours.
            (60, nil, [.lost(36_000)], 120),
            // Proven alone: it doubles.
            (120, nil, [], 240), (120, nil, [.answered(100)], 240),
            (120, nil, [.answered(240)], 480),
            (120, nil, [.lost(240)], 180), (120, nil, [.lost(120)], 240),
            (120, nil, [.lost(120), .answered(120), .lost(120)], 240),
            (120, nil, [.lost(120), .lost(120)], 60), (120, nil, [.lost(100), .lost(120)], 60),
            (120, nil, [.lost(120), .answered(59), .lost(120)], 60),
            // Something that closes connections before a ping is due.
            (60, nil, [.ended(100)], 120), (60, nil, [.ended(100), .ended(100)], 80),
            (60, nil, [.ended(100), .answered(60), .ended(100)], 120),
            (60, nil, [.ended(100), .answered(59), .ended(100)], 80),
            (60, nil, [.ended(59), .ended(59)], 120), (120, nil, [.ended(60), .ended(60)], 60),
            (120, 240, [.ended(180), .ended(170)], 145),
            (240, nil, [.lost(200), .lost(240)], 60),
            // Broken, too: it halves the distance, down to the step.
            (120, 240, [], 180), (120, 240, [.answered(180)], 210), (120, 240, [.lost(180)], 150),
            (120, 240, [.answered(180), .lost(210)], 195),
            (120, 240, [.answered(180), .lost(210), .lost(195)], 180),
            (120, 240, [.lost(300)], 180), (180, 195, [], 180), (180, 196, [], 188),
            // A broken silence that is borne after all.
            (120, 240, [.answered(240)], 480), (120, 240, [.answered(300)], 600),
            // A path that bears less than before.
            (180, 195, [.lost(180)], 180), (180, 195, [.lost(180), .lost(180)], 60),
            (180, 195, [.lost(180), .answered(180), .lost(180)], 180),
            // Never below the lowest.
            (0, 60, [], 60), (0, 60, [.lost(60), .lost(60)], 60), (10, 20, [], 60),
        ] as [(Int64, Int64?, [Event], Int64)]
    )
    func table(proven: Int64, broken: Int64?, events: [Event], next: Int64) {
        var knowledge = MQTTKeepAliveProbe.Knowledge()
        (knowledge.proven, knowledge.broken) = (proven, broken)
        for event in events {
            // Each event is one of another connection.
            var probe = MQTTKeepAliveProbe(lowest: 60, step: 15, knowledge: knowledge)
            switch event {
            case .answered(let seconds): probe.noteAnswer(after: .seconds(seconds))
            case .lost(let seconds): probe.noteLoss(after: .seconds(seconds), wasAsked: true)
            case .ended(let seconds): probe.noteLoss(after: .seconds(seconds), wasAsked: false)
            }
            knowledge = probe.knowledge
        }
        let probe = MQTTKeepAliveProbe(lowest: 60, step: 15, knowledge: knowledge)
        #expect(probe.interval(within: .seconds(65_535)) == .seconds(next))
    }

    @Test(
        "What the server was told is the longest interval; zero turns pings off",
        arguments: [(0, 0), (30, 30), (60, 60), (100, 100), (1_000, 240)] as [(Int64, Int64)]
    )
    func announced(seconds: Int64, interval: Int64) {
        var knowledge = MQTTKeepAliveProbe.Knowledge()
        knowledge.proven = 120
        let probe = MQTTKeepAliveProbe(lowest: 60, step: 15, knowledge: knowledge)
        #expect(probe.interval(within: .seconds(seconds)) == .seconds(interval))
    }

    @Test("Values that an app has stored are bounded")
    func stored() {
        func knowledge(_ seconds: Int64, _ count: Int) -> MQTTKeepAliveProbe.Knowledge {
            var knowledge = MQTTKeepAliveProbe.Knowledge()
            (knowledge.proven, knowledge.broken) = (seconds, seconds)
            (knowledge.strikes, knowledge.answers, knowledge.patience) = (count, count, count)
            return knowledge
        }
        let all = Duration.seconds(65_535)
        let most = knowledge(.max, .max)
        let longest = MQTTKeepAliveProbe(lowest: .max, step: .max, knowledge: most)
        #expect(longest.interval(within: all) == all)
        #expect(longest.knowledge.patience == MQTTKeepAliveProbe.mostPatience)
        let least = knowledge(.min, .min)
        var probe = MQTTKeepAliveProbe(lowest: .min, step: .min, knowledge: least)
        #expect(probe.interval(within: all) == .seconds(1))
        #expect(probe.knowledge == .init())
        for wasAsked in [true, false, false] {
            probe.noteAnswer(after: .seconds(Int64.max))
            probe.noteLoss(after: .seconds(Int64.max), wasAsked: wasAsked)
            #expect(probe.interval(within: all) <= all)
        }
    }

    @Test("A broken silence is tried again after 64 answers, and after twice as many each time")
    func again() {
        var knowledge = MQTTKeepAliveProbe.Knowledge()
        (knowledge.proven, knowledge.broken) = (180, 195)
        var probe = MQTTKeepAliveProbe(lowest: 60, step: 15, knowledge: knowledge)
        let all = Duration.seconds(65_535)
        for count in [64, 128, 256, 512, 1_024, 2_048, 4_096, 4_096] {
            for _ in 0..<count {
                #expect(probe.interval(within: all) == .seconds(180))
                // One that a shorter keep alive has caused does not count.
                probe.noteAnswer(after: .seconds(120))
                probe.noteAnswer(after: .seconds(180))
            }
            #expect(probe.interval(within: all) == .seconds(195), "after \(count)")
            probe.noteLoss(after: .seconds(195), wasAsked: true)
        }
        for _ in 0..<4_096 { probe.noteAnswer(after: .seconds(180)) }
        // The path bears more than before, as after a loss with another cause.
        probe.noteAnswer(after: .seconds(195))
        #expect(probe.interval(within: all) == .seconds(390))
        #expect(probe.knowledge.patience == MQTTKeepAliveProbe.leastPatience)
    }

    /// A connection with a keep alive of 1,000 seconds.
    private func harness(_ probe: MQTTKeepAliveProbe) throws -> ClientHarness {
        let connect = MQTTConnect(version: .v3_1_1, clientIdentifier: "c", keepAlive: 1_000)
        return try ClientHarness(.v3_1_1, connect: connect) { $0.keepAliveProbe = probe }
    }

    @Test("The time of an answer on its way does not shorten what it proves")
    func slowAnswers() throws {
        var harness = try harness(MQTTKeepAliveProbe(lowest: 60, step: 15))
        for interval in [60, 120, 240, 480, 960] as [Int64] {
            // It counts from the PINGREQ before, 3 seconds ago.
            harness.advance(.seconds(interval - (interval == 60 ? 1 : 4)))
            #expect(harness.sent == [])
            harness.advance(.seconds(1))
            #expect(harness.sent == [.pingreq])
            harness.advance(.seconds(3))
            harness.receive(.pingresp)
            #expect(harness.client.keepAliveProbe?.knowledge.proven == interval)
        }
        #expect(harness.told() == [])
    }

    @Test("Traffic in one direction is no silence")
    func oneDirection() throws {
        var harness = try harness(MQTTKeepAliveProbe(lowest: 60, step: 15))
        harness.advance(.seconds(50))
        harness.receive(.publish(MQTTPublish(topic: "t", qos: .atMostOnce)))
        harness.advance(.seconds(10))
        #expect(harness.sent == [.pingreq])
        harness.receive(.pingresp)
        #expect(harness.client.keepAliveProbe?.knowledge.proven == 10)
    }

    @Test(
        "Only an end that silence explains teaches: no answer, or the peer's end in silence, twice",
        arguments: [
            ("no answer", 80, 0), ("end", nil, 1), ("loss", nil, 0), ("DISCONNECT", nil, 0),
            ("loss after ping", 80, 0),
        ] as [(String, Int64?, Int)]
    )
    func ends(how: String, broken: Int64?, strikes: Int) throws {
        var known = MQTTKeepAliveProbe.Knowledge()
        known.proven = 40
        let probe = MQTTKeepAliveProbe(lowest: 30, step: 5, knowledge: known)
        var harness = try harness(probe)
        harness.advance(.seconds(70))
        switch how {
        case "end": harness.client.receiveEndOfStream(at: harness.now)
        case "loss": harness.client.receiveLoss(at: harness.now)
        case "loss after ping":
            harness.advance(.seconds(10))
            harness.client.receiveLoss(at: harness.now)
        case "DISCONNECT": harness.client.disconnect(MQTTDisconnect(), at: harness.now)
        default:
            harness.advance(.seconds(10))
            harness.advance(.seconds(20))
        }
        #expect(harness.client.isFinished)
        let knowledge = harness.client.keepAliveProbe?.knowledge
        #expect(knowledge?.broken == broken)
        #expect(knowledge?.strikes == strikes)
        #expect(knowledge?.proven == 40)
    }

    /// A NAT that forgets a connection after some time of silence.
    private struct Run {
        var probe = MQTTKeepAliveProbe(lowest: 30, step: 15)
        var losses = 0
        let announced = Duration.seconds(1_800)

        var interval: Duration { probe.interval(within: announced) }

        mutating func ping(through limit: Int64) {
            let silence = interval
            if silence > .seconds(limit) {
                losses += 1
                probe.noteLoss(after: silence, wasAsked: true)
            } else {
                probe.noteAnswer(after: silence)
            }
        }
    }

    @Test("A simulated NAT: the interval comes within a step, and few further connections are lost")
    func converges() {
        var seed: UInt64 = 86
        for _ in 0..<2_000 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let limit = 30 + Int64((seed >> 33) % 2_000)
            var run = Run()
            for _ in 0..<40 { run.ping(through: limit) }
            // One loss at the end of the doubling, and one for each halving of at most 1,024 seconds.
            #expect(run.losses <= 8, "limit \(limit)")
            let (losses, interval) = (run.losses, run.interval)
            let reachable = min(Duration.seconds(limit), run.announced)
            #expect(interval <= reachable && reachable - interval <= .seconds(15), "limit \(limit)")
            // The broken silence is tried again after 64, 128, 256 and 512 answers, and no other.
            for _ in 0..<1_000 { run.ping(through: limit) }
            #expect(run.losses <= losses + 4 && run.interval == interval, "limit \(limit)")
        }
    }

    @Test(
        "A NAT that forgets earlier than before: the interval comes within a step of the new limit"
    )
    func shrinks() {
        var seed: UInt64 = 93
        for _ in 0..<2_000 {
            func random(_ count: UInt64) -> Int64 {
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int64((seed >> 33) % count)
            }
            let first = 60 + random(1_500)
            let second = 30 + random(UInt64(first - 30))
            var run = Run()
            for _ in 0..<40 { run.ping(through: first) }
            run.losses = 0
            for _ in 0..<60 { run.ping(through: second) }
            #expect(run.losses <= 12, "from \(first) to \(second)")
            #expect(run.interval <= .seconds(second), "from \(first) to \(second)")
            #expect(.seconds(second) - run.interval <= .seconds(15), "from \(first) to \(second)")
        }
    }
}
