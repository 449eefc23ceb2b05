#if os(Linux)
    import Foundation
    import Glibc
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillMQTT
    import WaybillSSE
    import WaybillSTOMP

    /// A Mosquitto process that belongs to one test, which may kill it.
    private final class DoomedBroker {
        let port: Int
        private let process = Process()
        private let exits: AsyncStream<Void>

        /// Starts the process and waits until its log says that it runs.
        init() async throws {
            port = Int(try PersistentBroker.freePort())
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = ["mosquitto", "-v", "-p", "\(port)"]
            let output = Pipe()
            process.standardError = output
            process.standardOutput = FileHandle.nullDevice
            let (exits, exit) = AsyncStream<Void>.makeStream()
            self.exits = exits
            process.terminationHandler = { _ in exit.finish() }
            // The log is read to its end. Otherwise the pipe would fill up and stop the broker.
            let (words, mouth) = AsyncStream<String>.makeStream()
            output.fileHandleForReading.readabilityHandler = { handle in
                let data = handle.availableData
                mouth.yield(String(decoding: data, as: UTF8.self))
                guard data.isEmpty else { return }
                handle.readabilityHandler = nil
                mouth.finish()
            }
            try process.run()
            var said = ""
            for await word in words {
                said += word
                if said.contains(" running\n") { return }
            }
            throw Failure(said: said)
        }

        struct Failure: Error {
            let said: String
        }

        /// Stops the process. The kernel still accepts connections, and they get no answer.
        func freeze() {
            Glibc.kill(process.processIdentifier, SIGSTOP)
        }

        func kill() async {
            Glibc.kill(process.processIdentifier, SIGKILL)
            for await _ in exits {}
        }

        deinit {
            if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
        }
    }

    @Suite(
        "From one broker to the next",
        .enabled(
            if: MosquittoServer.isRunning,
            "Mosquitto is not running: Tests/Servers/with --install -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct BrokerFailoverTests {
        private let topic = "waybill/failover/\(UInt64.random(in: 0 ... .max))"

        private func transport(
            _ first: Int,
            _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) throws -> MQTTTransport {
            var configuration = MQTTConfiguration()
            configuration.reconnection = .never
            let second = try #require(TestServers.port("MOSQUITTO"))
            configuration.failover.hosts = ["127.0.0.1:\(second)"]
            change(&configuration)
            return try MQTTTransport(
                url: "mqtt://127.0.0.1:\(first)",
                configuration: configuration
            )
        }

        @Test("The first broker is killed: the next connect reaches the second")
        func killed() async throws {
            let doomed = try await DoomedBroker()
            let transport = try transport(doomed.port)
            let provider = Provider<WireEntry>(transport: transport)
            let watcher = try MosquittoServer.transport(.v5)
            let heard = try await Provider<WireEntry>(transport: watcher)
                .messages(.subscribe(topic, .atLeastOnce))

            // The first server runs, so the second one must get no message.
            try await provider.request(.send("first", to: topic, .atLeastOnce))
            var states = transport.states.makeAsyncIterator()
            #expect("\(await states.next()!)" == "connected")
            await doomed.kill()
            #expect("\(await states.next()!)".hasPrefix("disconnected (connectionLost"))
            try await provider.request(.send("second", to: topic, .atLeastOnce))
            var iterator = heard.makeAsyncIterator()
            #expect(try await iterator.next()?.text == "second")
            for transport in [transport, watcher] { await transport.shutdown() }
        }

        @Test(
            "A broker that has frozen costs the connect timeout, and then the second is reached",
            .realTime
        )
        func realTimeFrozen() async throws {
            let doomed = try await DoomedBroker()
            doomed.freeze()
            let transport = try transport(doomed.port) { $0.timeouts.connect = .seconds(3) }
            let clock = ContinuousClock()
            let begin = clock.now
            try await Provider<WireEntry>(transport: transport).request(.connect())
            // The clock of the event loop may be some milliseconds late.
            #expect(clock.now - begin > .milliseconds(2_900))
            await transport.shutdown()
            await doomed.kill()
        }

        @Test("Both are gone: the error says what became of each")
        func bothGone() async throws {
            let first = try await DoomedBroker()
            let second = try await DoomedBroker()
            let transport = try transport(first.port) {
                $0.failover.hosts = ["127.0.0.1:\(second.port)", "nowhere.invalid"]
            }
            await first.kill()
            await second.kill()
            let error = await #expect(throws: WaybillError.self) {
                try await Provider<WireEntry>(transport: transport).request(.connect())
            }
            #expect(error?.code == .connectionRefused)
            let failure = try #require(error?.underlying as? FailoverFailure)
            #expect(failure.attempts.count == 3)
            #expect(failure.attempts.last?.host == "nowhere.invalid:\(first.port)")
            await transport.shutdown()
        }

        @Test("A broker that does not know the user is not passed over")
        func credentials() async throws {
            let strict = try #require(TestServers.port("MOSQUITTO_AUTH"))
            let transport = try transport(strict) { configuration in
                configuration.userName = "alice"
                configuration.password = "wrong"
            }
            let error = await #expect(throws: WaybillError.self) {
                try await Provider<WireEntry>(transport: transport).request(.connect())
            }
            #expect(error?.code == .unauthorized)
            await transport.shutdown()
        }

        @Test(
            "A host whose certificate is not right gives way to one whose certificate is",
            .enabled(if: TestServers.areSecure, "servers with TLS are not running"),
            arguments: TLSRoute.badCertificates
        )
        func badCertificate(name: String) async throws {
            let (url, _) = TLSRoute.mqtts.bad(name)
            let port = try #require(TestServers.port("MOSQUITTO_TLS"))
            #expect(try await TLSRoute.mqtts.visit(url, orAt: ["localhost:\(port)"]) != nil)
            let error = await #expect(throws: WaybillError.self) {
                try await TLSRoute.mqtts.visit(url, orAt: ["127.0.0.1:1"])
            }
            let failure = try #require(error?.underlying as? FailoverFailure)
            #expect(failure.attempts.map(\.error.code) == [.tls, .connectionRefused])
        }

        @Test("Shuffled, both brokers are found in time")
        func shuffled() async throws {
            let doomed = try await DoomedBroker()
            let transport = try transport(doomed.port) { $0.failover.order = .shuffled }
            let provider = Provider<WireEntry>(transport: transport)
            let watcher = try MosquittoServer.transport(.v5)
            let heard = try await Provider<WireEntry>(transport: watcher)
                .messages(.subscribe(topic, .atLeastOnce))
            // With a probability of one in a million million, the shuffled order is always the same.
            for number in 0..<40 {
                try await provider.request(.connect())
                try await provider.request(.send(.init("\(number)"), to: topic, .atLeastOnce))
                try await provider.request(.disconnect)
            }
            try await Provider<WireEntry>(transport: watcher)
                .request(.send("end", to: topic, .atLeastOnce))
            var count = 0
            for try await message in heard {
                if message.text == "end" { break }
                count += 1
            }
            #expect((1...39).contains(count))
            for transport in [transport, watcher] { await transport.shutdown() }
            await doomed.kill()
        }
    }

    @Suite(
        "From a server that is not there to the next",
        .enabled(
            if: TestServers.port("RABBITMQ_STOMP") != nil && TestServers.port("NGINX") != nil,
            "RabbitMQ or nginx is not running: Tests/Servers/with --install ... -- swift test"
        ),
        .timeLimit(.minutes(30))
    )
    struct ServerFailoverTests {
        @Test("STOMP, over TCP and over a WebSocket", arguments: ["stomp", "ws"])
        func stomp(scheme: String) async throws {
            let variable = scheme == "ws" ? "RABBITMQ_WS" : "RABBITMQ_STOMP"
            let port = try #require(TestServers.port(variable))
            var configuration = STOMPConfiguration()
            configuration.reconnection = .never
            configuration.host = "/"
            configuration.userName = "guest"
            configuration.password = "guest"
            configuration.failover.hosts = ["localhost:\(port)"]
            let transport = try STOMPTransport(
                url: "\(scheme)://127.0.0.1:1" + (scheme == "ws" ? "/ws" : ""),
                configuration: configuration
            )
            try await Provider<FrameEntry>(transport: transport).request(.connect)
            await transport.shutdown()
        }

        @Test("Event streams and what is sent beside them")
        func events() async throws {
            let port = try #require(TestServers.port("NGINX"))
            var configuration = SSEConfiguration()
            configuration.failover.hosts = ["localhost:\(port)"]
            let transport = try SSETransport(
                url: "http://127.0.0.1:1",
                configuration: configuration
            )
            let provider = Provider<EventStreamEntry>(transport: transport)
            let channel = "failover\(UInt64.random(in: 0 ... .max))"
            try await provider.request(.post("x", to: "publish/\(channel)"))
            var iterator = try await provider.messages(.listen("events/\(channel)"))
                .makeAsyncIterator()
            #expect(try await iterator.next()?.text == "x")
            await transport.shutdown()
        }
    }
#endif
