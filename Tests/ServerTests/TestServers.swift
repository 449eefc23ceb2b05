import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The servers that `Tests/Servers/with` has started, by the variables that it sets.
enum TestServers {
    static func port(_ variable: String) -> Int? {
        ProcessInfo.processInfo.environment["WAYBILL_\(variable)_PORT"].flatMap { Int($0) }
    }

    /// Whether a server that is not there is a failure.
    static let areRequired = ProcessInfo.processInfo.environment["WAYBILL_REQUIRE_SERVERS"] == "1"

    /// Whether there is time for tests that take a minute.
    static let isExtended = ProcessInfo.processInfo.environment["WAYBILL_EXTENDED"] == "1"

    /// Every variable that a complete set of servers has.
    static let all = [
        "MOSQUITTO", "MOSQUITTO_WS", "RABBITMQ_STOMP", "RABBITMQ_WS", "ACTIVEMQ_STOMP", "NGINX",
        "WEBSOCKETS", "WEBSOCKETS_PLAIN", "WEBSOCKETS_SMALL_WINDOW",
        "EVENTSOURCE_AIOHTTP", "EVENTSOURCE_STARLETTE", "EVENTSOURCE_RAW", "TINYPROXY",
    ]
}

@Suite("Servers are there when they must be") struct ServersRequired {
    @Test("With WAYBILL_REQUIRE_SERVERS=1 no suite may be skipped", arguments: TestServers.all)
    func required(_ variable: String) {
        #expect(TestServers.port(variable) != nil || !TestServers.areRequired)
    }
}
