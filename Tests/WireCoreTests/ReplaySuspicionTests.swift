import Testing
import WireCore

/// The rule about items that a peer answers by ending the connection, as a table.
@Suite("An item that a peer answers by ending the connection") struct ReplaySuspicionTests {
    private typealias Record = ReplaySuspicion.Record

    private static func time(_ seconds: Int) -> WireInstant {
        WireInstant.zero.advanced(by: .seconds(seconds))
    }

    /// A connection on which item 7 is the oldest, and was written at second 1.
    private static func written(_ record: ReplaySuspicion.Record) -> ReplaySuspicion {
        var suspicion = ReplaySuspicion()
        suspicion.noteWritten(7, record, isOldest: true)
        suspicion.noteGiven(isRest: false, at: time(1))
        return suspicion
    }

    @Test(
        "The record of the suspect at the end of a connection",
        arguments: [
            (.clear, .closed, .recorded(7, .suspected(ends: 1))),
            (.suspected(ends: 1), .closed, .recorded(7, .suspected(ends: 2))),
            (.suspected(ends: 2), .closed, .recorded(7, .isolated(ends: 3))),
            (.isolated(ends: 3), .closed, .proven(7, ends: 4)),
            (.isolated(ends: 1), .closed, .proven(7, ends: 2)),
            (.isolated(ends: .max), .closed, .proven(7, ends: .max)),
            (.clear, .named, .proven(7, ends: 1)),
            (.suspected(ends: 2), .named, .proven(7, ends: 3)),
            (.isolated(ends: 1), .named, .proven(7, ends: 2)),
            (.clear, .refused, .recorded(7, .isolated(ends: 1))),
            (.suspected(ends: 2), .refused, .recorded(7, .isolated(ends: 3))),
            (.isolated(ends: 1), .refused, .proven(7, ends: 2)),
            (.clear, .unrelated, .none), (.suspected(ends: 2), .unrelated, .none),
            (.isolated(ends: 3), .unrelated, .none),
        ] as [(ReplaySuspicion.Record, ReplaySuspicion.End, ReplaySuspicion.Verdict)]
    )
    func alone(
        _ record: ReplaySuspicion.Record,
        _ end: ReplaySuspicion.End,
        _ verdict: ReplaySuspicion.Verdict
    ) {
        var suspicion = Self.written(record)
        #expect(suspicion.noteEnd(end, at: Self.time(11)) == verdict)
        // The next connection begins without a suspect.
        #expect(suspicion == ReplaySuspicion())
    }

    @Test(
        "In company, a reason that names an item leads to its isolation",
        arguments: [
            (.clear, .closed, .recorded(7, .suspected(ends: 1))),
            (.clear, .named, .recorded(7, .isolated(ends: 1))),
            (.suspected(ends: 1), .named, .recorded(7, .isolated(ends: 2))),
            (.suspected(ends: 2), .closed, .recorded(7, .isolated(ends: 3))),
            // What is not sent again is written beside an isolated item, too.
            (.isolated(ends: 3), .closed, .proven(7, ends: 4)),
            (.isolated(ends: 1), .named, .proven(7, ends: 2)),
            (.clear, .refused, .recorded(7, .isolated(ends: 1))),
            (.isolated(ends: 1), .refused, .proven(7, ends: 2)),
            (.clear, .unrelated, .none),
        ] as [(ReplaySuspicion.Record, ReplaySuspicion.End, ReplaySuspicion.Verdict)]
    )
    func inCompany(
        _ record: ReplaySuspicion.Record,
        _ end: ReplaySuspicion.End,
        _ verdict: ReplaySuspicion.Verdict
    ) {
        var before = ReplaySuspicion()
        before.noteOther()
        before.noteWritten(7, record, isOldest: true)
        before.noteGiven(isRest: false, at: Self.time(1))
        #expect(before.noteEnd(end, at: Self.time(1)) == verdict)
        for company in 0..<2 {
            var suspicion = Self.written(record)
            if company == 0 {
                suspicion.noteOther()
            } else {
                suspicion.noteWritten(8, .clear, isOldest: false)
            }
            #expect(suspicion.noteEnd(end, at: Self.time(1)) == verdict)
        }
    }

    @Test(
        "Later than ten seconds after the last byte, the row is broken",
        arguments: [
            (.clear, .closed, .none), (.clear, .named, .unclear), (.clear, .unrelated, .none),
            (.clear, .refused, .none),
            (.suspected(ends: 2), .closed, .recorded(7, .clear)),
            (.suspected(ends: 2), .named, .recorded(7, .clear)),
            (.suspected(ends: 2), .unrelated, .recorded(7, .clear)),
            (.isolated(ends: 3), .closed, .recorded(7, .clear)),
        ] as [(ReplaySuspicion.Record, ReplaySuspicion.End, ReplaySuspicion.Verdict)]
    )
    func late(
        _ record: ReplaySuspicion.Record,
        _ end: ReplaySuspicion.End,
        _ verdict: ReplaySuspicion.Verdict
    ) {
        var suspicion = Self.written(record)
        #expect(suspicion.noteEnd(end, at: Self.time(12)) == verdict)
    }

    @Test("The time is that of the last bytes of the item, and not of what follows it")
    func lastByte() {
        var suspicion = Self.written(.clear)
        suspicion.noteGiven(isRest: true, at: Self.time(5))
        var other = suspicion
        #expect(suspicion.noteEnd(.closed, at: Self.time(15)) == .recorded(7, .suspected(ends: 1)))
        other.noteGiven(isRest: false, at: Self.time(9))
        other.noteGiven(isRest: true, at: Self.time(10))
        #expect(other.noteEnd(.closed, at: Self.time(16)) == .none)
    }

    @Test("Without a byte of the item on the wire, no end is suspicious")
    func queued() {
        var suspicion = ReplaySuspicion()
        suspicion.noteWritten(7, .isolated(ends: 3), isOldest: true)
        // Bytes of an earlier buffer.
        suspicion.noteGiven(isRest: true, at: Self.time(1))
        #expect(suspicion.isIsolating)
        #expect(suspicion.deadline == nil)
        var other = suspicion
        #expect(suspicion.noteEnd(.closed, at: Self.time(1)) == .none)
        #expect(other.noteEnd(.named, at: Self.time(1)) == .unclear)
    }

    @Test("An acknowledgement ends the suspicion; the items behind it were written before")
    func acknowledged() {
        var suspicion = Self.written(.clear)
        suspicion.noteWritten(8, .clear, isOldest: false)
        suspicion.noteAcknowledged(hasItems: true)
        var other = suspicion
        #expect(suspicion.noteEnd(.closed, at: Self.time(1)) == .none)
        #expect(other.noteEnd(.named, at: Self.time(1)) == .unclear)

        var last = Self.written(.clear)
        last.noteAcknowledged(hasItems: false)
        #expect(last == ReplaySuspicion())
        #expect(last.noteEnd(.named, at: Self.time(1)) == .none)
    }

    @Test(
        "An acknowledgement says nothing of what is not sent again, so a reason proves nothing after it"
    )
    func othersBefore() {
        var suspicion = Self.written(.clear)
        suspicion.noteOther()
        suspicion.noteAcknowledged(hasItems: false)
        suspicion.noteWritten(8, .clear, isOldest: true)
        suspicion.noteGiven(isRest: false, at: Self.time(2))
        #expect(suspicion.noteEnd(.named, at: Self.time(3)) == .recorded(8, .isolated(ends: 1)))
    }

    @Test("What is not sent again is never a suspect")
    func others() {
        var suspicion = ReplaySuspicion()
        suspicion.noteOther()
        suspicion.noteGiven(isRest: false, at: Self.time(1))
        #expect(suspicion.noteEnd(.named, at: Self.time(1)) == .none)
    }

    @Test("An item that is sent alone is so until an acknowledgement, or for ten seconds")
    func isolation() {
        var suspicion = Self.written(.isolated(ends: 3))
        #expect(suspicion.isIsolating)
        #expect(suspicion.deadline == Self.time(11))
        #expect(suspicion.endIsolation(at: Self.time(10)) == nil)
        var acknowledged = suspicion
        #expect(suspicion.endIsolation(at: Self.time(11)) == 7)
        #expect(!suspicion.isIsolating && suspicion.deadline == nil)
        #expect(suspicion.noteEnd(.closed, at: Self.time(11)) == .none)

        acknowledged.noteAcknowledged(hasItems: false)
        #expect(!acknowledged.isIsolating && acknowledged.deadline == nil)
        #expect(acknowledged.endIsolation(at: Self.time(99)) == nil)

        let suspected = Self.written(.suspected(ends: 2))
        #expect(!suspected.isIsolating && suspected.deadline == nil)
    }

    @Test(
        "A stored number of ends",
        arguments: [
            (-1, .clear), (0, .clear), (1, .suspected(ends: 1)), (2, .suspected(ends: 2)),
            (3, .isolated(ends: 3)), (.max, .isolated(ends: .max)),
        ] as [(Int, ReplaySuspicion.Record)]
    )
    func stored(_ ends: Int, _ record: ReplaySuspicion.Record) {
        #expect(Record(ends: ends) == record)
        #expect(Int(record.ends) == max(0, min(ends, Int(UInt16.max))))
    }
}
