#if os(Linux)
    import Glibc
    import Waybill
    import WaybillMQTT
    import WaybillSSE
    import WaybillSTOMP
    import WaybillWebSocket
    import WebSocketWire
    import WireCore

    /// Runs one flood from a hostile server against one client. Prints how far the memory of the process rose above
    /// the memory of the idle client.
    ///
    ///     WaybillFloods            the names, one a line
    ///     WaybillFloods NAME       NAME  peak above idle in KiB  sent in KiB
    @main
    struct Floods {
        static func main() async throws {
            guard let name = CommandLine.arguments.dropFirst().first else {
                for name in all.keys.sorted() { print(name) }
                return
            }
            guard let flood = all[name] else {
                print("no such flood")
                exit(2)
            }
            let peer = try FloodPeer()
            let idle = Locked(0)
            let begin: Begin = {
                // Resets the kernel's peak of memory use.
                if let file = fopen("/proc/self/clear_refs", "w") {
                    fputs("5", file)
                    fclose(file)
                }
                idle.withLock { $0 = memory("VmRSS:") }
                peer.progress.withLock { $0.mayPour = true }
                while !peer.progress.withLock({ $0.isDone }) {
                    try await Task.sleep(for: .milliseconds(10))
                }
            }
            try await flood(peer, begin)
            let rise = memory("VmHWM:") - idle.withLock { $0 }
            let sent = peer.progress.withLock { $0.sentByteCount }
            print(name, rise, sent >> 10)
            exit(0)
        }

        /// Starts the peer and waits until it has finished.
        typealias Begin = @Sendable () async throws -> Void
        typealias Flood = @Sendable (FloodPeer, Begin) async throws -> Void

        /// The value of a line in `/proc/self/status`, in KiB.
        private static func memory(_ line: String) -> Int {
            guard let file = fopen("/proc/self/status", "r") else { return 0 }
            defer { fclose(file) }
            var buffer = [CChar](repeating: 0, count: 256)
            while fgets(&buffer, 256, file) != nil {
                let text = String(
                    decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
                    as: UTF8.self
                )
                guard text.hasPrefix(line) else { continue }
                return Int(text.dropFirst(line.count).filter(\.isNumber)) ?? 0
            }
            return 0
        }

        private struct Entry: EntryType {
            var topic: String?
            var command: EntryCommand
            var body: EntryBody { .none }
        }

        // MARK: The table

        static let all: [String: Flood] = [
            "mqtt-user-properties": mqtt { connection in
                let property = FloodPeer.userProperty("name", String(repeating: "v", count: 60_000))
                connection.pour(FloodPeer.publish(topic: "t", properties: property))
            },
            "mqtt-long-topics": mqtt { connection in
                connection.pour { number in
                    FloodPeer.publish(topic: "\(number)/" + String(repeating: "t", count: 60_000))
                }
            },
            "mqtt-empty-messages": mqtt { connection in
                let many = Array(repeating: FloodPeer.publish(topic: "t"), count: 10_000)
                connection.pour(Array(many.joined()), upTo: 8 << 20)
            },
            "mqtt-unread-qos1": mqtt(qos: .atLeastOnce) { connection in
                connection.pour {
                    FloodPeer.publish(topic: "t", payload: 1_000_000, qos: 1, identifier: $0)
                }
            },
            "mqtt-unread-qos2": mqtt(qos: .exactlyOnce) { connection in
                connection.pour {
                    FloodPeer.publish(topic: "t", payload: 1_000_000, qos: 2, identifier: $0)
                }
            },
            "mqtt-subscription-identifiers": mqtt { connection in
                let named = Array(repeating: [UInt8]([0x0B, 1]), count: 500_000).joined()
                connection.pour(
                    FloodPeer.publish(topic: "t", properties: Array(named)),
                    upTo: 64 << 20
                )
            },
            "mqtt-pubrel": mqtt { connection in
                connection.pour(
                    Array(repeating: [UInt8]([0x62, 2, 0, 7]), count: 16_384).flatMap { $0 }
                )
            },
            "mqtt-pubrec": mqtt { connection in
                connection.pour(
                    Array(repeating: [UInt8]([0x50, 2, 0, 7]), count: 16_384).flatMap { $0 }
                )
            },
            "mqtt-seen-by-all": { peer, begin in
                peer.serve { connection in
                    connection.acceptMQTT()
                    let value = String(repeating: "v", count: 60_000)
                    let property = FloodPeer.userProperty("name", value)
                    connection.pour(FloodPeer.publish(topic: "t", properties: property))
                }
                let provider = try mqttProvider(peer)
                let all = try provider.allMessages()
                let messages = try await provider.messages(listening(.atMostOnce))
                messages.cancel()
                try await begin()
                withExtendedLifetime(all) {}
            },
            "stomp-headers": stomp { connection, id in
                let value = String(repeating: "v", count: 60_000)
                let headers = (0..<15).map { "h\($0):\(value)\n" }.joined()
                connection.pour { number in
                    Array(
                        "MESSAGE\nsubscription:\(id)\nmessage-id:\(number)\ndestination:/q\n\(headers)\n\0"
                            .utf8
                    )
                }
            },
            "stomp-headers-to-acknowledge": stomp(.clientIndividual) { connection, id in
                let value = String(repeating: "v", count: 60_000)
                connection.pour { number in
                    Array(
                        "MESSAGE\nsubscription:\(id)\nmessage-id:\(number)\nack:\(number)\ndestination:/q\nh:\(value)\n\n\0"
                            .utf8
                    )
                }
            },
            "stomp-unread-acknowledgements": stomp(.clientIndividual, takes: true) {
                connection,
                id in
                let name = String(repeating: "a", count: 60_000)
                connection.pour { number in
                    Array(
                        "MESSAGE\nsubscription:\(id)\nmessage-id:\(number)\nack:\(number)\(name)\ndestination:/q\n\n\0"
                            .utf8
                    )
                }
            },
            "stomp-while-closing": stomp(.clientIndividual, closes: true) { connection, id in
                let body = String(repeating: "b", count: 60_000)
                connection.pour { number in
                    Array(
                        "MESSAGE\nsubscription:\(id)\nmessage-id:\(number)\nack:\(number)\ndestination:/q\n\n\(body)\0"
                            .utf8
                    )
                }
            },
            "websocket-unread": webSocket { connection in
                connection.acceptWebSocket()
                connection.pour(FloodPeer.frame(0x82, [UInt8](repeating: 1, count: 60_000)))
            },
            "websocket-while-closing": webSocket(closes: true) { connection in
                connection.acceptWebSocket()
                connection.pour(FloodPeer.frame(0x82, [UInt8](repeating: 1, count: 60_000)))
            },
            "websocket-compressed": webSocket { connection in
                connection.acceptWebSocket(deflate: PermessageDeflate())
                // The last four bytes of a message are left out (RFC 7692, 7.2.1).
                let zeros = FloodPeer.deflated([UInt8](repeating: 0, count: 1_000_000)).dropLast(4)
                let frames = Array(repeating: FloodPeer.frame(0xC2, Array(zeros)), count: 200)
                connection.pour(Array(frames.joined()), upTo: 16 << 20)
            },
            "websocket-empty": webSocket { connection in
                connection.acceptWebSocket()
                connection.pour(Array(repeating: [UInt8]([0x82, 0]), count: 32_768).flatMap { $0 })
            },
            "events-compressed": events(takes: false),
            "events-compressed-and-taken": events(takes: true),
            "events-long-identifiers": { peer, begin in
                peer.serve { connection in
                    connection.acceptEventStream()
                    let id = String(repeating: "i", count: 60_000)
                    connection.pour { Array("id: \($0)\(id)\ndata\n\n".utf8) }
                }
                let messages = try await subscribedEvents(peer)
                try await begin()
                withExtendedLifetime(messages) {}
            },
        ]

        // MARK: Clients

        private static func listening(_ qos: QoS) -> Entry {
            Entry(topic: "#", command: .subscribe(qos: qos))
        }

        private static func mqttProvider(_ peer: FloodPeer) throws -> Provider<Entry> {
            Provider(transport: try MQTTTransport(url: "mqtt://127.0.0.1:\(peer.port)"))
        }

        private static func mqtt(
            qos: QoS = .atMostOnce,
            _ pour: @escaping @Sendable (borrowing FloodPeer.Connection) -> Void
        ) -> Flood {
            { peer, begin in
                peer.serve { connection in
                    connection.acceptMQTT()
                    pour(connection)
                }
                let provider = try mqttProvider(peer)
                let messages = try await provider.messages(listening(qos))
                try await begin()
                withExtendedLifetime((provider, messages)) {}
            }
        }

        private static func stomp(
            _ mode: AckMode = .auto,
            takes: Bool = false,
            closes: Bool = false,
            _ pour: @escaping @Sendable (borrowing FloodPeer.Connection, String) -> Void
        ) -> Flood {
            { peer, begin in
                peer.serve { connection in
                    let id = connection.acceptSTOMP()
                    pour(connection, id)
                }
                let transport = try STOMPTransport(url: "stomp://127.0.0.1:\(peer.port)")
                let provider = Provider<Entry>(transport: transport)
                let entry = Entry(topic: "/q", command: .subscribe(.ackMode(mode)))
                let messages = try await provider.messages(entry)
                let reader = takes ? Task { for try await _ in messages {} } : nil
                if closes {
                    async let closed: Void = transport.shutdown()
                    try await begin()
                    await closed
                } else {
                    try await begin()
                }
                withExtendedLifetime((provider, messages, reader)) {}
            }
        }

        private static func webSocket(
            closes: Bool = false,
            _ serve: @escaping @Sendable (borrowing FloodPeer.Connection) -> Void
        ) -> Flood {
            { peer, begin in
                peer.serve(serve)
                let url = "ws://127.0.0.1:\(peer.port)/"
                let socket = try await WebSocketClient.connect(to: url)
                if closes {
                    async let closed: Void = socket.close()
                    try await begin()
                    try await closed
                } else {
                    try await begin()
                }
                withExtendedLifetime(socket) {}
            }
        }

        private static func subscribedEvents(_ peer: FloodPeer) async throws -> Messages<Message> {
            let transport = try SSETransport(url: "http://127.0.0.1:\(peer.port)")
            let provider = Provider<Entry>(transport: transport)
            return try await provider.messages(
                Entry(topic: "/events", command: .subscribe)
            )
        }

        /// Events without data, compressed a thousandfold.
        private static func events(takes: Bool) -> Flood {
            { peer, begin in
                peer.serve { connection in
                    connection.acceptEventStream("Content-Encoding: gzip\r\n")
                    let events = Array(repeating: Array("data\n\n".utf8), count: 200_000)
                    let piece = FloodPeer.deflated(Array(events.joined()))
                    connection.waitToPour()
                    // The header of a gzip member (RFC 1952, 2.3).
                    connection.write([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3])
                    connection.pour(piece, upTo: 256 << 10)
                }
                let messages = try await subscribedEvents(peer)
                let reader = takes ? Task { for try await _ in messages {} } : nil
                try await begin()
                withExtendedLifetime((messages, reader)) {}
            }
        }
    }
#else
    @main
    struct Floods {
        static func main() { print("Floods are played on Linux only.") }
    }
#endif
