package import HTTPWire
package import WireCore

// The opening handshake (RFC 6455, 4).
extension WebSocketConnection {
    /// Makes the client side, which sends its request at once.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - configuration: The settings of the connection.
    ///   - now: The current time; the response must arrive within the handshake's timeout.
    /// - Throws: `RequestError` for a request that cannot be sent.
    package init(
        connecting request: WebSocketClientHandshake.Request,
        configuration: WebSocketConfiguration,
        at now: WireInstant
    ) throws(WebSocketClientHandshake.RequestError) {
        let handshake = WebSocketClientHandshake(
            request,
            deflate: Compression.isAvailable ? configuration.deflate : nil,
            nonce: configuration.randomWords(2)
        )
        let head = try handshake.head()
        self.init(role: .client, handshake, configuration, at: now)
        do { try head.encode(into: &writer.outbound) } catch { throw .http(error) }
    }

    /// Makes the server side, which waits for a request.
    package init(serverWith configuration: WebSocketConfiguration, at now: WireInstant) {
        self.init(role: .server, nil, configuration, at: now)
    }

    mutating func receiveOpening(
        _ handshake: WebSocketOpeningHandshake,
        _ buffer: inout ReceiveBuffer,
        at now: WireInstant
    ) {
        var handshake = handshake
        let step = handshake.receive(&buffer, at: now)
        state = .opening(handshake)
        switch step {
        case .opened(let opening): open(opening)
        case .requested(let request): events.append(.requested(request))
        case .invalid(let refusal): refuse(refusal, body: [])
        case .ended(let ending): finish(ending)
        case nil: break
        }
    }

    // MARK: The server's decision

    /// Opens the requested connection.
    ///
    /// - Parameters:
    ///   - subprotocol: One of the offered subprotocols, or nil.
    ///   - headers: Further fields of the response.
    package mutating func accept(subprotocol: String? = nil, headers: HTTPHeaders = [:]) {
        guard case .opening(let handshake) = state, let request = handshake.request else { return }
        let (head, opening) = WebSocketServerHandshake.response(
            to: request,
            subprotocol: subprotocol,
            deflate: Compression.isAvailable ? configuration.deflate : nil,
            headers: headers
        )
        do { try head.encode(into: &writer.outbound) } catch {
            return refuse(HTTPResponseHead(status: 500, reason: "Internal Server Error"), body: [])
        }
        open(opening)
    }

    /// Refuses the requested connection, and closes the stream.
    package mutating func refuse(_ head: HTTPResponseHead, body: [UInt8]) {
        guard case .opening(let handshake) = state, handshake.request != nil else { return }
        var head = head
        head.headers.append(name: "Content-Length", value: String(body.count))
        head.headers.append(name: "Connection", value: "close")
        try? head.encode(into: &writer.outbound)
        writer.outbound.append(contentsOf: body)
        finish(.refused(head, body: body))
    }

    private mutating func open(_ opening: WebSocketOpening) {
        if let deflate = opening.deflate {
            reader = WebSocketReader(
                role: role,
                maximumMessageSize: configuration.maximumMessageSize,
                inflater: deflate.inflater(for: role)
            )
            writer.deflater = deflate.deflater(for: role)
        }
        state = .open
        events.append(.opened(opening))
    }
}
