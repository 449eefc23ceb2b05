#if os(Linux)
    import Foundation
    import Testing
    import WireCore

    /// What the nodes of a NATS cluster say about the stream that has the messages of MQTT sessions.
    ///
    /// A message stays in the stream until each session that wants it has acknowledged it. So each message in it is
    /// either still to deliver, or delivered and not acknowledged. More messages than that were passed over: the server
    /// has acknowledged and kept them, and will not deliver them. A client that fails to hand over a message, or to
    /// acknowledge it, never makes this number larger.
    struct NATSStreams {
        private struct Report: Decodable {
            struct Account: Decodable {
                let streams: [Stream]?
                enum CodingKeys: String, CodingKey { case streams = "stream_detail" }
            }
            struct Stream: Decodable {
                struct State: Decodable { let messages: Int }
                let name: String
                let cluster: Group?
                let state: State
                let consumers: [Consumer]?
                enum CodingKeys: String, CodingKey {
                    case name, cluster, state
                    case consumers = "consumer_detail"
                }
            }
            struct Consumer: Decodable {
                let cluster: Group?
                let pending: Int
                let unacknowledged: Int
                enum CodingKeys: String, CodingKey {
                    case cluster
                    case pending = "num_pending"
                    case unacknowledged = "num_ack_pending"
                }
            }
            struct Group: Decodable { let leader: String? }

            let accounts: [Account]?
            enum CodingKeys: String, CodingKey { case accounts = "account_details" }
        }

        /// The number of messages that were passed over, by the count that two nodes have reached; 0 if they cannot
        /// say. One node alone may count too many or too few after it was killed.
        let passedOver: Int

        /// - Parameter answers: The answers to `/jsz?accounts=1&streams=1&consumers=1` of node1, node2, ...; nil for a
        ///   node that does not answer. The node that leads the consumers has to be among them. Its messages and what is
        ///   due are of one moment, and other nodes know only old numbers of consumers.
        init(_ answers: [String?]) {
            var streams: [(node: String, stream: Report.Stream)] = []
            for (index, answer) in answers.enumerated() {
                let report = answer.flatMap {
                    try? JSONDecoder().decode(Report.self, from: Data($0.utf8))
                }
                for stream in (report?.accounts ?? []).flatMap({ $0.streams ?? [] })
                where stream.name == "$MQTT_msgs" { streams.append(("node\(index + 1)", stream)) }
            }
            let leader = streams.first { node, stream in
                let consumers = stream.consumers ?? []
                return !consumers.isEmpty && consumers.allSatisfy { $0.cluster?.leader == node }
            }
            guard let leader, streams.count > 1 else {
                passedOver = 0
                return
            }
            let due = (leader.stream.consumers ?? []).reduce(0) {
                $0 + $1.pending + $1.unacknowledged
            }
            let kept = streams.map(\.stream.state.messages).sorted(by: >)[1]
            passedOver = max(0, kept - due)
        }
    }

    /// The highest number of messages that were passed over during a run.
    final class PassedOver: Sendable {
        private let highest = Locked(0)

        var count: Int { highest.withLock { $0 } }

        /// Reads the number every second until the task is cancelled. Ten readings in a row have to reach a number: after
        /// a kill, some count messages that are on their way, or come from a node that is not in step.
        func watch(_ read: @Sendable () async -> Int) async {
            let before = await read()
            var last: [Int] = []
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                last = last.suffix(9) + [await read()]
                guard last.count == 10, let least = last.min() else { continue }
                highest.withLock { $0 = max($0, least - before) }
            }
        }
    }

    @Suite("What NATS says about its stream")
    struct NATSStreamsTests {
        private func answer(
            _ messages: Int,
            leader: String,
            consumer: String,
            pending: Int = 0,
            unacknowledged: Int = 0,
            stream: String = "$MQTT_msgs"
        ) -> String {
            """
            {"streams": 1, "account_details": [{"name": "$G", "stream_detail": [{
              "name": "\(stream)", "cluster": {"name": "waybill", "leader": "\(leader)"},
              "state": {"messages": \(messages), "first_seq": 43412, "last_seq": 85633, "consumer_count": 1},
              "consumer_detail": [{"name": "a", "cluster": {"leader": "\(consumer)"},
                "num_ack_pending": \(unacknowledged), "num_redelivered": 78, "num_pending": \(pending)}]
            }]}]}
            """
        }

        @Test("Messages that are neither to deliver nor unacknowledged were passed over")
        func passedOver() {
            let nodes = [
                answer(42_520, leader: "node3", consumer: "node2", pending: 1),
                answer(44_652, leader: "node3", consumer: "node2", unacknowledged: 78),
                answer(42_221, leader: "node3", consumer: "node2"),
            ]
            #expect(NATSStreams(nodes).passedOver == 42_442)
            #expect(NATSStreams([nodes[0], nil, nodes[2]]).passedOver == 0)
        }

        @Test("Messages on their way were not passed over")
        func onTheirWay() {
            let nodes = [
                answer(100, leader: "node1", consumer: "node2"),
                answer(90, leader: "node1", consumer: "node2", pending: 60, unacknowledged: 40),
            ]
            #expect(NATSStreams(nodes).passedOver == 0)
        }

        @Test("A node that counts too many messages does not count")
        func tooMany() {
            let nodes = [
                answer(3, leader: "node2", consumer: "node2"),
                answer(1_117, leader: "node2", consumer: "node2", unacknowledged: 1),
            ]
            #expect(NATSStreams(nodes).passedOver == 2)
        }

        @Test("Without answers, or with other streams only, nothing was passed over")
        func nothing() {
            #expect(NATSStreams([nil, "", "{}", #"{"account_details": [{}]}"#]).passedOver == 0)
            let other = answer(9, leader: "node1", consumer: "node1", stream: "$MQTT_sess")
            #expect(NATSStreams([other]).passedOver == 0)
        }
    }
#endif
