import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Makes the connection of a request or of an explicit connect, and ends it for a disconnect.
struct MQTTConnector: Sendable {
    let greeter: MQTTGreeter
    let session: MQTTSession
    /// Decides when to connect and when to end.
    let lifecycle: ConnectionLifecycle<MQTTConnection>

    var version: MQTTVersion { greeter.version }
    var configuration: MQTTConfiguration { greeter.configuration.value }

    /// Connects; see ``ConnectionLifecycle/connect(_:timeout:)``.
    func connect(_ request: Request) async throws -> Receipt {
        try await lifecycle.connect(
            greeter.greeting(request),
            timeout: request.command[.timeout]
        )
    }

    /// Sends DISCONNECT, and waits until the connection is closed.
    func disconnect(_ request: Request) async throws {
        let configured = configuration.session.expiry.map(MQTTMapping.seconds)
        let disconnectPacket = try MQTTDisconnectMapping.packet(
            request,
            version,
            sessionExpiry: session.lifetime?.requested ?? configured
        )
        try await lifecycle.disconnect(
            within: request.command[.timeout],
            drainingWithin: request.command[.drainTimeout]
        ) { $0.disconnectPacket = disconnectPacket }
    }

    /// Returns the connection for a request, and makes one if needed.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - check: Refuses an invalid request before a connection is made for it.
    /// - Returns: The connection.
    /// - Throws: The errors of `check` and of ``RequestPath/connection(for:greeting:)``.
    func connection(
        for request: Request,
        check: () throws(WaybillError) -> Void = { () throws(WaybillError) in }
    ) async throws -> MQTTConnection {
        if let connection = lifecycle.connected { return connection }
        try check()
        return try await lifecycle.requests.connection(for: request) { () throws(WaybillError) in
            try greeting(for: request)
        }
    }

    /// Returns the greeting of a connection that is made for a request.
    func greeting(for request: Request) throws(WaybillError) -> MQTTGreeting {
        try greeter.greeting(.connecting(for: request))
    }

    /// Authenticates the connection anew.
    func reauthenticate() async throws {
        guard version == .v5, configuration.authenticator != nil else {
            throw MQTTErrorMapping.noAuthenticator
        }
        guard let connection = lifecycle.connected else { throw WaybillError.noConnection }
        try await connection.reauthenticate()
    }
}
