import Testing
import Waybill
import WaybillMock

@Suite("Script of a mock") struct MockScriptTests {
    private func answer(_ script: inout MockScript, _ topic: String) -> String {
        do throws(WaybillError) {
            let request = Request(topic: topic, command: .send)
            guard case .receipt(let receipt) = try script.record(request) else { return "other" }
            return receipt.reply?.text ?? "success"
        } catch {
            return error.code.name
        }
    }

    @Test("The last rule that covers a request counts, and its last outcome stays")
    func outcomes() {
        var script = MockScript()
        script.expect(.send, topic: nil, [.reply("1"), .reply("2")])
        script.expect(.send, topic: "a", [])
        script.expect(.subscribe, topic: nil, [.reply("none")])
        let answers = ["b", "a", "b", "b", "a"].map { answer(&script, $0) }
        #expect(answers == ["1", "success", "2", "2", "success"])
        #expect(script.requests.map(\.topic) == ["b", "a", "b", "b", "a"])
        #expect(script.unexpected.isEmpty)
    }

    @Test("A request without a rule is refused and listed; taking an outcome lists nothing")
    func unexpected() {
        var script = MockScript()
        #expect(answer(&script, "a") == "rejected")
        let outcome = script.takeOutcome(of: Request(topic: "b", command: .send))
        if case .some = outcome { Issue.record("an outcome without a rule") }
        #expect(script.unexpected.map(\.topic) == ["a"])
        #expect(script.requests.map(\.topic) == ["a"])
        #expect(script.connects.isEmpty)
    }
}
