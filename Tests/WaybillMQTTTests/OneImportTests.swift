import Testing
import WaybillMQTT

/// The declarations that an app can use with one import.
@Suite("import WaybillMQTT alone") struct OneImportTests {
    @Test("A transport, a provider, an entry and its messages need no other import")
    func suffices() throws {
        let transport = try MQTTTransport(url: "mqtt://localhost") {
            $0.clientIdentifier = "ada"
            $0.session.cleanStart = false
        }
        let provider = Provider<AnyEntry>(transport: transport).intercepted(RetryPolicy())
        let entry = AnyEntry.send(
            topic: "t",
            body: .text("x"),
            headers: ["k": "v"],
            qos: .atLeastOnce
        )
        #expect(entry.headers["k"] == "v")
        #expect(Message(topic: "t", body: Payload("x")).text == "x")
        withExtendedLifetime(provider) {}
    }
}
