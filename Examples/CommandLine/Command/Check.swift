import ArgumentParser
import CommandText
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP

/// Shows what a server can do.
struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a server can do and where its limits are.",
        discussion: """
            MQTT and STOMP: connects once for each version, and sends five short messages to a topic with a random
            name. http: opens the event stream at the URL, and waits at most --wait for a first event.

            EXAMPLES:
              waybill check mqtts://broker.example
              waybill check https://news.example/events/today
            """
    )

    @OptionGroup var server: ServerOptions

    @Option(help: "How long to wait for a first event (http); 2s without it.", transform: time)
    var wait: Duration?

    func run() async throws {
        await Interruption.run { try await self.check() }
    }

    private func check() async throws -> ExitStatus {
        let settings = try await ServerSettings(server)
        var table = CheckTable()
        table.add("server", settings.address.shown)
        switch settings.family {
        case .mqtt: try await checkMQTT(settings, &table)
        case .stomp: try await checkSTOMP(settings, &table)
        case .events: try await checkEvents(settings, &table)
        }
        let output = Output()
        try output.writeLine(table.text)
        try output.flush()
        return .done
    }

    // MARK: MQTT

    private func checkMQTT(_ settings: ServerSettings, _ table: inout CheckTable) async throws {
        var failure: (any Error)?
        var isAccepted = false
        for version in [MQTTVersion.v5, .v3_1_1] {
            var settings = settings
            settings.mqttVersion = version
            do {
                let rows = try await Client(settings).connected { client, receipt in
                    var rows = CheckTable()
                    if version == .v5, let connack = client.connack {
                        rows.add(connack)
                    }
                    if let tls = receipt.tls { rows.add("TLS", tls.version) }
                    rows.add(try await Self.roundTrip(client))
                    return rows
                }
                isAccepted = true
                table.add("MQTT \(version.rawValue)", "yes")
                if version == .v5 { table.add(rows) } else { table.addMissing(rows) }
            } catch let error as Failure {
                failure = failure ?? error
                if error.status != .unsupported, error.status != .refused { throw error }
                table.add("MQTT \(version.rawValue)", "no: \(error.message)")
            }
        }
        if !isAccepted, let failure { throw failure }
    }

    /// The rows of a confirmed round trip, whose middle of five is shown.
    private static func roundTrip(_ client: Client) async throws -> [(String, String)] {
        let isMQTT = client.settings.family == .mqtt
        let name = "waybill-check-" + String(UInt64.random(in: 0 ..< .max), radix: 36)
        let topic = isMQTT ? name : "/topic/\(name)"
        let command: EntryCommand =
            isMQTT ? .send(qos: .atLeastOnce) : .send(qos: .atMostOnce, .receipt(.automatic))
        var times: [Int] = []
        do {
            for _ in 0..<5 {
                let begin = ContinuousClock.now
                _ = try await client.provider.request(
                    AnyEntry(topic: topic, command: command, body: .bytes(Array("check".utf8)))
                )
                times.append((ContinuousClock.now - begin).nanoseconds)
            }
        } catch let error as WaybillError where error.code != .connectionLost {
            return [("round trip", "not measured: \(error.message)")]
        }
        let what = isMQTT ? "PUBLISH to PUBACK" : "SEND to RECEIPT"
        return [("round trip", "\(shown(nanoseconds: times.sorted()[2])) (\(what))")]
    }

    // MARK: STOMP

    private func checkSTOMP(_ settings: ServerSettings, _ table: inout CheckTable) async throws {
        var failure: Failure?
        var isAccepted = false
        for version in [STOMPConfiguration.Version.v1_2, .v1_1, .v1_0] {
            var needs = Client.Needs()
            needs.stompVersions = [version]
            do {
                let rows = try await Client(settings, needs).connected { client, receipt in
                    var rows = CheckTable()
                    let names = [
                        ("server", "server software"), ("heart-beat", "heart-beat (ms)"),
                        ("session", "session"),
                    ]
                    for (header, name) in names {
                        rows.add(name, receipt.headers[header] ?? "not stated")
                    }
                    if let tls = receipt.tls { rows.add("TLS", tls.version) }
                    let trip = try await Self.roundTrip(client)
                    let hasReceipts = !trip[0].1.hasPrefix("not measured")
                    rows.add("receipts", hasReceipts ? "yes" : "no")
                    rows.add(trip)
                    return rows
                }
                table.add("STOMP \(version.number)", "yes")
                if !isAccepted { table.add(rows) }
                isAccepted = true
            } catch let error as Failure {
                failure = failure ?? error
                guard [.unsupported, .refused, .connectionLost].contains(error.status) else {
                    throw error
                }
                table.add("STOMP \(version.number)", "no: \(error.message)")
            }
        }
        if !isAccepted, let failure { throw failure }
    }

    // MARK: Event streams

    private func checkEvents(
        _ settings: ServerSettings,
        _ table: inout CheckTable
    ) async throws {
        let client = try Client(settings)
        guard let transport = client.transport as? SSETransport else { return }
        let openings = transport.streamEvents()
        let begin = ContinuousClock.now
        let wait = wait ?? .seconds(2)
        let rows = try await client.connected { client in
            let messages = try await client.provider.messages(
                AnyEntry(topics: [""], command: .subscribe)
            )
            var rows = CheckTable()
            rows.add("opened in", shown(nanoseconds: (ContinuousClock.now - begin).nanoseconds))
            for await event in openings {
                guard case .opened(_, let response, _) = event else { continue }
                rows.add("status", "\(response.status)")
                for name in ["content-type", "content-encoding", "server", "cache-control"] {
                    rows.add(name, response.headers[name] ?? "not stated")
                }
                break
            }
            let timer = Task {
                try await Task.sleep(for: wait)
                messages.cancel()
            }
            defer { timer.cancel() }
            var first = "none within \(shown(nanoseconds: wait.nanoseconds))"
            for try await message in messages {
                let type = message[.eventType] ?? "message"
                let id = message.id.map { "id \($0)" } ?? "no id"
                first = "\(type), \(message.body.count) bytes, \(id)"
                break
            }
            rows.add("first event", first)
            return rows
        }
        table.add(rows)
        table.add("retry", await retryTime(settings, wait))
    }

    /// The reconnection time that the server sets, which only an `EventSource` tells.
    private func retryTime(_ settings: ServerSettings, _ wait: Duration) async -> String {
        let unset = Duration.seconds(1_234_567)
        guard
            let source = try? EventSource(
                url: settings.url,
                configure: { configuration in
                    configuration.headers = settings.headers
                    if let token = settings.token {
                        configuration.headers["Authorization"] = "Bearer \(token)"
                    }
                    configuration.userName = settings.userName
                    configuration.password = settings.password
                    configuration.tls = settings.tls
                    configuration.reconnection = ReconnectionPolicy()
                    configuration.reconnection.initialDelay = unset
                    configuration.reconnection.maximumDelay = unset
                }
            )
        else { return "not measured" }
        source.connect()
        let end = ContinuousClock.now + wait
        while source.retryTime == unset, ContinuousClock.now < end, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(20))
        }
        let time = source.retryTime
        await source.shutdown()
        return time == unset ? "not set" : shown(nanoseconds: time.nanoseconds)
    }
}

extension STOMPConfiguration.Version {
    fileprivate var number: String {
        switch self {
        case .v1_0: "1.0"
        case .v1_1: "1.1"
        case .v1_2: "1.2"
        }
    }
}
