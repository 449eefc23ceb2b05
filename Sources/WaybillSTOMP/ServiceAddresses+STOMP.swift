import WaybillSession

extension ServiceAddresses {
    /// The schemes of STOMP.
    static let stomp = ServiceAddresses(
        for: "STOMP",
        schemes: [
            .tcp("stomp", port: 61_613), .tcp("stomps", port: 61_614, isSecure: true),
            .http("ws", port: 80), .http("wss", port: 443, isSecure: true),
        ]
    )
}
