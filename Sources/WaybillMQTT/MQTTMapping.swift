import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// What the conversions of all requests into packets share.
///
/// `Documentation/Mapping.md` has the rules as a table.
enum MQTTMapping {
    // MARK: Refusals

    static func unsupported(_ what: String, _ request: Request) -> WaybillError {
        .unsupported(by: "MQTT", what, request)
    }

    /// The protocol, as its users know it.
    static func name(of version: MQTTVersion) -> String {
        version == .v5 ? "MQTT 5" : "MQTT 3.1.1"
    }

    /// Refuses parts of a request that this version of MQTT does not support, and that are no options of its command.
    static func refuse(
        _ stated: KeyValuePairs<OptionName, Bool>,
        _ request: Request,
        _ version: MQTTVersion
    ) throws(WaybillError) {
        try WaybillError.refuse(stated, by: name(of: version), request)
    }

    /// Checks whether a packet can be encoded.
    ///
    /// - Parameters:
    ///   - request: The request of the packet.
    ///   - encode: Encodes the packet.
    /// - Throws: The error of `encode`, about the request.
    static func checkEncoding(
        _ request: Request,
        _ encode: (inout ByteWriter) throws(MQTTEncodingError) -> Void
    ) throws(WaybillError) {
        var scratch = ByteWriter()
        do {
            try encode(&scratch)
        } catch {
            throw MQTTErrorMapping.error(.encoding(error), request)
        }
    }

    /// Refuses a body that is declared as text and is not UTF-8 (MQTT 5, 3.3.2.3.2).
    ///
    /// - Throws: `invalidEntry`.
    static func checkText(
        _ body: Payload,
        _ format: MQTTPayloadFormat?,
        _ request: Request
    ) throws(WaybillError) {
        guard format == .text else { return }
        guard body.withUnsafeBytes({ UTF8Validation.scan($0).isWellFormed }) else {
            throw WaybillError(.invalidEntry, "a body that is declared as text has to be UTF-8")
                .about(request)
        }
    }

    // MARK: Values

    static func quality(_ qos: QoS) -> MQTTQoS {
        switch qos {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce
        case .exactlyOnce: .exactlyOnce
        }
    }

    static func quality(_ qos: MQTTQoS) -> QoS {
        switch qos {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce
        case .exactlyOnce: .exactlyOnce
        }
    }

    /// Returns whole seconds, limited to four bytes.
    ///
    /// A fraction is rounded up, because zero has another meaning.
    static func seconds(_ duration: Duration) -> UInt32 {
        let (seconds, rest) = duration.components
        return UInt32(clamping: max(0, rest > 0 ? seconds &+ 1 : seconds))
    }
}
