import Testing
import WaybillSTOMP

/// The declarations that an app can use with one import.
@Suite("import WaybillSTOMP alone") struct OneImportTests {
    @Test("A transport, a provider, an entry and its messages need no other import")
    func suffices() throws {
        let transport = try STOMPTransport(url: "stomp://localhost") { $0.host = "/" }
        let provider = Provider<AnyEntry>(transport: transport).topicStyle(.rabbitMQ)
        let entry = AnyEntry.subscribe(topic: "t", qos: .atLeastOnce)
        #expect(entry.command.kind == .subscribe)
        #expect(WaybillError(.timedOut, "late").isRetryable)
        withExtendedLifetime(provider) {}
    }
}
