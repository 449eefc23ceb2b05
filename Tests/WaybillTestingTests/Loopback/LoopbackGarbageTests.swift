#if os(Linux)
    import Foundation
    import Glibc
    import Testing
    import TransportTestSupport
    import Waybill
    import WaybillTesting
    import WireTestSupport

    /// What strangers say to the broker's ports, such as a scanner or a browser. Over sockets, whose buffers count.
    @Suite("Loopback broker: strangers", .timeLimit(.minutes(30)))
    struct LoopbackGarbageTests {
        /// How connections ended: with an answer, with none, or reset before it could be read.
        private struct Ends: Equatable, Sendable {
            var answered = 0
            var silent = 0
            var reset = 0
        }

        /// Connects, says something and that this is all, and reads to the end; returns what came, or nil after a reset.
        private static func converse(_ port: UInt16, _ words: [UInt8]) -> [UInt8]? {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isOpen = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, size) == 0
                }
            }
            guard isOpen else { return nil }
            // The peer may have hung up in the middle of it.
            _ = words.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            shutdown(descriptor, Int32(SHUT_WR))
            var heard: [UInt8] = []
            var space = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = recv(descriptor, &space, space.count, 0)
                guard count > 0 else { return count == 0 ? heard : nil }
                heard += space.prefix(count)
            }
        }

        /// Speaks to a port in a thread of its own, since each connection blocks.
        private static func ends(_ port: UInt16, _ words: [UInt8], count: Int) async -> Ends {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    var ends = Ends()
                    for _ in 0..<count {
                        switch converse(port, words)?.count {
                        case nil: ends.reset += 1
                        case 0: ends.silent += 1
                        default: ends.answered += 1
                        }
                    }
                    continuation.resume(returning: ends)
                }
            }
        }

        /// A request of HTTP 1.0, the beginning of a TLS handshake, and more than one read takes.
        private static let words: [[UInt8]] = [
            Array("GET / HTTP/1.0\r\n\r\n".utf8), [0x16, 0x03, 0x01, 0x02, 0x00, 0x01],
            [UInt8](repeating: 0xA5, count: 300_000),
        ]

        @Test(
            "300 connections that speak another protocol are answered where it has an answer, and disturb nobody",
            arguments: [LoopbackBroker.Service.mqtt, .stomp, .mqttOverWebSocket, .eventStream],
            words
        )
        func strangers(service: LoopbackBroker.Service, words: [UInt8]) async throws {
            let broker = try LoopbackBroker.started()
            let provider = Provider<AnyEntry>(transport: try broker.transport(service))
            let messages = try await provider.messages(
                AnyEntry(topics: ["rooms/lobby"], command: .subscribe(qos: .atMostOnce)),
                as: String.self
            )
            var iterator = messages.makeAsyncIterator()
            let ends = await Self.ends(broker.port(for: service), words, count: 300)
            #expect(ends.reset == 0, "\(ends)")
            // MQTT has no answer before CONNECT (3.1.1, 3.1.4-1; 5, 3.1.4-1).
            if service == .mqtt {
                #expect(ends.answered == 0, "\(ends)")
            } else if words.count > 6 {
                #expect(ends.answered == 300, "\(ends)")
            }
            broker.publish(Payload("after"), to: "rooms/lobby")
            #expect(try await iterator.next() == "after")
            try await waitUntil { broker.connectionCount == 1 }
            await provider.shutdown()
            await broker.stop()
        }
    }
#endif
