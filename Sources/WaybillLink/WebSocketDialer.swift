package import HTTPWire
package import WebSocketWire
import WireCore

/// Connects through another dialer and opens a WebSocket over its stream.
package struct WebSocketDialer: Dialer {
    private let base: any Dialer
    private var request: WebSocketClientHandshake.Request
    private let configuration: WebSocketConfiguration
    private let units: WebSocketUnits

    /// - Parameters:
    ///   - base: The dialer below.
    ///   - request: The request for the WebSocket.
    ///   - configuration: The settings of the WebSocket.
    ///   - units: The division of bytes into messages.
    package init(
        base: any Dialer,
        request: WebSocketClientHandshake.Request,
        configuration: WebSocketConfiguration,
        units: WebSocketUnits
    ) {
        self.base = base
        self.request = request
        self.configuration = configuration
        self.units = units
    }

    package func requesting(_ headers: HTTPHeaders) -> (any Dialer)? {
        var copy = self
        copy.request.headers.replace(with: headers)
        return copy
    }

    package func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        do throws(WebSocketClientHandshake.RequestError) { try request.check() } catch {
            throw .upgradeInvalid(error)
        }
        let begin = timers.now
        let stream = try await base.dial(endpoint, timeout: timeout, timers: timers)
        var configuration = configuration
        configuration.handshakeTimeout = max(timeout - begin.duration(to: timers.now), .zero)
        let core: WebSocketConnection
        do throws(WebSocketClientHandshake.RequestError) {
            core = try WebSocketConnection(
                connecting: request,
                configuration: configuration,
                at: timers.now
            )
        } catch {
            stream.close()
            throw .upgradeInvalid(error)
        }
        let socket = WebSocketStream(core: core, units: units, stream: stream, timers: timers)
        socket.open()
        _ = try await socket.opening()
        return socket
    }
}
