import Testing
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

@Suite("Names as bytes, in what users write", .timeLimit(.minutes(30))) struct NameByteTests {
    @Test("Headers are looked up by the bytes of their names", arguments: LookalikeNames.all)
    func headers(names: LookalikeNames) {
        var headers: Headers = [names.one: "1", names.other: "2"]
        #expect(headers[names.one] == "1" && headers[names.other] == "2")
        #expect(headers.all(names.other) == ["2"])
        headers[names.other] = "3"
        #expect(headers.map(\.value) == ["1", "3"])
        headers.removeAll(named: names.one)
        #expect(headers.map(\.value) == ["3"])
        #expect(headers != [names.one: "3"])
        #expect(
            Headers.Header(name: names.one, value: "")
                != Headers.Header(name: names.other, value: "")
        )
    }

    @Test("Routes are chosen by the bytes of types and topics", arguments: LookalikeNames.all)
    func router(names: LookalikeNames) async throws {
        let router = MessageRouter<String>()
            .event(names.one) { (text: String) in "type one " + text }
            .event(names.other) { (text: String) in "type other " + text }
            .topic("+/" + names.one) { (text: String) in "topic one " + text }
            .topic("+/" + names.other) { (text: String) in "topic other " + text }
            .topic("t/+") { (text: String) in "any " + text }
        func message(_ topic: String, event: String? = nil) -> Message {
            var message = Message(topic: topic, body: Payload("x"))
            message[.eventType] = event
            return message
        }
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver([
            message("q", event: names.other), message("q", event: names.one),
            message("q/" + names.other), message("q/" + names.one), message("t/\u{301}"),
        ])
        feed.finish()
        var found: [String] = []
        for try await text in messages.routed(by: router) { found.append(text) }
        #expect(
            found == ["type other x", "type one x", "topic other x", "topic one x", "any x"]
        )
    }

    @Test("The query of a topic is never shown, whatever stands behind the question mark")
    func query() {
        for mark in ["?", "?\u{301}", "?\u{20E3}"] {
            let error = WaybillError(.timedOut, "late", topic: "path" + mark + "token=secret")
            #expect(!"\(error)".contains("secret"))
            let request = Request(topic: "path" + mark + "token=secret", command: .send)
            #expect(!"\(request)".contains("secret"))
        }
    }
}
