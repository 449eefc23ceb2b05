import MQTTWire
public import Waybill

/// An authentication method of MQTT 5 (4.12): the client's side of an exchange of data with the server.
///
/// ``MQTTConfiguration/authenticator`` sets it. A new exchange begins with every connection, also with each
/// reconnection and each host, and with ``MQTTTransport/reauthenticate()``. ``SCRAMAuthenticator`` is one.
///
/// User name, password and tokens are sent in CONNECT as without an authenticator.
public protocol MQTTAuthenticator: Sendable {
    /// The Authentication Method, such as `SCRAM-SHA-256`, which the server must support.
    ///
    /// It has to stay the same.
    var method: String { get }

    /// Makes the client's side of a new exchange.
    ///
    /// - Parameter context: What is known about the connection.
    /// - Returns: The exchange, which has not begun.
    /// - Throws: Any error; see ``MQTTAuthenticationExchange``.
    func makeExchange(
        _ context: MQTTAuthenticationContext
    ) async throws -> any MQTTAuthenticationExchange
}

/// The client's side of one exchange of authentication data (MQTT 5, 4.12).
///
/// The functions are called one after the other, never on the thread of the network, and without a lock. The data is
/// at most 65,535 bytes long; nil stands for a packet without Authentication Data.
///
/// An error ends the exchange and fails the call: a ``Waybill/WaybillError`` as it is, another error as the
/// `underlying` one of `interceptorFailed`. An error of ``finish(with:)`` that is no ``Waybill/WaybillError`` is the
/// `underlying` one of `unauthorized`. Once CONNECT, or AUTH of a re-authentication, was sent, the connection is
/// closed, too. The task of the functions is cancelled when the connection ends.
public protocol MQTTAuthenticationExchange: Sendable {
    /// Returns the first data, for CONNECT or for the AUTH that begins a re-authentication.
    mutating func begin() async throws -> [UInt8]?

    /// Answers data of the server (AUTH, reason 0x18).
    mutating func respond(to data: [UInt8]?) async throws -> [UInt8]?

    /// Verifies the server, which has accepted the client.
    ///
    /// Until it returns, a new connection is not used.
    ///
    /// - Parameter data: The last data of the server, which came with CONNACK or with the AUTH that ends a
    ///   re-authentication; nil without any. A method in which the server proves itself must not accept nil.
    /// - Throws: Any error, if the server is not the expected one.
    mutating func finish(with data: [UInt8]?) async throws

    /// What is said with the data that ``begin()`` or ``respond(to:)`` has just returned; empty by default.
    ///
    /// It goes into the same AUTH. CONNECT has no reason string, and its user properties are the headers of its entry.
    var properties: MQTTAuthProperties { get }

    /// Hears what the server says with the data of its AUTH, before ``respond(to:)`` or ``finish(with:)`` gets the data.
    ///
    /// Does nothing by default. What CONNACK says is in the receipt of the connect.
    mutating func receive(_ properties: MQTTAuthProperties)
}

extension MQTTAuthenticationExchange {
    /// Nothing.
    public var properties: MQTTAuthProperties { MQTTAuthProperties() }

    /// Does nothing.
    public mutating func receive(_ properties: MQTTAuthProperties) {}
}

/// What an AUTH says beside its data (MQTT 5, 3.15.2.2.4 and 3.15.2.2.5).
public struct MQTTAuthProperties: Hashable, Sendable {
    /// A reason string; left out where the packet would exceed the server's limit.
    public var reasonString: String?
    /// The user properties; left out where the packet would exceed the server's limit.
    public var userProperties: Headers

    /// Makes the properties; each parameter has the meaning of the property of the same name.
    public init(reasonString: String? = nil, userProperties: Headers = [:]) {
        self.reasonString = reasonString
        self.userProperties = userProperties
    }

    init(_ properties: MQTTProperties) {
        self.init(
            reasonString: properties.reasonString,
            userProperties: Headers(properties.userProperties)
        )
    }

    var wire: MQTTProperties {
        var properties = MQTTProperties()
        properties.reasonString = reasonString
        properties.userProperties = userProperties.pairs
        return properties
    }
}

/// What is known about the connection of an authentication exchange.
public struct MQTTAuthenticationContext: Sendable {
    /// The host that is connected to.
    ///
    /// That is the host of the URL, another one of ``MQTTConfiguration/failover``, or one to which a server has referred
    /// (``MQTTConfiguration/redirects``).
    public var host: String
    /// Whether the exchange authenticates an open connection anew.
    public var isReauthentication: Bool
    /// The source of nonces.
    package var random: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }

    /// Describes a connection.
    ///
    /// - Parameters:
    ///   - host: The host of the server.
    ///   - isReauthentication: Whether the connection is open.
    public init(host: String, isReauthentication: Bool = false) {
        self.host = host
        self.isReauthentication = isReauthentication
    }
}

extension MQTTAuthProperties: CustomStringConvertible, Unmirrored {
    /// What there is, without its text: a method may put secrets into it.
    public var description: String {
        "\(reasonString == nil ? "no" : "a") reason string, \(userProperties.count) user properties"
    }
}
