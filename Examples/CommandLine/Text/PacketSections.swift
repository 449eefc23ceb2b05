/// The section of a specification that describes a packet or frame, by its name.
package enum PacketSections {
    /// The sections of MQTT 5.0; those of 3.1.1 have the same numbers, except AUTH, which it lacks.
    private static let mqtt = [
        "CONNECT": "3.1", "CONNACK": "3.2", "PUBLISH": "3.3", "PUBACK": "3.4", "PUBREC": "3.5",
        "PUBREL": "3.6", "PUBCOMP": "3.7", "SUBSCRIBE": "3.8", "SUBACK": "3.9",
        "UNSUBSCRIBE": "3.10", "UNSUBACK": "3.11", "PINGREQ": "3.12", "PINGRESP": "3.13",
        "DISCONNECT": "3.14", "AUTH": "3.15",
    ]
    /// The headings of STOMP 1.2, which has no numbers.
    private static let stomp = [
        "CONNECT": "CONNECT or STOMP Frame", "STOMP": "CONNECT or STOMP Frame",
        "CONNECTED": "CONNECTED Frame", "SEND": "SEND", "SUBSCRIBE": "SUBSCRIBE",
        "UNSUBSCRIBE": "UNSUBSCRIBE", "ACK": "ACK", "NACK": "NACK", "BEGIN": "BEGIN",
        "COMMIT": "COMMIT", "ABORT": "ABORT", "DISCONNECT": "DISCONNECT", "MESSAGE": "MESSAGE",
        "RECEIPT": "RECEIPT", "ERROR": "ERROR", "heart-beat": "Heart-beating",
    ]

    /// The specification with the section.
    ///
    /// - Parameters:
    ///   - text: The text of the record, which begins with the name of the packet.
    ///   - family: The protocol.
    /// - Returns: For instance `MQTT 3.3`; nil for a name that is not in the table.
    package static func section(of text: String, in family: ServerAddress.Family) -> String? {
        let name = String(text.prefix { $0 != " " && $0 != ":" })
        switch family {
        case .mqtt: return mqtt[name].map { "MQTT \($0)" }
        case .stomp: return stomp[name].map { "STOMP 1.2, \($0)" }
        case .events:
            if name == "event" { return "HTML 9.2.6" }
            if name == "body" { return "RFC 9110, 6.4" }
            if name.first?.isNumber == true { return "RFC 9110, 15" }
            return name.allSatisfy(\.isUppercase) ? "RFC 9110, 9.3" : nil
        }
    }
}
