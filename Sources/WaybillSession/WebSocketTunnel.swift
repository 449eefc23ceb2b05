import HTTPWire
package import Waybill
package import WaybillLink
import WebSocketWire

/// What turns a URL with `ws` into a stream that runs through a WebSocket.
package enum WebSocketTunnel {
    /// A dialer that asks the server at an address for a WebSocket.
    ///
    /// - Parameters:
    ///   - address: Where, and with which path.
    ///   - options: What the app adds to the request.
    ///   - subprotocols: What is offered; the server must choose one.
    ///   - units: How bytes are cut into messages.
    ///   - maximumUnitSize: The longest packet or body to accept, in bytes; a message may hold several.
    ///   - environment: What connects, and where masking keys come from.
    /// - Returns: The dialer.
    package static func dialer(
        to address: ServiceAddress,
        options: WebSocketOptions,
        subprotocols: [String],
        units: WebSocketUnits,
        maximumUnitSize: Int,
        environment: LinkEnvironment
    ) -> any Dialer {
        var configuration = WebSocketConfiguration(randomWords: environment.randomWords)
        let (twice, isOver) = max(maximumUnitSize, 1 << 20).multipliedReportingOverflow(by: 2)
        configuration.maximumMessageSize = isOver ? .max : twice
        configuration.deflate = options.offersCompression ? PermessageDeflate() : nil
        configuration.pingInterval = options.pingInterval
        configuration.pingTimeout = options.pingTimeout
        // What is spoken above may have a heart-beat of its own, and knows when both sides have said so.
        configuration.pingsOnRequest = true
        return WebSocketDialer(
            base: environment.dialer,
            request: WebSocketClientHandshake.Request(
                host: address.hostField,
                target: address.path,
                subprotocols: subprotocols,
                requiresSubprotocol: true,
                headers: HTTPHeaders(options.headers)
            ),
            configuration: configuration,
            units: units
        )
    }
}

extension ServiceAddress {
    /// Host and port as in the field `Host`: the port only where it is not the scheme's own (RFC 9110, 7.2).
    package var hostField: String {
        let host = endpoint.publicHost
        return endpoint.port == scheme.port ? host : "\(host):\(endpoint.port)"
    }
}
