import Testing
import WaybillWebSocket

/// The declarations that an app can use with one import.
@Suite("import WaybillWebSocket alone") struct OneImportTests {
    @Test("A WebSocket, its headers and its errors need no other import")
    func suffices() async throws {
        do {
            _ = try await WebSocketClient.connect(to: "http://localhost") {
                $0.maximumMessageSize = 1 << 10
                $0.headers = ["k": "v"]
            }
        } catch let error as WaybillError {
            #expect(error.code == .unsupported)
        }
    }
}
