import Testing
package import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
package import WaybillTesting

extension LoopbackBroker {
    /// How long a client may take to connect: two thousand tests at once take each other's time.
    package static let connectTimeout = Duration.seconds(120)

    /// A transport with the default settings, but for the connect timeout, to one of the broker's services.
    package func transport(_ service: Service) throws -> any Transport {
        let url = url(for: service)
        return switch service {
        case .mqtt, .mqttOverWebSocket:
            try MQTTTransport(url: url) { $0.timeouts.connect = Self.connectTimeout }
        case .stomp, .stompOverWebSocket:
            try STOMPTransport(url: url) { $0.timeouts.connect = Self.connectTimeout }
        case .eventStream:
            try SSETransport(url: url) { $0.timeouts.connect = Self.connectTimeout }
        }
    }
}

/// Checks that a send over each service reaches a subscriber of every service.
package func expectDeliveryAcrossServices(
    _ transport: (LoopbackBroker.Service) throws -> any Transport
) async throws {
    for service in LoopbackBroker.Service.allCases {
        let sender = Provider<LoopbackEntry>(transport: try transport(service))
        for other in LoopbackBroker.Service.allCases {
            let receiver = Provider<LoopbackEntry>(transport: try transport(other))
            let messages = try await receiver.messages(
                .subscribe("rooms/lobby"),
                as: String.self
            )
            try await sender.request(.send("\(service)", to: "rooms/lobby"))
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next() == "\(service)")
        }
    }
}
