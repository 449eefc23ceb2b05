import Testing
import WaybillSSE

/// The declarations that an app can use with one import.
@Suite("import WaybillSSE alone") struct OneImportTests {
    @Test("A transport, a provider, an entry and its messages need no other import")
    func suffices() throws {
        let transport = try SSETransport(url: "http://localhost") { $0.userName = "ada" }
        let provider = Provider<AnyEntry>(transport: transport).intercepted(RetryPolicy())
        let source = try EventSource(url: "http://localhost", headers: ["k": "v"]) {
            $0.password = "x"
        }
        #expect(source.readyState == .closed)
        withExtendedLifetime(provider) {}
    }
}
