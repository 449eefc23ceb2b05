import HTTPWire
package import Waybill
package import WaybillLink
import WebSocketWire

/// Makes dialers that open a byte stream through a WebSocket, for URLs with `ws` or `wss`.
package enum WebSocketTunnel {
    /// Makes a dialer that opens a WebSocket to the server of an address.
    ///
    /// - Parameters:
    ///   - address: The server, and the path of the request.
    ///   - options: The app's options for the WebSocket.
    ///   - subprotocols: The offered subprotocols.
    ///   - requiresSubprotocol: Whether the server must choose one.
    ///   - units: The rule by which bytes are divided into messages.
    ///   - environment: Provides the dialer below and the masking keys.
    /// - Returns: The dialer.
    package static func dialer(
        to address: ServiceAddress,
        options: WebSocketOptions,
        subprotocols: [String],
        requiresSubprotocol: Bool = true,
        units: WebSocketUnits,
        environment: LinkEnvironment
    ) -> any Dialer {
        var configuration = WebSocketConfiguration(randomWords: environment.randomWords)
        // The protocol above has its own limit, and skips what exceeds it. Its packets may span messages (MQTT 5, 6.0.0-2).
        configuration.maximumMessageSize = nil
        configuration.deflate = options.offersCompression ? PermessageDeflate() : nil
        configuration.pingInterval = options.pingInterval
        configuration.pingTimeout = options.pingTimeout
        // The protocol above may have its own heart-beat, and knows when both sides have agreed on it.
        configuration.pingsOnRequest = true
        return WebSocketDialer(
            base: environment.dialer,
            request: WebSocketClientHandshake.Request(
                host: address.hostField,
                target: address.path,
                subprotocols: subprotocols,
                requiresSubprotocol: requiresSubprotocol,
                // They may hold secrets of the service.
                headers: address.isForeign ? [:] : HTTPHeaders(options.headers)
            ),
            configuration: configuration,
            units: units
        )
    }
}

extension ServiceAddress {
    /// Host and port as in the field `Host`: with the port only if it is not the scheme's default (RFC 9110, 7.2).
    package var hostField: String {
        let host = endpoint.publicHost
        return endpoint.port == scheme.port ? host : "\(host):\(endpoint.port)"
    }
}
