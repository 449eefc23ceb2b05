import Testing
import WaybillTesting

/// The declarations that an app can use with one import.
@Suite("import WaybillTesting alone") struct OneImportTests {
    @Test("A mock, a provider, an entry and its messages need no other import")
    func suffices() async throws {
        let mock = MockTransport().expect(.send)
        let provider = Provider<AnyEntry>(transport: mock)
        try await provider.request(.send(topic: "t", body: .text("x")))
        #expect(mock.requests.first?.body == Payload("x"))
    }
}
