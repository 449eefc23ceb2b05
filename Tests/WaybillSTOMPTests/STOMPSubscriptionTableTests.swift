import STOMPWire
import Testing
import Waybill
import WaybillSTOMP
import WaybillSession

/// Each state of a subscription with each event: the state that follows, and the actions.
@Suite("STOMP subscriptions: the table") struct STOMPSubscriptionTableTests {
    /// The subscription "1" to the destination "d" in one of its states.
    private struct Fixture {
        var table = STOMPSubscriptionTable()
        let listener = MessageListener(
            source: MessageSource(policy: BufferPolicy(.dropOldest)),
            isManual: false
        )

        init(_ state: STOMPSubscription.State?) {
            table.connected(.v1_2)
            let ids = table.makeIDs(1)
            guard let state else { return }
            let all = [(ids[0], STOMPSubscribe(destination: "d"))]
            let first = state == .wanted ? STOMPSubscription.State.wanted : .subscribing
            table.subscribe(listener, BufferPolicy(.dropOldest), to: all, first)
            if state == .subscribed { _ = table.confirmed("1", hasSuccessor: false) }
        }

        /// What an event gives back.
        mutating func take(_ event: String) -> String {
            let refusal = WaybillError(.rejected, "refused")
            switch event {
            case "confirmed": return text(table.confirmed("1", hasSuccessor: false))
            case "confirmed late":
                table.connected(.v1_2)
                _ = table.resume()
                return text(table.confirmed("1", hasSuccessor: true))
            case "confirmed between":
                // The next connection is there, and has not restored the subscriptions yet.
                table.connected(.v1_2)
                let actions = text(table.confirmed("1", hasSuccessor: true))
                return "\(actions), resume \(table.resume().map(\.id))"
            case "restored": return text(table.restored("1"))
            case "refused": return text(table.refused("1", refusal))
            case "leaves": return text(table.leave("1", of: listener.source, because: nil))
            case "unsubscribed":
                let (ended, actions) = table.unsubscribe("d")
                return (["ended \(ended.map(\.id))"] + [text(actions)]).joined(separator: ", ")
            case "connected":
                table.connected(.v1_2)
                return "resume \(table.resume().map(\.id))"
            case "concluded": return text(table.conclude(WaybillError(.connectionLost, "lost")))
            default:
                Issue.record("no such event")
                return ""
            }
        }

        private func text(_ actions: [STOMPSubscriptionAction]) -> String {
            actions.map { action in
                switch action {
                case .report(let kind, let topic, let error):
                    ["\(kind)", topic, error.map(text)].compactMap { $0 }.joined(separator: " ")
                case .subscribe(let subscription): "subscribe \(subscription.id)"
                case .unsubscribe(let id): "unsubscribe \(id)"
                case .finish(_, let error): "finish \(error.map(text) ?? "")"
                }
            }.joined(separator: ", ")
        }

        private func text(_ error: WaybillError) -> String {
            error.code == .rejected ? "rejected" : "lost"
        }
    }

    @Test("A listener that leaves ends no other subscription with its id")
    func earlierListener() {
        var fixture = Fixture(.subscribed)
        let earlier = MessageSource(policy: BufferPolicy(.dropOldest))
        let actions = fixture.table.leave("1", of: earlier, because: nil)
        #expect(actions.isEmpty && fixture.table["1"] != nil)
        let text = fixture.take("leaves")
        #expect(text == "subscriptionEnded d, unsubscribe 1")
    }

    @Test("Ids that are used, reserved, in requests, or this side's, cannot be chosen")
    func chosen() {
        var table = STOMPSubscriptionTable()
        var answers: [Bool] = []
        var made = table.makeIDs(1)
        table.release(made)
        // It may have been sent.
        answers.append(table.reserve("1"))
        answers.append(table.reserve("2"))
        answers.append(table.reserve("2"))
        table.release(["2"])
        // It may have been sent, too; the entry may choose it again.
        made += table.makeIDs(2)
        answers.append(table.reserve("2"))
        #expect(answers == [false, true, false, true])
        #expect(made == ["1", "3", "4"])
        answers = []
        table.beginRequests(["a"])
        table.beginRequests(["a"])
        table.endRequests(["a"])
        answers.append(table.reserve("a"))
        table.endRequests(["a"])
        answers.append(table.reserve("a"))
        #expect(answers == [false, true])
    }

    private static let events = [
        "confirmed", "confirmed late", "confirmed between", "restored", "refused", "leaves",
        "unsubscribed", "connected", "concluded",
    ]

    /// For each state: the events, each with the state that follows and the actions.
    private static let table: [(STOMPSubscription.State?, String)] = [
        (
            nil,
            """
            confirmed → absent | unsubscribe 1
            confirmed late → absent | unsubscribe 1
            confirmed between → absent | unsubscribe 1, resume []
            restored → absent | unsubscribe 1
            refused → absent |
            leaves → absent |
            unsubscribed → absent | ended [],
            connected → absent | resume []
            concluded → absent |
            """
        ),
        (
            .subscribing,
            """
            confirmed → subscribed | subscribed d
            confirmed late → subscribed | subscribed d, subscribe 1
            confirmed between → subscribed | subscribed d, resume ["1"]
            restored → subscribed | subscribed d
            refused → absent | subscriptionRefused d rejected, finish rejected
            leaves → absent | unsubscribe 1
            unsubscribed → absent | ended ["1"],
            connected → subscribing | resume []
            concluded → absent | finish lost
            """
        ),
        (
            .wanted,
            """
            confirmed → subscribed | subscribed d
            confirmed late → subscribed | subscribed d, subscribe 1
            confirmed between → subscribed | subscribed d, resume ["1"]
            restored → subscribed | subscribed d
            refused → absent | subscriptionRefused d rejected, finish rejected
            leaves → absent | unsubscribe 1
            unsubscribed → absent | ended ["1"],
            connected → wanted | resume ["1"]
            concluded → absent | finish lost
            """
        ),
        (
            .subscribed,
            """
            confirmed → subscribed | subscribed d
            confirmed late → subscribed | subscribed d, subscribe 1
            confirmed between → subscribed | subscribed d, resume ["1"]
            restored → subscribed | resubscribed d
            refused → absent | subscriptionEnded d rejected, finish rejected
            leaves → absent | subscriptionEnded d, unsubscribe 1
            unsubscribed → absent | ended ["1"], subscriptionEnded d
            connected → subscribed | resume ["1"]
            concluded → absent | subscriptionEnded d lost, finish lost
            """
        ),
    ]

    @Test("Every state with every event")
    func whole() {
        for (state, expected) in Self.table {
            let rows = expected.split(separator: "\n")
            #expect(rows.count == Self.events.count)
            for (event, row) in zip(Self.events, rows) {
                var fixture = Fixture(state)
                let actions = fixture.take(event)
                let next = fixture.table["1"].map { "\($0.state)" } ?? "absent"
                let found = "\(event) → \(next) | \(actions)"
                let end = found.lastIndex { $0 != " " } ?? found.startIndex
                #expect(found[...end] == row, "\(String(describing: state))")
            }
        }
    }
}
