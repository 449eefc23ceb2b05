package import HTTPWire
import WireCore

/// The client side of the opening handshake (RFC 6455, 4.1).
package struct WebSocketClientHandshake: Sendable {
    /// The request for a WebSocket.
    package struct Request: Hashable, Sendable {
        /// The value of `Host`.
        package var host: String
        /// Path and query, percent-encoded.
        package var target: String
        /// The offered subprotocols, the preferred one first.
        package var subprotocols: [String]
        /// Whether the server must choose one of the subprotocols.
        package var requiresSubprotocol: Bool
        /// Further fields: tokens, cookies, an origin.
        package var headers: HTTPHeaders

        package init(
            host: String,
            target: String = "/",
            subprotocols: [String] = [],
            requiresSubprotocol: Bool = false,
            headers: HTTPHeaders = [:]
        ) {
            self.host = host
            self.target = target
            self.subprotocols = subprotocols
            self.requiresSubprotocol = requiresSubprotocol
            self.headers = headers
        }

        /// Checks that the request can be sent.
        ///
        /// - Throws: `RequestError`.
        package func check() throws(RequestError) {
            _ = try WebSocketClientHandshake(self, deflate: nil, nonce: []).head()
        }
    }

    /// The reason why a request cannot be sent.
    package enum RequestError: Error, Hashable, Sendable {
        case http(HTTPEncodingError)
        /// A subprotocol that is not a token, or that is listed twice (RFC 6455, 4.1, item 10).
        case invalidSubprotocol(String)
        /// A field that the handshake itself sets.
        case reservedField(String)
    }

    private let request: Request
    private let deflate: PermessageDeflate?
    private let key: String

    /// - Parameters:
    ///   - request: The request.
    ///   - deflate: The compression to offer; nil for none.
    ///   - nonce: 16 random bytes, as two words.
    package init(_ request: Request, deflate: PermessageDeflate?, nonce: [UInt64]) {
        self.request = request
        self.deflate = deflate
        let bytes = nonce.prefix(2).flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
        }
        key = Base64.encode(bytes)
    }

    /// The fields that the handshake itself sets.
    private static let reserved = [
        "host", "upgrade", "connection", "content-length", "transfer-encoding",
        "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol",
        "sec-websocket-extensions", "sec-websocket-accept",
    ]

    /// The head of the request.
    package func head() throws(RequestError) -> HTTPRequestHead {
        var headers: HTTPHeaders = [
            "Host": request.host,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
        ]
        for (index, name) in request.subprotocols.enumerated() {
            let isRepeated = request.subprotocols[..<index].contains(where: name.hasSameBytes(as:))
            guard HTTPSyntax.isToken(name), !isRepeated else { throw .invalidSubprotocol(name) }
        }
        if !request.subprotocols.isEmpty {
            let offer = request.subprotocols.joined(separator: ", ")
            headers.append(name: "Sec-WebSocket-Protocol", value: offer)
        }
        if let deflate { headers.append(name: "Sec-WebSocket-Extensions", value: deflate.offer) }
        for field in request.headers {
            let isReserved = Self.reserved.contains { HTTPSyntax.areSameName($0, field.name) }
            guard !isReserved else { throw .reservedField(field.name) }
            headers.append(name: field.name, value: field.value)
        }
        let head = HTTPRequestHead(method: "GET", target: request.target, headers: headers)
        do { try head.headers.check() } catch { throw .http(error) }
        guard !head.target.isEmpty, head.target.utf8.allSatisfy(HTTPSyntax.isTargetByte) else {
            throw .http(.invalidTarget)
        }
        return head
    }

    /// Checks a response with the status 101.
    package func opening(
        from response: HTTPResponseHead
    ) throws(WebSocketHandshakeFault) -> WebSocketOpening {
        let headers = response.headers
        guard headers.contains("upgrade", member: "websocket") else { throw .noUpgrade }
        guard headers.contains("connection", member: "upgrade") else { throw .noConnectionUpgrade }
        let accepted = headers.all("sec-websocket-accept")
        guard accepted == [WebSocketAcceptKey.make(for: key)] else { throw .wrongAcceptKey }

        let chosen = headers.all("sec-websocket-protocol")
        guard chosen.count <= 1,
            chosen.allSatisfy({ request.subprotocols.contains(where: $0.hasSameBytes(as:)) })
        else {
            throw .unexpectedSubprotocol
        }
        guard !chosen.isEmpty || !request.requiresSubprotocol else { throw .missingSubprotocol }
        guard let extensions = WebSocketExtension.parse(headers.all("sec-websocket-extensions"))
        else { throw .unexpectedExtension }
        var agreed: PermessageDeflate?
        for answer in extensions {
            guard agreed == nil, answer.name == PermessageDeflate.name,
                let parameters = deflate?.agreed(with: answer)
            else { throw .unexpectedExtension }
            agreed = parameters
        }
        return WebSocketOpening(subprotocol: chosen.first, deflate: agreed, headers: headers)
    }
}

/// The proof that a server has read the key (RFC 6455, 4.2.2, item 5.4).
enum WebSocketAcceptKey {
    static func make(for key: String) -> String {
        Base64.encode(SHA1.digest(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }
}
