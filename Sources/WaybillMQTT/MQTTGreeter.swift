import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// The greeting of an MQTT client: CONNECT, with the request that led to it.
struct MQTTGreeting: Sendable {
    /// The connect request.
    var request: Request
    var packet: MQTTConnect
    /// Further header fields of the WebSocket's upgrade request.
    var upgradeHeaders: Headers = [:]
    /// Whether the transport connects on its own.
    var isUnattended = false
}

/// Makes CONNECT packets of connect requests.
final class MQTTGreeter: Sendable {
    let configuration: Shared<MQTTConfiguration>
    let version: MQTTVersion
    let clientIdentifier: String
    let addresses: ServiceAddresses

    init(
        configuration: Shared<MQTTConfiguration>,
        version: MQTTVersion,
        clientIdentifier: String,
        addresses: ServiceAddresses
    ) {
        self.configuration = configuration
        self.version = version
        self.clientIdentifier = clientIdentifier
        self.addresses = addresses
    }

    /// Makes 22 letters and digits, which every server must accept (3.1.1, 3.1.3-5); about 131 random bits.
    static func makeIdentifier(_ random: () -> UInt64) -> String {
        let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        let letters = (0..<22).map { _ in alphabet[Int(random() % UInt64(alphabet.count))] }
        return String(decoding: letters, as: UTF8.self)
    }

    /// Returns the greeting of a request.
    ///
    /// It is checked now, unless interceptors may still change it.
    ///
    /// - Throws: `unsupported` and `invalidEntry` for a request that cannot be sent.
    func greeting(_ request: Request) throws(WaybillError) -> MQTTGreeting {
        let packet = try packet(request)
        if request.chain == nil || request.chain?.original != nil { try check(packet, request) }
        return MQTTGreeting(request: request, packet: packet)
    }

    /// Returns the greeting of one attempt, with fresh credentials and with the state of the previous session.
    ///
    /// - Throws: The errors of an interceptor or of the source of credentials; `unsupported` and `invalidEntry` for a
    ///   request that cannot be sent.
    func greeting(
        _ request: Request,
        _ occasion: inout ConnectOccasion,
        _ session: MQTTSession,
        _ credentials: CredentialProvider?
    ) async throws -> MQTTGreeting {
        let adapted = try await occasion.adapted(
            request,
            askingAt: credentials,
            in: addresses
        )
        var packet = try packet(adapted)
        // In MQTT 3.1.1 a clean session ends with its connection. In MQTT 5 the clean start was done at the first
        // connect (3.1.2.4).
        if occasion.isReconnection, packet.properties.sessionExpiryInterval ?? 0 > 0 {
            packet.cleanStart = false
        }
        if occasion.isReconnection, packet.clientIdentifier.isEmpty,
            let assigned = session.assignedClientIdentifier
        {
            packet.clientIdentifier = assigned
        }
        try check(packet, adapted)
        var greeting = MQTTGreeting(request: request, packet: packet)
        greeting.isUnattended = occasion.isUnattended
        greeting.upgradeHeaders = adapted.command[.upgradeHeaders] ?? [:]
        return greeting
    }

    /// Checks a connect request after the interceptors.
    ///
    /// - Throws: `unsupported` and `invalidEntry` for a request that cannot be sent.
    func check(_ request: Request) throws(WaybillError) {
        try check(packet(request), request)
    }

    private func packet(_ request: Request) throws(WaybillError) -> MQTTConnect {
        guard request.command.code == .connect, request.topic == nil, request.body.isEmpty else {
            throw MQTTMapping.unsupported("topic or body of a connect", request)
        }
        let configuration = configuration.value
        var options = OptionReader(request)
        // Read where the connection is made.
        _ = options.take(.timeout)
        _ = options.take(.upgradeHeaders)
        let address = try addresses.address(statedIn: &options, of: request)
        let isForeign = address?.isForeign ?? false
        let cleanStart: Bool? = options.take(.cleanStart)
        let keepAlive = options.take(.keepAlive) ?? configuration.keepAlive.interval
        let password =
            options.take(.password) ?? address?.password
            ?? (isForeign ? nil : configuration.password)
        var packet = MQTTConnect(
            version: version,
            clientIdentifier: options.take(.clientIdentifier) ?? clientIdentifier,
            cleanStart: cleanStart ?? configuration.session.cleanStart,
            keepAlive: UInt16(clamping: keepAlive.components.seconds),
            userName: options.take(.userName) ?? address?.userName
                ?? (isForeign ? nil : configuration.userName),
            password: password.map { Array($0.utf8) }
        )
        if let will = options.take(.will) ?? configuration.will {
            packet.will = try MQTTWillMapping.will(will, request, version)
        }
        switch version {
        case .v5:
            packet.properties = properties(request, sessionExpiry: options.take(.sessionExpiry))
        case .v3_1_1:
            try MQTTMapping.refuse(
                [
                    .headers: request.statesHeaders,
                    .authenticator: configuration.authenticator != nil,
                ],
                request,
                version
            )
        }
        try options.finish(for: MQTTMapping.name(of: version))
        return packet
    }

    /// The properties of CONNECT (MQTT 5, 3.1.2.11).
    ///
    /// A property that the app leaves out is not sent.
    private func properties(_ request: Request, sessionExpiry: Duration?) -> MQTTProperties {
        let configuration = configuration.value
        var properties = MQTTProperties()
        properties.sessionExpiryInterval =
            (sessionExpiry ?? configuration.session.expiry).map(MQTTMapping.seconds)
        properties.receiveMaximum = configuration.limits.receiveMaximum.map { max($0, 1) }
        if configuration.limits.announcesPacketSize {
            properties.maximumPacketSize = UInt32(clamping: max(configuration.limits.packetSize, 1))
        }
        if configuration.aliases.accepted > 0 {
            properties.topicAliasMaximum = configuration.aliases.accepted
        }
        if configuration.replies.requestsResponseInformation {
            properties.requestResponseInformation = true
        }
        properties.requestProblemInformation = configuration.requestsProblemInformation
        properties.userProperties = request.headers.pairs
        return properties
    }

    private func check(_ packet: MQTTConnect, _ request: Request) throws(WaybillError) {
        try MQTTMapping.checkEncoding(request) { (scratch) throws(MQTTEncodingError) in
            try packet.encode(into: &scratch)
        }
    }
}
