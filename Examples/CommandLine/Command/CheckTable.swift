import CommandText
import Waybill
import WaybillMQTT

/// Names and values in two columns.
struct CheckTable: Sendable {
    private var rows: [(name: String, value: String)] = []

    /// Adds a row; control characters of a server are shown as their numbers.
    mutating func add(_ name: String, _ value: String) {
        rows.append((name, TerminalText.escaped(value)))
    }

    mutating func add(_ rows: [(String, String)]) {
        for row in rows { add(row.0, row.1) }
    }

    mutating func add(_ other: CheckTable) { rows += other.rows }

    /// Adds the rows whose names are not there.
    mutating func addMissing(_ other: CheckTable) {
        for row in other.rows where !rows.contains(where: { $0.name == row.name }) {
            rows.append(row)
        }
    }

    /// Adds the limits of an MQTT 5 server (3.2.2.3).
    mutating func add(_ connack: MQTTConnack) {
        func word(_ isAvailable: Bool) -> String { isAvailable ? "yes" : "no" }
        func time(_ time: Duration?, else text: String) -> String {
            time.map { "\(shown(Int($0.components.seconds))) s" } ?? text
        }
        add("maximum QoS", "\(connack.maximumQoS.rawValue)")
        add("retained messages", word(connack.retainAvailable))
        add("wildcards", word(connack.wildcardSubscriptionAvailable))
        add("shared subscriptions", word(connack.sharedSubscriptionAvailable))
        add("subscription identifiers", word(connack.subscriptionIdentifiersAvailable))
        let size = connack.maximumPacketSize.map { "\(shown($0)) bytes" }
        add("maximum packet size", size ?? "no limit stated")
        add("receive maximum", shown(connack.receiveMaximum))
        add("topic alias maximum", shown(connack.topicAliasMaximum))
        add("session expiry", time(connack.sessionExpiry, else: "as requested"))
        add("server keep alive", time(connack.serverKeepAlive, else: "as requested"))
        if let reference = connack.serverReference { add("server reference", reference) }
    }

    /// The table.
    var text: String {
        let width = rows.map(\.name.count).max() ?? 0
        let lines = rows.map { row in
            row.name + String(repeating: " ", count: width - row.name.count + 2) + row.value
        }
        return lines.joined(separator: "\n")
    }
}

extension Client {
    /// The server's CONNACK (MQTT 5, 3.2); nil for other protocols.
    var connack: MQTTConnack? { (transport as? MQTTTransport)?.connack }
}
