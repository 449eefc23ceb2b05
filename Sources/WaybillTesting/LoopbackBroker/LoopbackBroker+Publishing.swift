import MQTTWire
import STOMPWire
public import Waybill
import WaybillLink
import WireCore

extension LoopbackBroker {
    /// Publishes a message of the broker's own to the subscribers of all protocols.
    ///
    /// A message to a queue that is full is discarded.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - topic: The topic; over STOMP the destination, and over HTTP the path without its first slash.
    ///   - qos: The quality of service; over MQTT alone, and not more than a subscription asks for.
    ///   - headers: The headers; over MQTT 5 user properties.
    public func publish(
        _ body: Payload,
        to topic: String,
        qos: QoS = .atMostOnce,
        headers: Headers = [:]
    ) {
        publish(body, to: topic, qos: qos, headers: headers, at: environment.clock.now)
    }

    func publish(
        _ body: Payload,
        to topic: String,
        qos: QoS,
        headers: Headers = [:],
        at now: WireInstant
    ) {
        let message = LoopbackMessage(
            destination: topic,
            headers: STOMPHeaders(headers.map { STOMPHeaders.Field($0.name, $0.value) }),
            body: body.bytes
        )
        var publish = Self.publish(message)
        publish?.qos = MQTTQoS(rawValue: UInt8(qos.rawValue)) ?? .atMostOnce
        try? route(message, publish, payload: ByteSlice(copying: body.bytes), from: 0, at: now)
    }
}
