import CommandText
import Waybill

/// A message as a command of a shell that sends it, without secrets.
///
/// Credentials are named as variables of the environment. Left out are queries, and the values of headers that are not known
/// to be harmless.
struct PrintedCommand {
    let settings: ServerSettings
    var topic = ""
    var body: [UInt8]?
    var qos = QoS.atMostOnce
    var isRetained = false
    var headers = Headers()
    var contentType: String?
    var method: String?
    var isRequest = false

    /// The headers whose values are no credentials; those of all others are shown as an ellipsis.
    private static let plain = [
        "accept", "ack", "content-encoding", "content-language", "content-type", "correlation-id",
        "destination-type", "expires", "expiration", "persistent", "priority", "receipt",
        "reply-to", "selector", "type", "x-eventsource-event",
    ]

    private var shownHeaders: [(name: String, value: String)] {
        headers.map { header in
            let isPlain = Self.plain.contains(header.name.lowercased())
            return (header.name, isPlain ? header.value : "…")
        }
    }

    /// The line in a form.
    ///
    /// - Throws: `TextError` if that tool does not speak the protocol, or cannot hold the body in an argument.
    func line(as form: PrintedForm) throws -> String {
        if let body, String(validating: body, as: UTF8.self) == nil || body.contains(0) {
            throw TextError("a body that is no text cannot be printed as an argument")
        }
        return switch form {
        case .waybill: waybill
        case .mosquitto: try mosquitto
        case .curl: try curl
        }
    }

    /// The path of the request, without its query.
    private var path: String {
        settings.family == .events ? String(topic.prefix { $0 != "?" }) : topic
    }
    private var text: String { String(decoding: body ?? [], as: UTF8.self) }
    /// The URL without credentials; the query may have one, too.
    private var url: String { settings.address.shown }
    private var hasUser: Bool { settings.userName != nil || settings.address.userName != nil }
    private var hasPassword: Bool { settings.password != nil || settings.address.hasPassword }

    /// An option, in one argument if its value would be taken for another option.
    private static func option(_ short: String, _ long: String, _ value: String) -> [String] {
        value.hasPrefix("-") ? ["\(long)=\(value)"] : [short, value]
    }

    private var waybill: String {
        var arguments = ["waybill", isRequest ? "request" : "pub", url]
        if settings.address.isWebSocket, settings.family == .stomp {
            arguments += ["--protocol", "stomp"]
        }
        if let host = settings.virtualHost { arguments += ["--virtual-host", host] }
        if settings.family == .mqtt, settings.mqttVersion != .v5 {
            arguments += ["-V", settings.mqttVersion.rawValue]
        }
        if !path.isEmpty { arguments += Self.option("-t", "--topic", path) }
        if qos != .atMostOnce { arguments += ["-q", "\(qos.rawValue)"] }
        if isRetained { arguments.append("-r") }
        if let method { arguments += ["-X", method] }
        if let contentType { arguments += ["--content-type", contentType] }
        for header in shownHeaders { arguments += ["-H", "\(header.name): \(header.value)"] }
        if let body { arguments += body.isEmpty ? ["-n"] : Self.option("-m", "--message", text) }
        return Shell.line(arguments)
    }

    private var mosquitto: String {
        get throws {
            guard settings.family == .mqtt, !settings.address.isWebSocket else {
                throw TextError("mosquitto_pub speaks MQTT over mqtt and mqtts alone")
            }
            let address = settings.address
            var arguments = [isRequest ? "mosquitto_rr" : "mosquitto_pub", "-h", address.host]
            arguments += ["-p", "\(address.port)"]
            arguments += ["-V", settings.mqttVersion == .v5 ? "5" : "311", "-t", topic]
            if isRequest { arguments += ["-e", "waybill/reply"] }
            if qos != .atMostOnce { arguments += ["-q", "\(qos.rawValue)"] }
            if isRetained { arguments.append("-r") }
            if let contentType { arguments += ["-D", "publish", "content-type", contentType] }
            for header in shownHeaders {
                arguments += ["-D", "publish", "user-property", header.name, header.value]
            }
            arguments += body.map { $0.isEmpty ? ["-n"] : ["-m", text] } ?? []
            if address.isSecure {
                arguments += settings.tls.authorities.isEmpty ? ["--tls-use-os-certs"] : []
                for case .file(let path) in settings.tls.authorities {
                    arguments += ["--cafile", path]
                }
            }
            // As `Client` does: over TCP a token is the password.
            let hasToken = settings.token != nil && !hasPassword
            if hasToken, !hasUser, settings.mqttVersion != .v5 { arguments += ["-u", "token"] }
            return Shell.line(arguments) + (hasUser ? #" -u "$WAYBILL_USERNAME""# : "")
                + (hasPassword ? #" -P "$WAYBILL_PASSWORD""# : "")
                + (hasToken ? #" -P "$WAYBILL_TOKEN""# : "")
        }
    }

    private var curl: String {
        get throws {
            guard settings.family == .events else {
                throw TextError("curl sends over http and https alone")
            }
            var target = url
            if !path.isEmpty {
                target += (target.hasSuffix("/") ? "" : "/") + path.drop { $0 == "/" }
            }
            // Without -g, brackets and braces would stand for several URLs.
            var arguments = ["curl", "-sS", "-g"]
            if method != nil || body == nil { arguments += ["-X", method ?? "POST"] }
            if let contentType { arguments += ["-H", "Content-Type: \(contentType)"] }
            for header in shownHeaders { arguments += ["-H", "\(header.name): \(header.value)"] }
            // Not --data, which removes line feeds and reads a file after an @.
            if body != nil { arguments += ["--data-raw", text] }
            for case .file(let path) in settings.tls.authorities {
                arguments += ["--cacert", path]
            }
            arguments.append(target)
            let line = Shell.line(arguments)
            if settings.token != nil {
                return line + #" -H "Authorization: Bearer $WAYBILL_TOKEN""#
            }
            return line + (hasUser ? #" -u "$WAYBILL_USERNAME:$WAYBILL_PASSWORD""# : "")
        }
    }
}
