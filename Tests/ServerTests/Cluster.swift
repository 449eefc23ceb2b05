#if os(Linux)
    import Foundation
    import Testing

    /// A cluster of three nodes that `Tests/Servers/with` has started.
    struct Cluster: Sendable {
        struct Failure: Error {
            let command: [String]
        }

        /// The listeners that a test connects to.
        enum Listener: String, Sendable {
            case rabbitMQSTOMP = "RABBITMQ_CLUSTER_STOMP"
            case rabbitMQMQTT = "RABBITMQ_CLUSTER_MQTT"
            case natsMQTT = "NATS_CLUSTER_MQTT"

            /// The cluster's name in the variables of the environment.
            fileprivate var cluster: String {
                self == .natsMQTT ? "NATS_CLUSTER" : "RABBITMQ_CLUSTER"
            }
        }

        /// Whether the sessions of RabbitMQ's cluster have classic queues, each on one home node.
        static var hasClassicQueues: Bool {
            ProcessInfo.processInfo.environment["WAYBILL_RABBITMQ_CLUSTER_QUEUES"] == "classic"
        }

        /// The ports of the listener, one of each node.
        let ports: [Int]
        private let control: String
        private let tool: String?

        /// - Parameter listener: The listener to connect to.
        /// - Returns: Nil if the cluster is not running.
        init?(_ listener: Listener) {
            let environment = ProcessInfo.processInfo.environment
            let list = environment["WAYBILL_\(listener.rawValue)_PORTS"] ?? ""
            ports = list.split(separator: " ").compactMap { Int($0) }
            guard ports.count == 3,
                let control = environment["WAYBILL_\(listener.cluster)_CONTROL"]
            else { return nil }
            self.control = control
            tool = environment["WAYBILL_\(listener.cluster)_TOOL"]
        }

        /// The hosts from one node on; the first of them belongs into the URL.
        func hosts(from node: Int) -> [String] {
            (0..<ports.count).map { "127.0.0.1:\(ports[(node + $0) % ports.count])" }
        }

        /// Kills a node with signal 9, and waits until its process is gone.
        ///
        /// - Parameter node: The index of the node, from zero.
        func kill(_ node: Int) async throws {
            try await run(control, "kill", "\(node + 1)")
        }

        /// Starts a killed node, and waits until it serves clients and is in step with the others.
        func start(_ node: Int) async throws {
            try await run(control, "start", "\(node + 1)")
        }

        /// What the tool of NATS's cluster prints about each node; nil for a node that does not answer.
        func answers() async -> [String?] {
            guard let tool else { return [] }
            var answers: [String?] = []
            for node in ports.indices {
                let file = FileManager.default.temporaryDirectory.appendingPathComponent(
                    "answer-\(UUID())"
                )
                defer { try? FileManager.default.removeItem(at: file) }
                _ = FileManager.default.createFile(atPath: file.path, contents: nil)
                guard let output = try? FileHandle(forWritingTo: file),
                    (try? await run([tool, "\(node + 1)"], output: output)) != nil
                else {
                    answers.append(nil)
                    continue
                }
                answers.append(try? String(contentsOf: file, encoding: .utf8))
            }
            return answers
        }

        /// Runs a command of RabbitMQ's tool on a node.
        func command(_ node: Int, _ arguments: String...) async throws {
            try await run([try #require(tool), "\(node + 1)"] + arguments)
        }

        private func run(_ words: String...) async throws { try await run(words) }

        private func run(
            _ words: [String],
            output: FileHandle = .nullDevice
        ) async throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: words[0])
            process.arguments = Array(words.dropFirst())
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = output
            let code = try await withCheckedThrowingContinuation { continuation in
                process.terminationHandler = {
                    continuation.resume(returning: $0.terminationStatus)
                }
                do { try process.run() } catch { continuation.resume(throwing: error) }
            }
            guard code == 0 else { throw Failure(command: words) }
        }
    }
#endif
