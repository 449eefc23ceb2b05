public import Waybill

extension OptionName {
    static let connack = OptionKey<MQTTConnack>("connack")
}

extension Receipt {
    /// Whether the server resumed an earlier session, after `connect`.
    public var isSessionPresent: Bool {
        get { self[.sessionPresence] ?? false }
        set { self[.sessionPresence] = newValue ? true : nil }
    }

    /// The identifier under which the server knows the client, after `connect` over MQTT.
    ///
    /// It is the client's own, or the one that the server assigned.
    public var clientIdentifier: String? {
        get { self[.clientIdentifier] }
        set { self[.clientIdentifier] = newValue }
    }

    /// What an MQTT 5 server states of the connection and of its limits, after `connect`; nil for other protocols.
    public var connack: MQTTConnack? {
        get { self[.connack] }
        set { self[.connack] = newValue }
    }
}
