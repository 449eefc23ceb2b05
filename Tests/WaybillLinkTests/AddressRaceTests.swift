import Testing
import WaybillLink
import WireCore

/// The order and the times of connection attempts (RFC 8305, 4 and 5), with a literal clock.
@Suite("The race of addresses") struct AddressRaceTests {
    /// The addresses are names such as `6a` and `4b`, whose first letter is the family.
    private static func race(_ addresses: [String]) -> AddressRace<String> {
        AddressRace(addresses, family: \.first)
    }

    private static func instant(_ milliseconds: Int64) -> WireInstant {
        WireInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test(
        "Families take turns, beginning with the resolver's first (RFC 8305, 4)",
        arguments: [
            ([], []),
            (["6a"], ["6a"]),
            (["6a", "6b", "4a", "4b"], ["6a", "4a", "6b", "4b"]),
            (["4a", "4b", "6a"], ["4a", "6a", "4b"]),
            (["4a", "6a", "6b", "6c"], ["4a", "6a", "6b", "6c"]),
            (["6a", "6b", "6c", "4a"], ["6a", "4a", "6b", "6c"]),
            (["4a", "4b", "4c"], ["4a", "4b", "4c"]),
            (["6a", "4a", "Ua", "6b"], ["6a", "4a", "Ua", "6b"]),
        ]
    )
    func interleaving(given: [String], expected: [String]) {
        #expect(Self.race(given).addresses == expected)
    }

    @Test("Without an answer the next attempt begins 250 ms after the last (RFC 8305, 5)")
    func staggered() {
        var race = Self.race(["6a", "4a", "6b"])
        #expect(race.deadline == .zero)
        #expect(race.takeDue(at: Self.instant(1_000))?.address == "6a")
        #expect(race.takeDue(at: Self.instant(1_000)) == nil)
        #expect(race.deadline == Self.instant(1_250))
        #expect(race.takeDue(at: Self.instant(1_249)) == nil)
        #expect(race.takeDue(at: Self.instant(1_251))?.index == 1)
        #expect(race.deadline == Self.instant(1_501))
        #expect(race.takeDue(at: Self.instant(1_501))?.address == "6b")
        #expect(race.deadline == nil)
        #expect(race.takeDue(at: Self.instant(9_000)) == nil)
        #expect(race.failure == nil)
    }

    @Test("An attempt that fails makes the next one due at once, and the delay begins anew")
    func failureHurries() {
        var race = Self.race(["6a", "4a", "6b", "4b"])
        #expect(race.takeDue(at: Self.instant(0))?.address == "6a")
        race.noteFailure(.unreachable(101))
        #expect(race.deadline == .zero)
        #expect(race.takeDue(at: Self.instant(10))?.address == "4a")
        #expect(race.takeDue(at: Self.instant(10)) == nil)
        #expect(race.deadline == Self.instant(260))
        #expect(race.takeDue(at: Self.instant(260))?.address == "6b")
        // The earlier attempt fails while the later one is under way.
        race.noteFailure(.refused)
        #expect(race.takeDue(at: Self.instant(270))?.address == "4b")
        #expect(race.failure == nil)
    }

    @Test(
        "When all have failed, the one that came closest counts, among equals the last",
        arguments: [
            ([.refused, .refused], .refused),
            ([.refused, .unreachable(113)], .refused),
            ([.unreachable(101), .refused], .refused),
            ([.refused, .timedOut], .refused),
            ([.timedOut, .unreachable(101)], .timedOut),
            ([.unreachable(101), .unreachable(113)], .unreachable(113)),
        ] as [([AddressRace<String>.Failure], AddressRace<String>.Failure)]
    )
    func failures(each: [AddressRace<String>.Failure], whole: AddressRace<String>.Failure) {
        var race = Self.race(["6a", "4a"])
        for failure in each {
            #expect(race.failure == nil)
            #expect(race.takeDue(at: .zero) != nil)
            race.noteFailure(failure)
        }
        #expect(race.failure == whole)
        #expect(race.deadline == nil)
    }

    @Test("A host without addresses has failed from the start")
    func empty() {
        var race = Self.race([])
        #expect(race.takeDue(at: .zero) == nil)
        #expect(race.failure == .unreachable(0))
    }
}
