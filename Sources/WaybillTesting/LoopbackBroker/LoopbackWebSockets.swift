import HTTPWire
import STOMPWire
import WaybillLink
import WebSocketWire
import WireCore

/// The port for WebSockets: answers upgrade requests, and hands the connections to their services.
struct LoopbackWebSockets: Sendable {
    let hub: LoopbackHub

    /// The subprotocols of the port for WebSockets, the preferred one first.
    private static let subprotocols =
        ["mqtt"] + STOMPVersion.allCases.sorted(by: >).map(\.subprotocol)

    /// Answers a request for a WebSocket, and serves what its subprotocol says.
    func accept(_ stream: any ByteStream, as identifier: UInt64) {
        var settings = WebSocketConfiguration(randomWords: hub.environment.randomWords)
        settings.maximumMessageSize = nil
        settings.deflate = PermessageDeflate()
        settings.handshakeTimeout = LoopbackHub.clientTimeout
        let socket = WebSocketStream(
            core: WebSocketConnection(serverWith: settings, at: hub.environment.clock.now),
            units: .anywhere,
            stream: stream,
            timers: hub.environment.clock
        )
        // The close code when the broker ends the connection.
        socket.setClosingCode(.goingAway)
        hub.add(.opening(socket), as: identifier)
        let refused = hub.faults.refusesUpgrades
        socket.open { [weak socket] core, event in
            guard case .requested(let request) = event,
                let chosen = Self.decide(request, refused, &core)
            else { return }
            // Before the client hears of it and sends its first message.
            if chosen != "mqtt" { socket?.setUnits(.each(STOMPFrameEnd.unitLength)) }
        }
        Task { @concurrent [weak hub = hub] in
            let opening = try? await socket.opening()
            guard let hub else { return socket.close() }
            switch opening?.subprotocol {
            case "mqtt"?:
                hub.mqtt.accept(socket, .mqttOverWebSocket, as: identifier)
            case .some:
                hub.stomp.accept(socket, .stompOverWebSocket, as: identifier)
            case nil:
                socket.start(
                    StreamEnd { [weak hub] in hub?.remove(identifier) }
                )
            }
        }
    }

    /// Accepts or refuses a request.
    /// - Returns: The subprotocol that was accepted.
    private static func decide(
        _ request: HTTPRequestHead,
        _ refused: Int?,
        _ core: inout WebSocketConnection
    ) -> String? {
        let headers: HTTPHeaders = ["Content-Type": "text/plain"]
        if let refused {
            let head = HTTPResponseHead(status: refused, headers: headers)
            core.refuse(head, body: Array("refused on demand".utf8))
            return nil
        }
        let offered = request.headers.members("sec-websocket-protocol")
        guard let chosen = subprotocols.first(where: { offered.contains($0) }) else {
            let words = "speaks only \(subprotocols.joined(separator: ", "))"
            let head = HTTPResponseHead(status: 400, reason: "Bad Request", headers: headers)
            core.refuse(head, body: Array(words.utf8))
            return nil
        }
        core.accept(subprotocol: chosen)
        return chosen
    }
}

/// Waits for nothing but the end of a stream.
private final class StreamEnd: ByteStreamReceiver {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    func streamIsReadable() {}
    func streamIsWritable() {}
    func streamShouldFlush() {}

    func streamDidEnd(_ error: LinkError?) { body() }
}
