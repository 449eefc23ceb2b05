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
            clientIdentifier: configuration.clientIdentifier ?? "client"
        )
    }

    /// Checks a request after the interceptors.
    ///
    /// - Throws: `unsupported`, `invalidEntry`, `limitExceeded`.
    package func check(_ request: Request) throws(WaybillError) {
        switch request.command {
        case .connect(let options):
            try greeter.check(request)
            if let expiry = options.sessionExpiry {
                connects.sessionExpiry.withLock { $0 = expiry }
            }
        case .send(let options):
            let publish = try MQTTPublishMapping.packet(request, options, version: version)
            try MQTTPublishMapping.check(publish, request, version: version)
        case .subscribe(let options):
            _ = try MQTTSubscribeMapping.subscriptions(request, options, version: version)
        case .unsubscribe(let options):
            _ = try MQTTSubscribeMapping.unsubscription(request, options, version: version)
        case .ack(_, let options):
            _ = try MQTTAcknowledgementMapping.answer(
                request,
                options,
                isAccepted: true,
                version: version
            )
        case .nack(_, let options):
            _ = try MQTTAcknowledgementMapping.answer(
                request,
                options,
                isAccepted: false,
                version: version
            )
        case .begin, .commit, .abort: throw MQTTMapping.unsupported("transactions", request)
        case .disconnect(let options):
            let expiry = connects.sessionExpiry.withLock { $0 } ?? configuration.sessionExpiry
            _ = try MQTTDisconnectMapping.packet(
                request,
                options,
                version,
                sessionExpiry: expiry.map(MQTTMapping.seconds)
            )
        }
    }
}
