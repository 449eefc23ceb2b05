import Dispatch
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

/// A connect that is cancelled while its CONNACK arrives.
@Suite(
    "MQTT transport: a connect that is cancelled at its CONNACK",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct CancelledConnectTests {
    /// A stream whose peer is the test.
    private final class PeerStream: ByteStream {
        private struct State: Sendable {
            var receiver: (any ByteStreamReceiver)?
            var inbox: [UInt8] = []
            var written: [UInt8] = []
            var isReceiving = false
            var isClosed = false

            /// Takes the receiver, to be told of the end with no other call under way.
            mutating func takeEnded() -> (any ByteStreamReceiver)? {
                isClosed && !isReceiving ? receiver.take() : nil
            }
        }

        private let state = Locked(State())
        private let wrote = DispatchSemaphore(value: 0)

        var written: [UInt8] { state.withLock { $0.written } }

        /// Blocks the thread until these are the last bytes written, for 30 seconds at the most.
        func waitUntilWritten(_ bytes: [UInt8]) {
            let limit = DispatchTime.now() + 30
            while written.suffix(bytes.count) != bytes[...] {
                guard wrote.wait(timeout: limit) == .success else { return }
            }
        }

        func start(_ receiver: any ByteStreamReceiver) {
            state.withLock { $0.receiver = receiver }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            state.withLock { $0.written += bytes }
            wrote.signal()
            return bytes.count
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            state.withLock { state in
                let bytes = state.inbox.prefix(space.count)
                state.inbox.removeFirst(bytes.count)
                space.copyBytes(from: bytes)
                return bytes.isEmpty ? .nothing : .bytes(bytes.count)
            }
        }

        func scheduleFlush() -> Bool { false }
        func setReading(_ isReading: Bool) {}
        func readAgain() {}
        func finishWriting() {}

        func close() {
            let ended = state.withLock { state in
                state.isClosed = true
                return state.takeEnded()
            }
            ended?.streamDidEnd(nil)
        }

        var tls: TLSAgreement? { nil }

        /// Hands bytes of the peer to the receiver.
        func receive(_ bytes: [UInt8]) {
            let receiver = state.withLock { state in
                state.inbox += bytes
                state.isReceiving = true
                return state.receiver
            }
            receiver?.streamIsReadable()
            let ended = state.withLock { state in
                state.isReceiving = false
                return state.takeEnded()
            }
            ended?.streamDidEnd(nil)
        }
    }

    private final class PeerDialer: Dialer {
        private let streams: Locked<[any ByteStream]>

        init(_ streams: any ByteStream...) { self.streams = Locked(streams) }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let stream = streams.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let stream else { throw .refused }
            return stream
        }
    }

    /// Names the first CONNECT `d`.
    private final class Renaming: Interceptor {
        private let isFirst = Locked(true)

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .connect,
                isFirst.withLock({ isFirst in
                    defer { isFirst = false }
                    return isFirst
                })
            else { return }
            request.command[.clientIdentifier] = "d"
        }
    }

    @Test(
        "The session is that of its client identifier, and the next one is another one",
        .outsideSimulation
    )
    func owner() async throws {
        let store = InMemorySessionStore()
        let first = PeerStream()
        let next = ScriptedByteStream.accepted(
            .present,
            .expect(("82 06 0001 0001 74 02" as Hex).bytes),
            .reply(("90 03 0001 02 34 06 0001 74 0007 62" as Hex).bytes),
            .expect(("50 02 0007" as Hex).bytes)
        )
        let connecting = Locked<Task<Void, any Error>?>(nil)
        let disconnect = ("E0 00" as Hex).bytes
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.clientIdentifier = "c"
        configuration.session.cleanStart = false
        configuration.session.store = store
        // CONNACK is decoded then, and the transport learns of it after the call.
        configuration.wireLogger = ClosureWireLogger { record in
            guard record.direction == .inbound, record.text.contains("CONNACK"),
                let task = connecting.withLock({ $0.take() })
            else { return }
            task.cancel()
            first.waitUntilWritten(disconnect)
        }
        let transport = try MQTTTransport(
            url: try #require(URL(string: "mqtt://peer")),
            configuration: configuration,
            environment: LinkEnvironment(
                dialer: PeerDialer(first, next.open()),
                clock: ManualClock().linkTimers,
                random: { 0 }
            )
        )
        let provider = Provider<MQTTEntry>(transport: transport).intercepted(Renaming())
        let task = Task { _ = try await provider.request(.connect) }
        connecting.withLock { $0 = task }
        let connect = ("10 0D 0004 4D515454 04 00 003C 0001 64" as Hex).bytes
        try await waitUntil { first.written == connect }
        // Not on one of the few threads for tasks, which it blocks.
        DispatchQueue(label: "peer").async { first.receive(("20 02 00 00" as Hex).bytes) }
        await #expect(throws: CancellationError.self) { try await task.value }
        // Another task writes DISCONNECT.
        try await waitUntil { first.written == connect + disconnect }
        try await waitUntil { "\(transport.states.current)".hasPrefix("disconnected") }

        // What is stored of the session of `d` is no part of the next one.
        store.insertReceived(9) {}
        var messages = try await provider.messages(.subscribe()).makeAsyncIterator()
        #expect(try await messages.next()?.text == "b")
        try await waitUntil { next.isComplete || next.failures != [] }
        #expect(next.failures == [])
        #expect(store.receivedIdentifiers() == [7])
        await transport.shutdown()
    }
}
