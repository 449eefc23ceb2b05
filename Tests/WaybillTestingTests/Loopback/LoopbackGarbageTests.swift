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
        /// How connections ended: with an answer, with none, reset before it could be read, or not in half a minute.
        private struct Ends: Equatable, Sendable {
            var answered = 0
            var silent = 0
            var reset = 0
            var stuck = 0
        }

        /// Connects, says something and that this is all, and reads to the end.
        private static func converse(_ port: UInt16, _ words: [UInt8], _ ends: inout Ends) {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var limit = timeval(tv_sec: 30, tv_usec: 0)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                setsockopt(
                    descriptor,
                    SOL_SOCKET,
                    option,
                    &limit,
                    socklen_t(MemoryLayout<timeval>.size)
                )
            }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = connect(descriptor, $0, size)
                }
            }
            // The peer may have hung up in the middle of it.
            _ = words.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            shutdown(descriptor, Int32(SHUT_WR))
            var heard = 0
            var space = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = recv(descriptor, &space, space.count, 0)
                if count > 0 {
                    heard += count
                } else if count == 0 {
                    return heard > 0 ? (ends.answered += 1) : (ends.silent += 1)
                } else {
                    return errno == EAGAIN ? (ends.stuck += 1) : (ends.reset += 1)
                }
            }
        }

        /// Speaks to a port in a thread of its own, since each connection blocks.
        private static func ends(_ port: UInt16, _ words: [UInt8], count: Int) async -> Ends {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    var ends = Ends()
                    for _ in 0..<count where ends.stuck == 0 { converse(port, words, &ends) }
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
            "300 connections that speak another protocol are answered where it has an answer, and disturb no other client",
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
            #expect(ends.reset == 0 && ends.stuck == 0, "\(ends)")
            // Six bytes of TLS are no request of HTTP yet. MQTT has no answer before CONNECT (3.1.1, 3.1.4-1; 5, 3.1.4-1).
            let isAnswered = service == .stomp || service != .mqtt && words.count > 6
            #expect((isAnswered ? ends.answered : ends.silent) == 300, "\(ends)")
            broker.publish(Payload("after"), to: "rooms/lobby")
            #expect(try await iterator.next() == "after")
            try await waitUntil { broker.connectionCount == 1 }
            await provider.shutdown()
            await broker.stop()
        }
    }
#endif
