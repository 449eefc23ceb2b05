import MQTTWire
package import Waybill
import WaybillSession
import WireCore

/// What an MQTT transport refuses before any input or output, for what stands for one in tests.
///
/// It goes through the same mapping as the transport, so that both refuse the same requests in the same words.
package struct MQTTRequestCheck: Sendable {
    private let configuration: MQTTConfiguration
    private let version: MQTTVersion
    private let greeter: MQTTGreeter

    /// - Parameter configuration: That of the transport.
    package init(_ configuration: MQTTConfiguration) {
        self.configuration = configuration
        version = configuration.version == .v5 ? .v5 : .v3_1_1
        greeter = MQTTGreeter(
            configuration: Shared(configuration),
            version: version,
            clientIdentifier: configuration.clientIdentifier ?? "client"
        )
    }

    /// Checks a request as the interceptors have left it.
    /// - Throws: `unsupported`, `invalidEntry`, `limitExceeded`.
    package func check(_ request: Request) throws(WaybillError) {
        switch request.command {
        case .connect: try greeter.check(request)
        case .send(let options):
            let publish = try MQTTMapping.publish(request, options, version: version)
            try MQTTMapping.check(publish, request, version: version)
        case .subscribe(let options):
            _ = try MQTTMapping.subscriptions(request, options, version: version)
        case .unsubscribe: try MQTTMapping.checkUnsubscription(request, version: version)
        case .ack(_, let transaction): try MQTTMapping.checkSettlement(request, transaction)
        case .nack(_, let transaction):
            try MQTTMapping.checkRefusal(request, transaction, version: version)
        case .begin, .commit, .abort: throw MQTTMapping.unsupported("transactions", request)
        case .disconnect(let options):
            _ = try MQTTMapping.farewell(request, options, configuration)
        }
    }
}
