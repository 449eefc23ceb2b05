#if os(Linux)
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillLink
    import WaybillMQTT
    import WaybillTesting
    import WireCore
    import WireTestSupport

    #if canImport(FoundationEssentials)
        import FoundationEssentials
    #else
        import Foundation
    #endif

    /// A CONNECT without an answer, over a real socket, on a clock that stands still.
    @Suite("MQTT transport: attempts that are given up", .inSimulation, .timeLimit(.minutes(30)))
    struct AbandonedAttemptTests {
        /// A server that reads and sends nothing.
        private final class SilentServer: ByteStreamReceiver {
            private struct State: Sendable {
                var stream: (any ByteStream)?
                var received: [UInt8] = []
                var end: Result<ReadOutcome, LinkError>?
            }

            private let state = Locked(State())

            var received: [UInt8] { state.withLock { $0.received } }
            var end: Result<ReadOutcome, LinkError>? { state.withLock { $0.end } }

            func take(_ stream: any ByteStream) {
                state.withLock { $0.stream = stream }
                stream.start(self)
            }

            func streamIsReadable() {
                guard let stream = state.withLock({ $0.stream }) else { return }
                var buffer = [UInt8](repeating: 0, count: 1_024)
                while true {
                    let outcome = buffer.withUnsafeMutableBytes { space in
                        Result { () throws(LinkError) in try stream.read(into: space) }
                    }
                    switch outcome {
                    case .success(.bytes(let count)):
                        state.withLock { $0.received += buffer[..<count] }
                    case .success(.nothing): return
                    case .success(.endOfStream), .failure:
                        state.withLock { state in
                            if state.end == nil { state.end = outcome }
                            state.stream = nil
                        }
                        return stream.close()
                    }
                }
            }

            func streamIsWritable() {}
            func streamShouldFlush() {}
            func streamDidEnd(_ error: LinkError?) {}
        }

        enum Reason: CaseIterable {
            case timeout, cancelled, disconnected, shutDown
        }

        @Test(
            "An attempt without an answer is given up with a reset",
            .outsideSimulation,
            arguments: Reason.allCases
        )
        func reset(reason: Reason) async throws {
            let server = SilentServer()
            let listener = try TCPListener { server.take($0) }
            let clock = ManualClock()
            var configuration = MQTTConfiguration(version: .v3_1_1)
            configuration.clientIdentifier = "c"
            configuration.reconnection = .never
            let transport = try MQTTTransport(
                url: #require(URL(string: "mqtt://127.0.0.1:\(listener.port)")),
                configuration: configuration,
                environment: LinkEnvironment(
                    dialer: TCPDialer(),
                    clock: clock.linkTimers,
                    random: { 0 }
                )
            )
            let provider = Provider<MQTTEntry>(transport: transport)
            let connecting = Task { try await provider.request(.connect) }
            let connect = ("10 0D 0004 4D515454 04 02 003C 0001 63" as Hex).bytes
            try await waitUntil { server.received == connect }
            switch reason {
            case .timeout: clock.advance(by: .seconds(10))
            case .cancelled: connecting.cancel()
            case .disconnected: try await provider.request(.disconnect)
            case .shutDown: await transport.shutdown()
            }
            await #expect(throws: (any Error).self) { try await connecting.value }
            try await waitUntil { server.end != nil }
            #expect(server.end == .failure(.reset))
            await transport.shutdown()
            listener.close()
        }
    }
#endif
