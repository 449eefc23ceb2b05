import WaybillSession

extension ServiceAddresses {
    /// The schemes of MQTT, with IANA's ports.
    static let mqtt = ServiceAddresses(
        for: "MQTT",
        schemes: [
            .tcp("mqtt", port: 1_883), .tcp("mqtts", port: 8_883, isSecure: true),
            .http("ws", port: 80), .http("wss", port: 443, isSecure: true),
        ]
    )
}
