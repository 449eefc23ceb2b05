public import Waybill
import WireCore

/// The reason that an MQTT server gave (MQTT 5, 2.4 and 3.2.2.3).
///
/// It consists of reason code, reason string, user properties and server reference.
///
/// The `underlying` error of a ``WaybillError`` when an MQTT server refuses a request or ends a connection.
/// ``WaybillError/mqttReason`` finds it.
///
/// ```swift
/// catch let error as WaybillError where error.mqttReason?.code == .quotaExceeded { … }
/// ```
///
/// The return codes of MQTT 3.1.1 appear as the codes of MQTT 5 with the same meaning. Codes 1 to 5 of CONNACK (3.1.1,
/// 3.2.2.3) become ``Code/unsupportedProtocolVersion``, ``Code/clientIdentifierNotValid``, ``Code/serverUnavailable``,
/// ``Code/badUserNameOrPassword`` and ``Code/notAuthorized``. Code 0x80 of SUBACK (3.1.1, 3.9.3) becomes
/// ``Code/unspecifiedError``.
public struct MQTTReason: Error, Sendable {
    /// The reason code.
    public var code: Code
    /// The server's text (Reason String); nil if the server sent none.
    public var text: String?
    /// The user properties of the packet; no description shows their values.
    public var userProperties: Headers
    /// Other servers that the client may use, as the server wrote them (Server Reference); nil if the server sent none.
    public var serverReference: String?

    /// Describes a reason.
    public init(
        _ code: Code,
        text: String? = nil,
        userProperties: Headers = [:],
        serverReference: String? = nil
    ) {
        self.code = code
        self.text = text
        self.userProperties = userProperties
        self.serverReference = serverReference
    }
}

extension MQTTReason: CustomStringConvertible {
    /// The code and the server's text, escaped.
    public var description: String {
        guard let text else { return code.description }
        return "\(code): \(text.excerpt)"
    }
}

extension MQTTReason: ShownByDescription {}

extension WaybillError {
    /// Why the MQTT server refused the request or ended the connection; nil for other kinds of failure.
    public var mqttReason: MQTTReason? { underlying as? MQTTReason }
}
