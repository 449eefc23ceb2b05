import Waybill
import WaybillLink

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a URL says: where to connect, and as whom.
struct MQTTAddress: Sendable {
    /// The port of `mqtt` (IANA).
    static let defaultPort: UInt16 = 1883

    var endpoint: Endpoint
    var userName: String?
    var password: String?

    /// Reads `mqtt://user:password@host:port`.
    /// - Throws: `unsupported` for a scheme that cannot be spoken, `invalidEntry` for what is no such URL.
    init(_ url: URL) throws(WaybillError) {
        switch url.scheme?.lowercased() {
        case "mqtt": break
        case let scheme?:
            throw WaybillError(.unsupported, "MQTT over the scheme \(scheme) is not available")
        case nil: throw WaybillError(.invalidEntry, "the URL has no scheme, such as mqtt://")
        }
        guard var host = url.host(percentEncoded: false), !host.isEmpty else {
            throw WaybillError(.invalidEntry, "the URL names no host")
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard let port = UInt16(exactly: url.port ?? Int(Self.defaultPort)), port > 0 else {
            throw WaybillError(.invalidEntry, "the port of the URL is not between 1 and 65535")
        }
        guard url.path().isEmpty || url.path() == "/" else {
            throw WaybillError(.invalidEntry, "an mqtt URL has no path")
        }
        endpoint = Endpoint(host: host, port: port)
        userName = url.user(percentEncoded: false)
        password = url.password(percentEncoded: false)
    }
}
