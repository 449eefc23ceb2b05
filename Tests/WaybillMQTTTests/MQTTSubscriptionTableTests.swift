import MQTTWire
import Testing
import Waybill
import WaybillMQTT
import WaybillSession

/// Each state of a filter with each event: the state that follows, and the actions.
@Suite("MQTT subscriptions: the table") struct MQTTSubscriptionTableTests {
    /// The filter "t" in one of its states, with the listener a, and with b where there is a second one.
    private struct Fixture {
        var table = MQTTSubscriptionTable()
        var a = MessageListener(
            source: MessageSource(policy: BufferPolicy(.dropOldest)),
            isManual: false
        )
        var b = MessageListener(
            source: MessageSource(policy: BufferPolicy(.dropOldest)),
            isManual: false
        )
        var c = MessageListener(
            source: MessageSource(policy: BufferPolicy(.dropOldest)),
            isManual: false
        )
        /// The last request that callers wait for; at first one of long ago.
        var asked: MQTTFilterRequest
        /// The last request that restores the filter; at first one of long ago.
        var restored: MQTTFilterRequest

        init(_ state: String) throws {
            var old = MQTTSubscriptionTable()
            for name in 1...98 { _ = old.subscribe(a, to: [MQTTSubscription(filter: "\(name)")]) }
            let (added, again) = (old.subscribe(a, to: [Self.filter(1)]), old.restore("t"))
            asked = try #require(added?.requests.first)
            restored = try #require(again)
            switch state {
            case "absent": break
            case "left":
                try subscribe(a, 1)
                _ = table.leave(a.source, "t", because: nil)
            case "subscribing": try subscribe(a, 1)
            case "subscribed":
                try subscribe(a, 1)
                _ = table.granted(asked, .atLeastOnce, hasBacklog: false)
            case "renewing":
                self = try Fixture("subscribed")
                try subscribe(b, 2)
            case "repairing":
                self = try Fixture("subscribed")
                let request = table.restore("t")
                restored = try #require(request)
            case "wanted": _ = table.subscribeLater(a, to: [Self.filter(1)])
            case "restoring":
                self = try Fixture("subscribed")
                table.connected(hasSession: false)
                let requests = table.resume(hasSession: false, isInDoubt: false)
                restored = try #require(requests.first)
            default: Issue.record("no such state")
            }
        }

        static func filter(_ qos: UInt8) -> MQTTSubscription {
            MQTTSubscription(
                filter: "t",
                qos: MQTTQoS(rawValue: qos) ?? .atMostOnce,
                retainHandling: .doNotSend
            )
        }

        private mutating func subscribe(_ listener: MessageListener, _ qos: UInt8) throws {
            let added = table.subscribe(listener, to: [Self.filter(qos)])
            asked = try #require(added?.requests.first)
        }

        /// What an event gives back.
        mutating func take(_ event: String) throws -> String {
            let error = WaybillError(.rejected, "refused")
            let lost = WaybillError(.connectionLost, "lost")
            switch event {
            case "subscribe": return text(table.subscribe(c, to: [Self.filter(1)]))
            case "subscribe for more": return text(table.subscribe(c, to: [Self.filter(2)]))
            case "subscribe later": return text(table.subscribeLater(c, to: [Self.filter(1)]))
            case "subscribe later for more":
                return text(table.subscribeLater(c, to: [Self.filter(2)]))
            case "granted": return text(table.granted(asked, .atMostOnce, hasBacklog: false))
            case "refused": return text(table.failed(asked, error, isRefused: true))
            case "unanswered": return text(table.failed(asked, lost, isRefused: false))
            case "not sent": return text(table.failed(asked, error, isRefused: false))
            case "granted again":
                return text(table.granted(restored, .atMostOnce, hasBacklog: false))
            case "refused again": return text(table.failed(restored, error, isRefused: true))
            case "unanswered again": return text(table.failed(restored, lost, isRefused: false))
            case "a leaves": return text(table.leave(a.source, "t", because: nil))
            case "all leave":
                return text(
                    table.leave(a.source, "t", because: nil)
                        + table.leave(b.source, "t", because: error)
                )
            case "unsubscribed": return text(table.end("t", because: nil))
            case "restored": return text([table.restore("t")].compactMap { $0 })
            case "unsubscribe lost":
                table.unsubscribeFailed("t")
                return ""
            case "lost":
                table.disconnected()
                return ""
            case "session kept":
                return text(table.resume(hasSession: true, isInDoubt: false))
            case "session in doubt":
                return text(table.resume(hasSession: true, isInDoubt: true))
            case "session lost":
                return text(table.resume(hasSession: false, isInDoubt: false))
            case "concluded": return text(table.conclude(lost, keepsSession: false))
            case "concluded with session": return text(table.conclude(nil, keepsSession: true))
            default:
                Issue.record("no such event")
                return ""
            }
        }

        var state: String {
            switch table.state(of: "t") {
            case nil: table.left.all.isEmpty ? "absent" : "left"
            case .subscribing?: "subscribing"
            case .subscribed(let quality)?: "subscribed \(quality.rawValue)"
            case .wanted(nil)?: "wanted"
            case .wanted(let quality?)?: "wanted after \(quality.rawValue)"
            }
        }

        private func text(
            _ added: (answers: [Promise<QoS>], requests: [MQTTFilterRequest])?
        ) -> String {
            guard let (answers, requests) = added else { return "nothing to wait for" }
            let known = answers.map { answer in
                switch answer.result {
                case .success(let quality)?: "known \(quality.rawValue)"
                case .failure?: "failed"
                case nil: "wait"
                }
            }
            return (requests.isEmpty ? known : [text(requests)]).joined(separator: ", ")
        }

        private func text(_ requests: [MQTTFilterRequest]) -> String {
            requests.map { "send \($0.filter)" }.joined(separator: ", ")
        }

        private func text(_ error: WaybillError) -> String {
            error.code == .rejected ? "rejected" : "lost"
        }

        private func text(_ sources: [MessageSource]) -> String {
            if sources.isEmpty { return "none" }
            return sources.map { $0 === a.source ? "a" : $0 === b.source ? "b" : "c" }.joined()
        }

        private func text(_ actions: [MQTTSubscriptionAction]) -> String {
            actions.map { action in
                switch action {
                case .report(let kind, let filter, let quality, let error):
                    [
                        "\(kind)", filter, quality.map { "\($0.rawValue)" },
                        error.map(text),
                    ]
                    .compactMap { $0 }.joined(separator: " ")
                case .tell(let sources, let quality): "tell \(text(sources)) \(quality.rawValue)"
                case .answer(_, .success(let quality)): "answer \(quality.rawValue)"
                case .answer(_, .failure(let error)): "answer \(text(error))"
                case .unsubscribe(let left): "unsubscribe \(left.text)"
                case .finish(let sources, let error):
                    "finish \(text(sources))\(error.map { " " + text($0) } ?? "")"
                }
            }.joined(separator: ", ")
        }
    }

    private static let events = [
        "subscribe", "subscribe for more", "subscribe later", "subscribe later for more",
        "granted", "refused", "unanswered", "not sent",
        "granted again", "refused again", "unanswered again",
        "a leaves", "all leave", "unsubscribed", "restored", "lost", "unsubscribe lost",
        "session kept", "session in doubt", "session lost",
        "concluded", "concluded with session",
    ]

    /// For each state: the events, each with the state that follows and the actions.
    private static let table = [
        "absent": """
        subscribe → subscribing | send t
        subscribe for more → subscribing | send t
        subscribe later → wanted
        subscribe later for more → wanted
        granted → absent | answer 0
        refused → absent | subscriptionRefused t rejected, answer rejected
        unanswered → absent | subscriptionRefused t lost, answer lost
        not sent → absent | subscriptionRefused t rejected, answer rejected
        granted again → left | unsubscribe t
        refused again → absent
        unanswered again → absent
        a leaves → absent
        all leave → absent
        unsubscribed → absent
        restored → absent
        lost → absent
        unsubscribe lost → absent
        session kept → absent
        session in doubt → absent
        session lost → absent
        concluded → absent | finish none lost
        concluded with session → absent | finish none
        """,
        "left": """
        subscribe → subscribing | send t
        subscribe for more → subscribing | send t
        subscribe later → wanted
        subscribe later for more → wanted
        granted → left | answer 0
        refused → left | subscriptionRefused t rejected, answer rejected
        unanswered → left | subscriptionRefused t lost, answer lost
        not sent → left | subscriptionRefused t rejected, answer rejected
        granted again → left | unsubscribe t
        refused again → left
        unanswered again → left
        a leaves → left
        all leave → left
        unsubscribed → left
        restored → left
        lost → left
        unsubscribe lost → left
        session kept → left
        session in doubt → left
        session lost → absent
        concluded → absent | finish none lost
        concluded with session → left | finish none
        """,
        "subscribing": """
        subscribe → subscribing | wait
        subscribe for more → subscribing | send t
        subscribe later → wanted
        subscribe later for more → wanted
        granted → subscribed 0 | subscribed t 0, answer 0
        refused → absent | subscriptionRefused t rejected, answer rejected
        unanswered → left | subscriptionRefused t lost, unsubscribe t, answer lost
        not sent → absent | subscriptionRefused t rejected, answer rejected
        granted again → subscribing
        refused again → subscribing
        unanswered again → subscribing
        a leaves → left | unsubscribe t
        all leave → left | unsubscribe t
        unsubscribed → left | answer rejected, unsubscribe t, finish a
        restored → subscribing | send t
        lost → subscribing
        unsubscribe lost → subscribing
        session kept → subscribing
        session in doubt → subscribing
        session lost → subscribing
        concluded → absent | finish a lost
        concluded with session → absent | finish a
        """,
        "subscribed": """
        subscribe → subscribed 1 | known 1
        subscribe for more → subscribed 1 | send t
        subscribe later → subscribed 1 | tell c 1
        subscribe later for more → wanted after 1
        granted → subscribed 1 | answer 0
        refused → subscribed 1 | subscriptionRefused t rejected, answer rejected
        unanswered → subscribed 1 | subscriptionRefused t lost, answer lost
        not sent → subscribed 1 | subscriptionRefused t rejected, answer rejected
        granted again → subscribed 1
        refused again → subscribed 1
        unanswered again → subscribed 1
        a leaves → left | subscriptionEnded t, unsubscribe t
        all leave → left | subscriptionEnded t, unsubscribe t
        unsubscribed → absent | subscriptionEnded t, finish a
        restored → subscribed 1 | send t
        lost → subscribed 1
        unsubscribe lost → wanted after 1
        session kept → subscribed 1
        session in doubt → wanted after 1 | send t
        session lost → wanted after 1 | send t
        concluded → absent | subscriptionEnded t lost, finish a lost
        concluded with session → absent | subscriptionEnded t, finish a
        """,
        "repairing": """
        subscribe → subscribed 1 | known 1
        subscribe for more → subscribed 1 | send t
        subscribe later → subscribed 1 | tell c 1
        subscribe later for more → wanted after 1
        granted → subscribed 1 | answer 0
        refused → subscribed 1 | subscriptionRefused t rejected, answer rejected
        unanswered → subscribed 1 | subscriptionRefused t lost, answer lost
        not sent → subscribed 1 | subscriptionRefused t rejected, answer rejected
        granted again → subscribed 0 | resubscribed t 0
        refused again → absent | subscriptionEnded t rejected, finish a rejected
        unanswered again → wanted after 1
        a leaves → left | subscriptionEnded t, unsubscribe t
        all leave → left | subscriptionEnded t, unsubscribe t
        unsubscribed → left | subscriptionEnded t, unsubscribe t, finish a
        restored → subscribed 1 | send t
        lost → wanted after 1
        unsubscribe lost → wanted after 1
        session kept → subscribed 1
        session in doubt → wanted after 1 | send t
        session lost → wanted after 1 | send t
        concluded → absent | subscriptionEnded t lost, finish a lost
        concluded with session → absent | subscriptionEnded t, finish a
        """,
        "renewing": """
        subscribe → subscribed 1 | wait
        subscribe for more → subscribed 1 | wait
        subscribe later → subscribed 1 | tell c 1
        subscribe later for more → wanted after 1
        granted → subscribed 0 | subscribed t 0, answer 0
        refused → subscribed 1 | subscriptionRefused t rejected, answer rejected
        unanswered → subscribed 1 | subscriptionRefused t lost, answer lost
        not sent → subscribed 1 | subscriptionRefused t rejected, answer rejected
        granted again → subscribed 1
        refused again → subscribed 1
        unanswered again → subscribed 1
        a leaves → subscribed 1
        all leave → left | subscriptionEnded t rejected, unsubscribe t
        unsubscribed → left | answer rejected, subscriptionEnded t, unsubscribe t, finish ab
        restored → subscribed 1 | send t
        lost → subscribed 1
        unsubscribe lost → wanted after 1
        session kept → subscribed 1
        session in doubt → wanted after 1 | send t
        session lost → wanted after 1 | send t
        concluded → absent | subscriptionEnded t lost, finish ab lost
        concluded with session → absent | subscriptionEnded t, finish ab
        """,
        "wanted": """
        subscribe → wanted | nothing to wait for
        subscribe for more → wanted | nothing to wait for
        subscribe later → wanted
        subscribe later for more → wanted
        granted → wanted | answer 0
        refused → wanted | subscriptionRefused t rejected, answer rejected
        unanswered → wanted | subscriptionRefused t lost, answer lost
        not sent → wanted | subscriptionRefused t rejected, answer rejected
        granted again → wanted
        refused again → wanted
        unanswered again → wanted
        a leaves → absent
        all leave → absent
        unsubscribed → absent | finish a
        restored → wanted | send t
        lost → wanted
        unsubscribe lost → wanted
        session kept → wanted | send t
        session in doubt → wanted | send t
        session lost → wanted | send t
        concluded → absent | finish a lost
        concluded with session → absent | finish a
        """,
        "restoring": """
        subscribe → wanted after 1 | nothing to wait for
        subscribe for more → wanted after 1 | nothing to wait for
        subscribe later → wanted after 1
        subscribe later for more → wanted after 1
        granted → wanted after 1 | answer 0
        refused → wanted after 1 | subscriptionRefused t rejected, answer rejected
        unanswered → wanted after 1 | subscriptionRefused t lost, answer lost
        not sent → wanted after 1 | subscriptionRefused t rejected, answer rejected
        granted again → subscribed 0 | resubscribed t 0, tell a 0
        refused again → absent | subscriptionEnded t rejected, finish a rejected
        unanswered again → wanted after 1
        a leaves → left | subscriptionEnded t, unsubscribe t
        all leave → left | subscriptionEnded t, unsubscribe t
        unsubscribed → left | subscriptionEnded t, unsubscribe t, finish a
        restored → wanted after 1 | send t
        lost → wanted after 1
        unsubscribe lost → wanted after 1
        session kept → wanted after 1 | send t
        session in doubt → wanted after 1 | send t
        session lost → wanted after 1 | send t
        concluded → absent | subscriptionEnded t lost, finish a lost
        concluded with session → absent | subscriptionEnded t, finish a
        """,
    ]

    @Test("A filter that was sent and never granted is left, so that the server forgets it")
    func sentAndLeft() throws {
        var fixture = try Fixture("wanted")
        #expect(fixture.table.resume(hasSession: true, isInDoubt: false).count == 1)
        fixture.table.disconnected()
        #expect(try fixture.take("a leaves") == "unsubscribe t")
        #expect(fixture.state == "left")
    }

    @Test("Every state with every event")
    func whole() throws {
        for (state, expected) in Self.table {
            let found = try Self.events.map { event in
                var fixture = try Fixture(state)
                let actions = try fixture.take(event)
                return "\(event) → \(fixture.state)" + (actions.isEmpty ? "" : " | \(actions)")
            }
            for (found, expected) in zip(found, expected.split(separator: "\n")) {
                #expect(found == expected, "\(state)")
            }
            #expect(found.count == expected.split(separator: "\n").count, "\(state)")
        }
    }
}
