import Testing
import WaybillLink

@Suite("Opening of a stream") struct OpeningTests {
    private typealias Subject = Opening<String, Int>

    private static let states: [Subject] = [
        .pending, .awaited(1), .decided(.success("a")), .decided(.failure(.refused)),
    ]

    /// The state in words.
    private static func text(_ state: Subject) -> String {
        switch state {
        case .pending: "pending"
        case .awaited(let waiter): "awaited by \(waiter)"
        case .decided(.success(let value)): "open: \(value)"
        case .decided(.failure(let error)): "failed: \(error)"
        }
    }

    @Test("A waiter is added until the outcome is decided")
    func wait() {
        let found = Self.states.map { state in
            var state = state
            let mustWait = state.wait(2)
            return "\(Self.text(state)) \(mustWait)"
        }
        let expected = [
            "awaited by 2 true", "awaited by 2 true", "open: a false",
            "failed: \(LinkError.refused) false",
        ]
        #expect(found == expected)
    }

    @Test(
        "The first outcome counts, and resumes the waiter",
        arguments: [Result<String, LinkError>.success("b"), .failure(.timedOut)]
    )
    func decide(_ outcome: Result<String, LinkError>) {
        let decided = Self.text(.decided(outcome))
        let found = Self.states.map { state in
            var state = state
            let (isFirst, waiter) = state.decide(outcome)
            #expect(state.isDecided)
            return "\(Self.text(state)) \(isFirst) \(waiter ?? 0)"
        }
        let expected = [
            "\(decided) true 0", "\(decided) true 1", "open: a false 0",
            "failed: \(LinkError.refused) false 0",
        ]
        #expect(found == expected)
    }

    @Test("A waiter that was cancelled is removed, and the outcome stays open")
    func withdraw() {
        let found = Self.states.map { state in
            var state = state
            let waiter = state.withdraw()
            return "\(Self.text(state)) \(waiter ?? 0)"
        }
        let expected = [
            "pending 0", "pending 1", "open: a 0", "failed: \(LinkError.refused) 0",
        ]
        #expect(found == expected)
    }
}
