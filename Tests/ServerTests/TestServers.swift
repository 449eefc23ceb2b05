import Testing
import Waybill

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The servers that `Tests/Servers/with` has started, found by the environment variables that it sets.
enum TestServers {
    /// A time limit that strikes only where something hangs, however busy the machine is.
    static let patience = Duration.seconds(600)

    static func port(_ variable: String) -> Int? {
        ProcessInfo.processInfo.environment["WAYBILL_\(variable)_PORT"].flatMap { Int($0) }
    }

    /// The URL of a server. A server with TLS is recognised by its variable.
    static func url(_ variable: String, _ scheme: String) -> String {
        let isSecure = ["TLS", "WSS", "STOMPS", "MUTUAL"].contains { variable.contains($0) }
        return "\(scheme)\(isSecure ? "s" : "")://127.0.0.1:\(port(variable) ?? 0)"
    }

    private static let folder = ProcessInfo.processInfo.environment["WAYBILL_CERTIFICATES"] ?? ""

    /// A file that `Tests/Servers/certificates` has made for this run.
    static func certificate(_ name: String) -> TLSOptions.Material {
        .file(certificatePath(name))
    }

    /// The path of such a file.
    static func certificatePath(_ name: String) -> String { "\(folder)/\(name)" }

    /// The SHA-256 hash of the servers' public key.
    static let publicKeyHash: [UInt8]? = {
        guard let text = try? String(contentsOfFile: "\(folder)/server.pin", encoding: .utf8) else {
            return nil
        }
        let digits = Array(text)
        return stride(from: 0, to: 64, by: 2).compactMap {
            UInt8(String(digits[$0..<$0 + 2]), radix: 16)
        }
    }()

    /// The authorities that signed the servers' certificates.
    static let authorities = [certificate("ca.pem")]

    /// The variables of nginx without TLS and with it.
    static let nginxes = ["NGINX", "NGINX_TLS"].filter { port($0) != nil }

    /// True when the servers have listeners with TLS.
    static let areSecure =
        ["MOSQUITTO_TLS", "RABBITMQ_STOMPS", "NGINX_TLS"].allSatisfy { port($0) != nil }

    /// True when a missing server is a failure.
    static let areRequired = ProcessInfo.processInfo.environment["WAYBILL_REQUIRE_SERVERS"] == "1"

    /// True when tests may take a minute.
    static let isExtended = ProcessInfo.processInfo.environment["WAYBILL_EXTENDED"] == "1"

    /// The variables of a complete set of servers.
    static let all = [
        "MOSQUITTO", "MOSQUITTO_WS", "MOSQUITTO_PACKAGED", "MOSQUITTO_DEFAULTS",
        "RABBITMQ_STOMP", "RABBITMQ_WS",
        "ACTIVEMQ_STOMP", "NGINX",
        "RABBITMQ_MQTT", "ACTIVEMQ_MQTT", "EJABBERD", "EJABBERD_WS", "NATS_MQTT", "NATS_WS",
        "WEBSOCKETS", "WEBSOCKETS_PLAIN", "WEBSOCKETS_SMALL_WINDOW",
        "MOSQUITTO_TLS", "MOSQUITTO_MUTUAL", "MOSQUITTO_WSS", "MOSQUITTO_MUTUAL_WSS",
        "MOSQUITTO_REFUSED_TLS", "MOSQUITTO_REFUSED_WSS", "MOSQUITTO_BAD", "RABBITMQ_STOMPS",
        "RABBITMQ_WSS", "NGINX_TLS", "NGINX_MUTUAL",
        "NGINX_TLS_1_2", "TINYPROXY", "EVENTSOURCE_AIOHTTP", "EVENTSOURCE_STARLETTE",
        "EVENTSOURCE_RAW", "TOKENS", "TOKENS_MQTT", "TOKENS_RABBITMQ_MQTT", "TOKENS_STOMP",
        "TOKENS_NGINX", "TOKENS_PROPERTY", "TOKENS_HEADER", "SCRAM", "SCRAM_COSTLY",
    ]
}

@Suite("Servers are there when they must be") struct ServersRequired {
    @Test("With WAYBILL_REQUIRE_SERVERS=1 no suite may be skipped", arguments: TestServers.all)
    func required(_ variable: String) {
        #expect(TestServers.port(variable) != nil || !TestServers.areRequired)
    }

    private static let missing = TestServers.all.filter { TestServers.port($0) == nil }

    @Test(
        "What is not running is named, since suites that run for each server leave it out",
        .enabled(
            if: missing.isEmpty || TestServers.areRequired,
            "not running: \(missing.joined(separator: ", "))"
        )
    )
    func named() {
        #expect(Self.missing == [])
    }

    @Test(
        "Nor may what needs TLS: there is an openssl command, which made certificates",
        .enabled(
            if: TestServers.publicKeyHash != nil || TestServers.areRequired,
            "no certificates: what runs over TLS is left out"
        )
    )
    func certificates() {
        #expect(TestServers.publicKeyHash != nil)
    }
}
