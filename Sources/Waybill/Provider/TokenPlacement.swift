/// The place of a token in a request, and the commands that carry it.
///
/// | service | placement |
/// |---|---|
/// | HTTP: event streams and sends | ``bearer`` |
/// | STOMP, a header of CONNECT | `.header("Authorization", on: [.connect]) { "Bearer \($0)" }` |
/// | STOMP, `passcode` of CONNECT | ``password(userName:)`` |
/// | MQTT, password of CONNECT | ``password(userName:)`` |
/// | MQTT, user name of CONNECT | ``userName(password:)`` |
/// | MQTT 5, a user property | `.header("token", on: [.connect]) { $0 }`; also `on: [.send]` |
/// | a WebSocket, a field of the upgrade request | ``upgradeHeader(_:_:)`` |
///
/// Requests of other commands neither wait for a token nor refresh one.
public struct TokenPlacement: Sendable {
    private let commands: Set<EntryCommand.Kind>
    private let body: @Sendable (_ token: String, _ request: inout Request) -> Void

    /// Places tokens by a custom closure.
    ///
    /// - Parameters:
    ///   - commands: The commands whose requests need the token.
    ///   - body: Adds the token to a request.
    public init(
        on commands: Set<EntryCommand.Kind>,
        _ body: @escaping @Sendable (_ token: String, _ request: inout Request) -> Void
    ) {
        self.commands = commands
        self.body = body
    }

    /// Places the token in `Authorization: Bearer …` on sends and subscriptions (RFC 6750, 2.1).
    public static var bearer: TokenPlacement {
        .header("Authorization", on: [.send, .subscribe]) { "Bearer \($0)" }
    }

    /// Places the token in a header and replaces the header's earlier values.
    ///
    /// - Parameters:
    ///   - name: The name of the header.
    ///   - commands: The commands whose requests need it.
    ///   - format: Makes the value from the token.
    /// - Returns: The placement.
    public static func header(
        _ name: String,
        on commands: Set<EntryCommand.Kind>,
        _ format: @escaping @Sendable (String) -> String
    ) -> TokenPlacement {
        TokenPlacement(on: commands) { token, request in request.headers[name] = format(token) }
    }

    /// Places the token in the password of `connect`.
    ///
    /// - Parameter userName: The user name; nil keeps that of the entry.
    /// - Returns: The placement.
    public static func password(userName: String? = nil) -> TokenPlacement {
        .connectOptions { token, command in
            command[.password] = token
            if let userName { command[.userName] = userName }
        }
    }

    /// Places the token in the user name of `connect`, as some services expect.
    ///
    /// - Parameter password: The password; nil keeps that of the entry.
    /// - Returns: The placement.
    public static func userName(password: String? = nil) -> TokenPlacement {
        .connectOptions { token, command in
            command[.userName] = token
            if let password { command[.password] = password }
        }
    }

    /// Places the token in a field of the HTTP request that opens a WebSocket (RFC 6455, 4.1) and replaces its earlier
    /// values.
    ///
    /// - Parameters:
    ///   - name: The name of the field, `Authorization` by default.
    ///   - format: Makes the value from the token: by default `Bearer …` (RFC 6750, 2.1).
    /// - Returns: The placement.
    public static func upgradeHeader(
        _ name: String = "Authorization",
        _ format: @escaping @Sendable (_ token: String) -> String = { "Bearer \($0)" }
    ) -> TokenPlacement {
        .connectOptions { token, command in
            var fields = command[.upgradeHeaders] ?? [:]
            fields[name] = format(token)
            command[.upgradeHeaders] = fields
        }
    }

    /// Places the token anywhere in the options of `connect`.
    ///
    /// - Parameter body: Adds the token to the options of the command.
    /// - Returns: The placement.
    public static func connectOptions(
        _ body: @escaping @Sendable (_ token: String, _ command: inout EntryCommand) -> Void
    ) -> TokenPlacement {
        TokenPlacement(on: [.connect]) { token, request in
            body(token, &request.command)
        }
    }

    func covers(_ request: Request) -> Bool { commands.contains(request.command.kind) }

    func apply(_ token: String, to request: inout Request) { body(token, &request) }
}
