import ArgumentParser
import CommandText
import Waybill

/// A header or property of the command line, `NAME: VALUE` or `NAME=VALUE`.
struct HeaderArgument: ExpressibleByArgument {
    let name: String
    let value: String

    init?(argument: String) {
        guard let mark = argument.firstIndex(where: { $0 == ":" || $0 == "=" }),
            mark > argument.startIndex
        else { return nil }
        name = String(argument[..<mark])
        let rest = argument[argument.index(after: mark)...]
        value = String(argument[mark] == ":" ? rest.drop { $0 == " " } : rest)
    }
}

/// Reads a time such as `250ms`, `1.5s`, `2m` or `30`, which are seconds.
func time(_ argument: String) throws -> Duration {
    guard let time = Duration(argument: argument) else {
        throw ValidationError(
            "a time is a number with ms, s, m or h, up to 100000h, not \(Shell.quoted(argument))"
        )
    }
    return time
}

/// The version of MQTT.
enum MQTTVersion: String, ExpressibleByArgument, CaseIterable {
    case v5 = "5"
    case v3_1_1 = "3.1.1"
}

/// A protocol over a WebSocket.
enum WebSocketProtocol: String, ExpressibleByArgument, CaseIterable {
    case mqtt
    case stomp
}

/// The options that say where and how to connect.
struct ServerOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The server: mqtt, mqtts, ws, wss, stomp, stomps, http or https.",
            discussion: "Left out with --server.",
            valueName: "url"
        )
    )
    var url: String?

    @Option(
        help: ArgumentHelp(
            "A server of the file of servers.",
            discussion: "The file is $WAYBILL_SERVERS, or ~/.config/waybill/servers.",
            valueName: "name"
        )
    )
    var server: String?

    @Option(name: .long, help: "The protocol over ws and wss: mqtt (the default) or stomp.")
    var `protocol`: WebSocketProtocol?

    @Option(name: [.customShort("V"), .long], help: "The version of MQTT: 5 (the default), 3.1.1.")
    var mqttVersion: MQTTVersion?

    @Option(
        name: [.customShort("i"), .customLong("client-id")],
        help: "The MQTT client identifier."
    )
    var clientIdentifier: String?

    @Flag(help: "Keep the MQTT session, with --client-id, for a day after the connection.")
    var keepSession = false

    @Option(help: "The STOMP virtual host; RabbitMQ needs /.")
    var virtualHost: String?

    @Option(
        name: [.customShort("k"), .long],
        help: "The keep alive or heart-beat, such as 30s.",
        transform: time
    )
    var keepAlive: Duration?

    @Option(help: "The timeout of connecting; 10s without it.", transform: time)
    var connectTimeout: Duration?

    @OptionGroup(title: "Credentials (or WAYBILL_USERNAME, WAYBILL_PASSWORD, WAYBILL_TOKEN)")
    var credentials: CredentialOptions

    @OptionGroup(title: "TLS")
    var tls: TLSArguments

    @OptionGroup(title: "Will")
    var will: WillArguments
}

/// The options for user, password and token, none of which is itself an argument.
struct CredentialOptions: ParsableArguments {
    @Option(name: [.customShort("u"), .customLong("username")], help: "The user.")
    var userName: String?

    @Option(help: ArgumentHelp("A file whose first line is the password.", valueName: "file"))
    var passwordFile: String?

    @Flag(help: "Ask for the password at the terminal.")
    var askPassword = false

    @Option(
        help: ArgumentHelp(
            "A file whose first line is the token.",
            discussion: "Bearer token over http, https, ws and wss; else the password.",
            valueName: "file"
        )
    )
    var tokenFile: String?
}

/// The options for TLS.
struct TLSArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A file with the certificates of authorities to trust, in PEM.",
            valueName: "file"
        )
    )
    var ca: String?

    @Option(help: ArgumentHelp("A file with the client's certificate, in PEM.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("A file with the key of the certificate.", valueName: "file"))
    var key: String?

    @Option(help: "The name that the server's certificate must have.")
    var serverName: String?

    @Flag(help: "Accept any certificate, also that of an attacker.")
    var dangerouslyAcceptAnyCertificate = false
}

/// The options for the message that the server sends when the connection is lost.
struct WillArguments: ParsableArguments {
    @Option(help: "The topic of the will.")
    var willTopic: String?

    @Option(parsing: .unconditional, help: "The text of the will.")
    var willMessage: String?

    @Option(help: "The quality of service of the will.")
    var willQos = 0

    @Flag(help: "The server keeps the will as the topic's retained message.")
    var willRetain = false
}

/// Where and how to connect, of the arguments, the environment and the file of servers.
struct ServerSettings: Sendable {
    let url: String
    let address: ServerAddress
    let family: ServerAddress.Family
    var mqttVersion = MQTTVersion.v5
    var clientIdentifier: String?
    var keepsSession = false
    var virtualHost: String?
    var keepAlive: Duration?
    var connectTimeout: Duration?
    var userName: String?
    var password: String?
    var token: String?
    var tls = TLSOptions()
    var will: WillArguments?
    var headers = Headers()

    /// Collects the settings: an argument comes before the environment, that before the file.
    ///
    /// - Throws: `TextError`, `Failure`, `CancellationError`.
    init(_ options: ServerOptions) async throws {
        var file: ServersFile.Server?
        if let name = options.server { file = try await Self.server(named: name) }
        guard let url = options.url ?? file?["url"] else {
            throw TextError("name a server, as in 'mqtt://127.0.0.1', or use --server NAME")
        }
        self.url = url
        address = try ServerAddress(url)
        let named = options.protocol ?? file?["protocol"].flatMap(WebSocketProtocol.init)
        family = address.family ?? (named == .stomp ? .stomp : .mqtt)
        mqttVersion =
            options.mqttVersion ?? file?["mqtt-version"].flatMap(MQTTVersion.init) ?? .v5
        clientIdentifier = options.clientIdentifier ?? file?["client-id"]
        keepsSession = options.keepSession
        guard !keepsSession || clientIdentifier != nil else {
            throw TextError("--keep-session needs --client-id, by which the session is found again")
        }
        virtualHost = options.virtualHost ?? file?["virtual-host"]
        keepAlive = options.keepAlive ?? file?["keep-alive"].flatMap(Duration.init(argument:))
        guard keepAlive ?? .zero <= .seconds(65_535) else {
            throw TextError("the keep alive is from 0s to 65535s (MQTT 5, 3.1.2.10)")
        }
        connectTimeout = options.connectTimeout
        if options.will.willTopic != nil {
            _ = try qualityOfService(options.will.willQos)
            will = options.will
        }
        guard family == .mqtt || will == nil && !keepsSession else {
            throw TextError("a will and a kept session are of MQTT alone: leave them out")
        }
        for text in file?.all("header") ?? [] {
            guard let header = HeaderArgument(argument: text) else {
                throw TextError("write a header as name: value in the file of servers")
            }
            headers.append(name: header.name, value: header.value)
        }
        try collectTLS(options.tls, file)
        try await collectCredentials(options.credentials, file)
    }

    private mutating func collectTLS(_ options: TLSArguments, _ file: ServersFile.Server?) throws {
        func path(_ argument: String?, _ key: String) throws -> String? {
            guard let path = (argument ?? file?[key]).map(Input.expandingHome) else { return nil }
            guard Input.isReadable(path) else {
                throw Failure(.file, "\(path) cannot be read: \(Output.reason). Name another file.")
            }
            return path
        }
        if let path = try path(options.ca, "ca") { tls.authorities = [.file(path)] }
        let certificate = try path(options.certificate, "certificate")
        let key = try path(options.key, "key")
        if let certificate {
            tls.identity = .certificate(.file(certificate), key: .file(key ?? certificate))
        } else if key != nil {
            throw TextError("--key needs --certificate")
        }
        tls.serverName = options.serverName
        tls.dangerouslyAcceptsAnyCertificate = options.dangerouslyAcceptAnyCertificate
    }

    private mutating func collectCredentials(
        _ options: CredentialOptions,
        _ file: ServersFile.Server?
    ) async throws {
        userName = options.userName ?? Input.environment("WAYBILL_USERNAME") ?? file?["username"]
        if options.askPassword {
            password = try await Input.password(for: userName ?? address.shown)
        } else if let path = options.passwordFile {
            password = try await Input.secret(in: path)
        } else if let text = Input.environment("WAYBILL_PASSWORD") ?? file?["password"] {
            password = text
        } else if let path = file?["password-file"] {
            password = try await Input.secret(in: path)
        }
        if let path = options.tokenFile {
            token = try await Input.secret(in: path)
        } else if let text = Input.environment("WAYBILL_TOKEN") {
            token = text
        } else if let path = file?["token-file"] {
            token = try await Input.secret(in: path)
        }
    }

    /// The file of servers: `$WAYBILL_SERVERS`, or `waybill/servers` in the folder of settings.
    private static func server(named name: String) async throws -> ServersFile.Server {
        let folder = Input.environment("XDG_CONFIG_HOME") ?? Input.expandingHome("~/.config")
        let path = Input.environment("WAYBILL_SERVERS") ?? folder + "/waybill/servers"
        let text = String(decoding: try await Input.contents(of: path), as: UTF8.self)
        do {
            let server = try ServersFile(text).server(named: name)
            guard server["password"] == nil || !Input.isOpenToOthers(path) else {
                throw Failure(
                    .file,
                    "\(path) has a password and others may read it. Use 'chmod 600 \(Shell.quoted(path))'."
                )
            }
            return server
        } catch let error as TextError {
            throw TextError("\(path): \(error)")
        }
    }
}
