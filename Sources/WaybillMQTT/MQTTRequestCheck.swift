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
        case .connect: try greeter.check(request)
        case .send(let options):
            let publish = try MQTTPublishMapping.packet(request, options, version: version)
            try MQTTPublishMapping.check(publish, request, version: version)
        case .subscribe(let options):
            _ = try MQTTSubscribeMapping.subscriptions(request, options, version: version)
        case .unsubscribe: try MQTTSubscribeMapping.checkUnsubscription(request, version: version)
        case .ack(_, let transaction): try MQTTMapping.checkAcknowledgement(request, transaction)
        case .nack(_, let transaction):
            try MQTTMapping.checkRefusal(request, transaction, version: version)
        case .begin, .commit, .abort: throw MQTTMapping.unsupported("transactions", request)
        case .disconnect(let options):
            _ = try MQTTDisconnectMapping.packet(request, options, configuration)
        }
    }
}
