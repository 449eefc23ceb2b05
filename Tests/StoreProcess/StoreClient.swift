#if os(Linux)
    import Foundation
    import Glibc
    import Waybill
    import WaybillMQTT
    import WaybillSQLite
    import WaybillSSE
    import WaybillSTOMP

    /// A client with a store on disk.
    struct StoreClient {
        private let arguments: [String]

        init(_ arguments: [String]) {
            self.arguments = arguments
        }

        func run() async throws {
            switch arguments[0] {
            case "send":
                try await send(
                    arguments[6] == "2" ? .exactlyOnce : .atLeastOnce,
                    path: arguments[4],
                    try Ledger(arguments[5]),
                    from: Int(arguments[7]) ?? 0,
                    arguments[8]
                )
            case "once":
                try await once(
                    path: arguments[4],
                    .text(arguments[5]),
                    arguments[6] == "2" ? .exactlyOnce : .atLeastOnce,
                    arguments[7]
                )
            case "listen": try await listen(path: arguments[4], count: Int(arguments[5]) ?? 0)
            default: try await finish(path: arguments[4])
            }
        }

        private var name: String { arguments[3] }

        private func transport(
            _ store: any SessionStore,
            isClean: Bool = false
        ) throws -> any Transport {
            var queue = OfflinePolicy()
            if ProcessInfo.processInfo.environment["WAYBILL_WAITS"] == "no" {
                queue.waitsForConnection = false
            }
            guard arguments[2] != "http" else {
                return try SSETransport(url: "http://127.0.0.1:\(arguments[1])") {
                    $0.store = store
                    $0.timeouts.confirmation = .seconds(3_600)
                    $0.reconnection.initialDelay = .milliseconds(10)
                }
            }
            guard arguments[2] != "stomp" else {
                return try STOMPTransport(url: "stomp://guest:guest@127.0.0.1:\(arguments[1])") {
                    $0.host = "/"
                    $0.store = store
                    $0.offline = queue
                    // A test ends the process while it waits, however late that is.
                    $0.timeouts.confirmation = .seconds(3_600)
                    $0.reconnection.initialDelay = .milliseconds(10)
                }
            }
            let version: MQTTConfiguration.Version = arguments[2] == "5" ? .v5 : .v3_1_1
            var configuration = MQTTConfiguration(version: version)
            configuration.clientIdentifier = name
            configuration.session.cleanStart = isClean
            if version == .v5 { configuration.session.expiry = .seconds(3_600) }
            configuration.session.store = store
            configuration.offline = queue
            configuration.reconnection.initialDelay = .milliseconds(10)
            return try MQTTTransport(
                url: "mqtt://127.0.0.1:\(arguments[1])",
                configuration: configuration
            )
        }

        /// Sends numbers, several at a time, until the process is killed.
        private func send(
            _ qos: QoS,
            path: String,
            _ ledger: Ledger,
            from first: Int,
            _ level: String
        ) async throws {
            let store = NumberedStore(
                store: try SQLiteSessionStore(path: path, options: StoreProcess.options(level)),
                ledger: ledger
            )
            let provider = Provider<AnyEntry>(transport: try transport(store))
            try await provider.connect()
            StoreProcess.say("connected")
            let taskCount = 20
            await withTaskGroup { group in
                for task in 0..<taskCount {
                    group.addTask {
                        var number = first + task
                        while true {
                            do {
                                try await provider.request(
                                    .send(topic: name, body: .text("\(number)"), qos: qos)
                                )
                            } catch {
                                StoreProcess.say("\(error)")
                            }
                            number += taskCount
                        }
                    }
                }
            }
        }

        /// Sends one message, says what became of it, and ends the process at once, or waits to be killed.
        private func once(path: String, _ body: EntryBody, _ qos: QoS, _ end: String) async throws {
            let store = try SQLiteSessionStore(path: path)
            let transport = try transport(store, isClean: end == "clean")
            let provider = Provider<AnyEntry>(transport: transport).intercepted(Stamp())
            let headers: Headers =
                arguments[2] == "http"
                ? ["Idempotency-Key": "\(UInt64.random(in: 0 ... .max))"] : [:]
            let send = AnyEntry.send(topic: name, body: body, headers: headers, qos: qos)
            do {
                switch end {
                case "withConnection":
                    try await provider.withConnection { _ = try await provider.request(send) }
                case "run":
                    let running = Task { try await provider.run() }
                    try await provider.request(send)
                    running.cancel()
                    try await running.value
                case "leave":
                    let sending = Task { try await provider.request(send) }
                    while store.byteCount == 0 { try await Task.sleep(for: .milliseconds(5)) }
                    await provider.shutdown()
                    _ = try await sending.value
                case "drop", "vanish":
                    Task { try await provider.request(send) }
                    while store.byteCount == 0 { try await Task.sleep(for: .milliseconds(5)) }
                    // The count has it before the disk.
                    try await store.flush()
                    if end == "drop" { try await provider.disconnect() }
                    StoreProcess.say("stored")
                    if end == "drop" { return }
                default: try await provider.request(send)
                }
                if end != "vanish" { StoreProcess.say("sent") }
            } catch let error as WaybillError {
                StoreProcess.say("\(error.code.name) \(error.mayHaveArrived)")
            }
            switch end {
            case "disconnect", "clean": try await provider.disconnect()
            case "shutdown": await provider.shutdown()
            case "pause": await provider.pause()
            case "kill", "vanish": while true { try await Task.sleep(for: .seconds(60)) }
            default: break
            }
        }

        /// Says each event of a stream, and waits for the end of the process after so many.
        private func listen(path: String, count: Int) async throws {
            let store = try SQLiteSessionStore(path: path)
            let provider = Provider<AnyEntry>(transport: try transport(store))
            var messages = try await provider.messages(.subscribe(topic: name)).makeAsyncIterator()
            for _ in 0..<count {
                guard let message = try await messages.next() else { break }
                try await store.flush()
                StoreProcess.say(message.body.text ?? "")
            }
            StoreProcess.say("taken")
            while true { try await Task.sleep(for: .seconds(60)) }
        }

        /// Sends what the store has, and ends when it is empty.
        private func finish(path: String) async throws {
            let store = try SQLiteSessionStore(path: path)
            let provider = Provider<AnyEntry>(transport: try transport(store)).intercepted(Stamp())
            try await provider.connect()
            while store.byteCount > 0 { try await Task.sleep(for: .milliseconds(5)) }
            await provider.shutdown()
            store.close()
        }
    }

    /// Adds a secret to each send.
    private struct Stamp: Interceptor {
        private let value = ProcessInfo.processInfo.environment["WAYBILL_STAMP"]

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard let value, request.command.kind == .send else { return }
            request.headers.append(name: "authorization", value: value)
        }
    }

    /// A store that writes the number of each message into a ledger when the message is stored.
    struct NumberedStore: SessionStore {
        let store: SQLiteSessionStore
        let ledger: Ledger

        func insert(_ message: StoredMessage) throws -> StoredMessage.ID {
            let id = try store.insert(message)
            note(message)
            return id
        }

        func add(_ message: StoredMessage) async throws -> StoredMessage.ID {
            let id = try await store.add(message)
            note(message)
            return id
        }

        private func note(_ message: StoredMessage) {
            guard let number = Int(String(decoding: message.body, as: UTF8.self)) else { return }
            ledger.append(number)
        }

        func flush() async throws { try await store.flush() }
        func remove(_ id: StoredMessage.ID) { store.remove(id) }
        func messages() throws -> [StoredMessage] { try store.messages() }
        func removeAll() { store.removeAll() }
        func setPendingUnsubscribes(_ filters: [String]) { store.setPendingUnsubscribes(filters) }
        func pendingUnsubscribes() throws -> [String] { try store.pendingUnsubscribes() }
        func beginSession(_ name: String) throws -> Bool { try store.beginSession(name) }
        func loseSession() { store.loseSession() }
        func setStage(
            _ stage: StoredMessage.Stage,
            of id: StoredMessage.ID,
            done: @escaping @Sendable () -> Void
        ) {
            store.setStage(stage, of: id, done: done)
        }
        func insertReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
            store.insertReceived(identifier, done: done)
        }
        func removeReceived(_ identifier: UInt16, done: @escaping @Sendable () -> Void) {
            store.removeReceived(identifier, done: done)
        }
        func receivedIdentifiers() throws -> [UInt16] { try store.receivedIdentifiers() }
    }
#endif
