import MQTTWire
package import Waybill
import WaybillSession
import WireCore

/// The checks of an MQTT transport before any input or output, for the mock transport.
///
/// It uses the transport's mapping, so that both refuse the same requests with the same errors.
package struct MQTTRequestCheck: Sendable {
    private let configuration: MQTTConfiguration
    private let version: MQTTVersion
    private let greeter: MQTTGreeter
    private let connects = Connects()

    /// Notes what the connect requests state, since later requests depend on it.
    private final class Connects: Sendable {
        /// The session expiry of the last connect request that states one.
        let sessionExpiry = Locked<Duration?>(nil)
    }

    /// - Parameter configuration: The configuration of the transport.
    package init(_ configuration: MQTTConfiguration) {
        self.configuration = configuration
        version = configuration.version == .v5 ? .v5 : .v3_1_1
        greeter = MQTTGreeter(
            configuration: Shared(configuration),
            version: version,
            clientIdentifier: configuration.clientIdentifier ?? "client",
            addresses: .mqtt
        )
    }

    /// Checks a request after the interceptors.
    ///
    /// - Throws: `unsupported`, `invalidEntry`, `limitExceeded`.
    package func check(_ request: Request) throws(WaybillError) {
        switch request.command.code {
        case .connect:
            try greeter.check(request)
            if let expiry = request.command[.sessionExpiry] {
                connects.sessionExpiry.withLock { $0 = expiry }
            }
        case .send:
            let publish = try MQTTPublishMapping.packet(request, version: version)
            try MQTTPublishMapping.check(publish, request, version: version)
        case .subscribe:
            _ = try MQTTSubscribeMapping.subscriptions(request, version: version)
        case .unsubscribe:
            _ = try MQTTSubscribeMapping.unsubscription(request, version: version)
        case .ack, .nack:
            _ = try MQTTAcknowledgementMapping.answer(request, version: version)
        case .other:
            throw MQTTMapping.unsupported("command \(request.command.name)", request)
        case .disconnect:
            let expiry = connects.sessionExpiry.withLock { $0 } ?? configuration.session.expiry
            _ = try MQTTDisconnectMapping.packet(
                request,
                version,
                sessionExpiry: expiry.map(MQTTMapping.seconds)
            )
        }
    }
}
