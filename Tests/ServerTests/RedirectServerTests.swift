#if os(Linux)
    import Foundation
    import Testing
    import Waybill
    import WaybillLink
    import WaybillMQTT
    import WireCore

    /// A server on 127.0.0.1 that answers each CONNECT with the same bytes, and sends others when it is told to.
    ///
    /// It accepts subscriptions to one filter, and ignores other packets.
    private final class ReferringServer: Sendable {
        private final class Client: ByteStreamReceiver {
            private let stream: any ByteStream
            private let answer: @Sendable () -> [UInt8]

            init(_ stream: any ByteStream, answer: @escaping @Sendable () -> [UInt8]) {
                self.stream = stream
                self.answer = answer
            }

            /// Each packet is read in one piece, because the client waits for the answer.
            func streamIsReadable() {
                var buffer = [UInt8](repeating: 0, count: 4_096)
                while true {
                    let outcome = buffer.withUnsafeMutableBytes { space in
                        try? stream.read(into: space)
                    }
                    switch outcome {
                    case .bytes? where buffer[0] == 0x10: send(answer())
                    case .bytes? where buffer[0] == 0x82:
                        // SUBACK with the packet identifier: the lengths are below 128.
                        send([0x90, 0x04, buffer[2], buffer[3], 0x00, 0x01])
                    case .bytes?: continue
                    case .nothing?: return
                    case .endOfStream?, nil: return stream.close()
                    }
                }
            }

            func send(_ bytes: [UInt8]) {
                let count = bytes.withUnsafeBytes { try? stream.write($0) }
                #expect(count == bytes.count)
            }

            func streamIsWritable() {}
            func streamShouldFlush() {}
            func streamDidEnd(_ error: LinkError?) {}
        }

        private struct State: Sendable {
            var answer: [UInt8] = []
            var clients: [Client] = []
            var visits = 0
        }

        private let state: Shared
        private let listener: TCPListener

        private final class Shared: Sendable {
            let locked = Locked(State())
        }

        var port: UInt16 { listener.port }
        /// The number of CONNECTs.
        var visits: Int { state.locked.withLock { $0.visits } }

        init() throws {
            let state = Shared()
            self.state = state
            listener = try TCPListener { stream in
                let client = Client(stream) {
                    state.locked.withLock { state in
                        state.visits += 1
                        return state.answer
                    }
                }
                state.locked.withLock { $0.clients.append(client) }
                stream.start(client)
            }
        }

        func answer(with bytes: [UInt8]) { state.locked.withLock { $0.answer = bytes } }

        /// Sends bytes to the last client.
        func send(_ bytes: [UInt8]) { state.locked.withLock { $0.clients.last }?.send(bytes) }

        func close() { listener.close() }
    }

    /// A server with TLS on 127.0.0.1, which answers a CONNECT: `openssl s_server`.
    private final class SecureReferringServer {
        let port: UInt16
        private let process = Process()

        /// - Parameter answer: Sent after the first bytes of a client.
        init(answer: [UInt8]) throws {
            port = try PersistentBroker.freePort()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = [
                "openssl", "s_server", "-quiet", "-accept", "127.0.0.1:\(port)",
                "-cert", TestServers.certificatePath("server.pem"),
                "-key", TestServers.certificatePath("server.key"),
            ]
            let (input, output) = (Pipe(), Pipe())
            process.standardInput = input
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            output.fileHandleForReading.readabilityHandler = { handle in
                let data = handle.availableData
                guard !data.isEmpty else { return handle.readabilityHandler = nil }
                // The first byte of CONNECT; a later DISCONNECT gets no answer.
                guard data.first == 0x10 else { return }
                try? input.fileHandleForWriting.write(contentsOf: Data(answer))
            }
            try process.run()
        }

        /// Waits until the port accepts connections.
        func started() async throws {
            let environment = LinkEnvironment.system
            let endpoint = Endpoint(host: "127.0.0.1", port: port)
            for _ in 0..<500 {
                if let stream = try? await environment.dialer
                    .dial(endpoint, timeout: .seconds(1), timers: environment.clock)
                {
                    return stream.close()
                }
                try await Task.sleep(for: .milliseconds(10))
            }
            throw Failure()
        }

        struct Failure: Error {}

        /// Kills the process: it inherits a thread's blocked signals, so that SIGTERM may not reach it.
        func stop() {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }

        deinit { stop() }
    }

    @Suite(
        "MQTT 5, 4.11: servers that refer to Mosquitto",
        .enabled(
            if: MosquittoServer.isRunning,
            "Mosquitto is not running: Tests/Servers/with --install -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct RedirectServerTests {
        private let topic = "waybill/redirect/\(UInt64.random(in: 0 ... .max))"
        private static let connack: [UInt8] = [0x20, 0x03, 0x00, 0x00, 0x00]

        /// A CONNACK, or else a DISCONNECT, that refers to other servers.
        private static func referral(
            _ code: UInt8,
            to servers: String,
            isConnack: Bool
        ) -> [UInt8] {
            let property = [0x1C, 0, UInt8(servers.utf8.count)] + Array(servers.utf8)
            let body = (isConnack ? [0, code] : [code]) + [UInt8(property.count)] + property
            return [isConnack ? 0x20 : 0xE0, UInt8(body.count)] + body
        }

        private func transport(
            to server: ReferringServer,
            _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) throws -> MQTTTransport {
            try MQTTTransport(url: "mqtt://127.0.0.1:\(server.port)") {
                $0.redirects.follows = .always
                change(&$0)
            }
        }

        /// Sends a message of QoS 1, and takes it from another client of Mosquitto.
        private func expectTraffic(over transport: MQTTTransport, _ text: String) async throws {
            let watcher = try MosquittoServer.transport(.v5)
            let heard = try await Provider<WireEntry>(transport: watcher)
                .messages(.subscribe(topic, .atLeastOnce))
            try await Provider<WireEntry>(transport: transport)
                .request(.send(Payload(text), to: topic, .atLeastOnce))
            var iterator = heard.makeAsyncIterator()
            #expect(try await iterator.next()?.text == text)
            await watcher.shutdown()
        }

        @Test(
            "CONNACK: traffic flows over the server that was named",
            arguments: [UInt8(0x9C), 0x9D]
        )
        func refused(code: UInt8) async throws {
            let server = try ReferringServer()
            let port = try #require(TestServers.port("MOSQUITTO"))
            // A reference that is not read, a server that is not there, and Mosquitto.
            let servers = "mqtts://x 127.0.0.1:1 127.0.0.1:\(port)"
            server.answer(with: Self.referral(code, to: servers, isConnack: true))
            let transport = try transport(to: server)
            try await expectTraffic(over: transport, "first")
            #expect(server.visits == 1)
            // Server moved holds for the life of the transport.
            try await Provider<WireEntry>(transport: transport).request(.disconnect)
            try await Provider<WireEntry>(transport: transport).request(.connect())
            #expect(server.visits == (code == 0x9D ? 1 : 2))
            try await expectTraffic(over: transport, "second")
            await transport.shutdown()
            server.close()
        }

        @Test("DISCONNECT: subscriptions and sends move to the server that was named")
        func disconnected() async throws {
            let server = try ReferringServer()
            let port = try #require(TestServers.port("MOSQUITTO"))
            server.answer(with: Self.connack)
            let transport = try transport(to: server) {
                $0.reconnection.initialDelay = .milliseconds(1)
            }
            let provider = Provider<WireEntry>(transport: transport)
            try await provider.request(.connect())
            var events = transport.events.makeAsyncIterator()
            let messages = try await provider.messages(.subscribe(topic, .atLeastOnce))
            server.send(Self.referral(0x9D, to: "127.0.0.1:\(port)", isConnack: false))
            var seen: [TransportEvent.Kind] = []
            while let event = await events.next() {
                if event.kind == .redirected {
                    #expect(event.host == "127.0.0.1:\(server.port)")
                    #expect(event.otherHosts == ["127.0.0.1:\(port)"])
                }
                seen.append(event.kind)
                if event.kind == .connected {
                    #expect(event.host == "127.0.0.1:\(port)")
                    break
                }
            }
            #expect(seen.contains(.redirected) && seen.last == .connected)
            var iterator = messages.makeAsyncIterator()
            // From another client, so that only the subscription on the new server can have brought it.
            try await expectTraffic(over: transport, "sent")
            #expect(try await iterator.next()?.text == "sent")
            let other = try MosquittoServer.transport(.v5)
            try await Provider<WireEntry>(transport: other)
                .request(.send("moved", to: topic, .atLeastOnce))
            await other.shutdown()
            #expect(try await iterator.next()?.text == "moved")
            await transport.shutdown()
            server.close()
        }

        @Test("Two servers that refer to each other: a typed error, and one visit to each")
        func loop() async throws {
            let (first, second) = (try ReferringServer(), try ReferringServer())
            first.answer(
                with: Self.referral(0x9C, to: "127.0.0.1:\(second.port)", isConnack: true)
            )
            second.answer(
                with: Self.referral(0x9D, to: "127.0.0.1:\(first.port)", isConnack: true)
            )
            let transport = try transport(to: first)
            let error = await #expect(throws: WaybillError.self) {
                try await Provider<WireEntry>(transport: transport).request(.connect())
            }
            #expect(error?.code == .connectionRefused)
            #expect(error?.message.contains("the servers refer to each other") == true)
            #expect(first.visits == 1 && second.visits == 1)
            await transport.shutdown()
            for server in [first, second] { server.close() }
        }

        @Test(
            "Over TLS the default follows, and the certificate must name the server that was reached",
            .enabled(
                if: TestServers.port("MOSQUITTO_TLS") != nil,
                "Mosquitto with TLS is not running"
            ),
            arguments: [true, false]
        )
        func secure(isNamed: Bool) async throws {
            let good = try #require(TestServers.port("MOSQUITTO_TLS"))
            let (badURL, _) = TLSRoute.mqtts.bad("wronghost")
            let bad = try #require(badURL.split(separator: ":").last)
            let target = isNamed ? "127.0.0.1:\(good)" : "127.0.0.1:\(bad)"
            let server = try SecureReferringServer(
                answer: Self.referral(0x9C, to: target, isConnack: true)
            )
            let transport = try MQTTTransport(url: "mqtts://127.0.0.1:\(server.port)") {
                $0.reconnection = .never
                $0.tls.authorities = TestServers.authorities
            }
            let provider = Provider<WireEntry>(transport: transport)
            try await server.started()
            if isNamed {
                try await provider.request(.connect())
                #expect("\(transport.states.current)" == "connected")
            } else {
                let error = await #expect(throws: WaybillError.self) {
                    try await provider.request(.connect())
                }
                let failure = try #require(error?.underlying as? FailoverFailure)
                #expect(failure.attempts.map(\.error.code) == [.connectionRefused, .tls])
                #expect(failure.attempts.last?.host == target)
            }
            await transport.shutdown()
            server.stop()
        }
    }
#endif
