package import HTTPWire
import WireCore

/// The server side of the opening handshake (RFC 6455, 4.2).
package enum WebSocketServerHandshake {
    /// The response to a request that is no valid opening handshake; nil if it is valid.
    package static func refusal(of request: HTTPRequestHead) -> HTTPResponseHead? {
        let headers = request.headers
        guard request.method == "GET", !request.isVersion1_0, headers.all("host").count == 1,
            headers.contains("upgrade", member: "websocket"),
            headers.contains("connection", member: "upgrade"),
            headers.all("sec-websocket-key").count == 1,
            let key = headers.first("sec-websocket-key"), Base64.isEncoding(key, ofByteCount: 16),
            WebSocketExtension.parse(headers.all("sec-websocket-extensions")) != nil
        else { return HTTPResponseHead(status: 400, reason: "Bad Request") }
        guard headers.all("sec-websocket-version") == ["13"] else {
            return HTTPResponseHead(
                status: 426,
                reason: "Upgrade Required",
                headers: ["Sec-WebSocket-Version": "13"]
            )
        }
        return nil
    }

    /// The response that opens the connection.
    ///
    /// - Parameters:
    ///   - request: The client's request, which has passed ``refusal(of:)``.
    ///   - subprotocol: One of the offered subprotocols, or nil.
    ///   - deflate: The compression to agree to at most; nil for none.
    ///   - headers: Further fields.
    /// - Returns: The response, and the agreed parameters.
    package static func response(
        to request: HTTPRequestHead,
        subprotocol: String?,
        deflate: PermessageDeflate?,
        headers: HTTPHeaders
    ) -> (head: HTTPResponseHead, opening: WebSocketOpening) {
        let key = request.headers.first("sec-websocket-key") ?? ""
        var fields: HTTPHeaders = [
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Accept": WebSocketAcceptKey.make(for: key),
        ]
        if let subprotocol { fields.append(name: "Sec-WebSocket-Protocol", value: subprotocol) }
        let offers =
            WebSocketExtension.parse(request.headers.all("sec-websocket-extensions")) ?? []
        let agreed = deflate.flatMap { deflate in
            offers.lazy.filter { $0.name == PermessageDeflate.name }
                .compactMap { deflate.accepting($0) }.first
        }
        if let agreed { fields.append(name: "Sec-WebSocket-Extensions", value: agreed.response) }
        for field in headers { fields.append(name: field.name, value: field.value) }
        let head = HTTPResponseHead(status: 101, reason: "Switching Protocols", headers: fields)
        return (
            head,
            WebSocketOpening(subprotocol: subprotocol, deflate: agreed, headers: request.headers)
        )
    }
}
