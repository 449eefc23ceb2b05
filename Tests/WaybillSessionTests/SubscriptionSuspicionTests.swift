import Testing
import WaybillSession
import WireCore

/// The table of subscriptions that a peer answers by ending the connection.
@Suite("A subscription that a peer answers by ending the connection")
struct SubscriptionSuspicionTests {
    /// One connection: what was sent alone, what was confirmed, and its end.
    private func connect(
        _ suspicion: inout SubscriptionSuspicion,
        sent: String? = nil,
        confirmed: [String] = [],
        _ end: ReplaySuspicion.End = .closed
    ) -> SubscriptionSuspicion.Verdict {
        _ = suspicion.begin(["a", "b"]) { $0 }
        if let sent { suspicion.noteSent(sent) }
        for one in confirmed { suspicion.noteAnswered(one) }
        return suspicion.noteEnd(end)
    }

    private func alone() -> SubscriptionSuspicion {
        var suspicion = SubscriptionSuspicion()
        for _ in 0..<3 { _ = connect(&suspicion) }
        return suspicion
    }

    @Test("Three suspicious ends lead to one subscription at a time")
    func counted() {
        var suspicion = SubscriptionSuspicion()
        #expect(connect(&suspicion) == .counted && suspicion.state == .counted(ends: 1))
        #expect(connect(&suspicion, confirmed: ["a"]) == .counted)
        #expect(connect(&suspicion, .unrelated) == .none)
        #expect(suspicion.state == .counted(ends: 2) && !suspicion.isAlone)
        #expect(connect(&suspicion) == .counted && suspicion.isAlone)
    }

    @Test("All confirmed: the row is broken, and a later end says nothing")
    func confirmed() {
        for var suspicion in [SubscriptionSuspicion(), alone()] {
            #expect(connect(&suspicion, confirmed: ["b", "a"]) == .none)
            #expect(suspicion == SubscriptionSuspicion())
        }
        var none = alone()
        #expect(none.begin([String]()) { $0 } == [] && none == SubscriptionSuspicion())
    }

    @Test("Alone, the same one twice is proven, and sent last after the first time")
    func proven() {
        var suspicion = alone()
        #expect(connect(&suspicion, sent: "a") == .counted)
        #expect(suspicion.begin(["a", "b"]) { $0 } == ["b", "a"])
        #expect(connect(&suspicion, sent: "b") == .counted)
        #expect(connect(&suspicion, sent: "b") == .proven("b"))
        #expect(suspicion.state == .alone(suspect: nil))
        // Nothing was outstanding.
        #expect(connect(&suspicion) == .counted)
        suspicion.noteSent("a")
        #expect(connect(&suspicion, sent: "a", confirmed: ["a"]) == .counted)
        #expect(suspicion.state == .alone(suspect: nil))
    }

    @Test("A reason needs no row", arguments: [.named, .refused] as [ReplaySuspicion.End])
    func named(_ end: ReplaySuspicion.End) {
        var suspicion = SubscriptionSuspicion()
        #expect(connect(&suspicion, end) == .counted && suspicion.isAlone)
        #expect(connect(&suspicion, sent: "a", end) == .proven("a"))
    }
}
