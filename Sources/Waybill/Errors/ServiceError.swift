import WireCore

/// An error with which the peer has sent a body, such as the answer of an HTTP server that refuses, or an ERROR frame.
///
/// The `underlying` error of a ``WaybillError``; ``WaybillError/serviceError(as:decoders:)`` decodes its body. A transport
/// of one's own can have errors of its own conform.
public protocol PeerRefusal: Error {
    /// What the peer has sent, with its headers and its content type.
    var refusal: Message { get }
}

extension HTTPRefusal: PeerRefusal {
    /// The body of the answer, with its fields and its content type.
    public var refusal: Message {
        let contentType = headers.first {
            $0.name.hasSameBytesIgnoringASCIICase(as: "content-type")
        }
        return Message(
            topic: "",
            body: body,
            headers: headers,
            contentType: contentType?.value
        )
    }
}

extension WaybillError {
    /// What the service said when it refused, as the type of ``ProviderConfiguration/errorType``.
    ///
    /// Nil without such a type, where the peer has sent no body, and where that is not of the type.
    ///
    /// ```swift
    /// let shop = Provider<ShopEntry>(
    ///     transport: transport,
    ///     configuration: ProviderConfiguration(errorType: ShopError.self)
    /// )
    /// do { try await shop.request(.order(basket)) } catch let error as WaybillError {
    ///     if let refusal = error.serviceError as? ShopError { show(refusal.reason) }
    /// }
    /// ```
    public internal(set) var serviceError: (any Error)? {
        get { decodedRefusal }
        set { decodedRefusal = newValue }
    }

    /// Decodes what the service said when it refused.
    ///
    /// - Parameters:
    ///   - type: What it is: any type that a decoder makes.
    ///   - decoders: Who decodes: those that accept the content type first, then the others, each in order.
    /// - Returns: The value; nil where the peer has sent no body, or where that is not of the type.
    public func serviceError<Value>(
        as type: Value.Type,
        decoders: [any BodyDecoder] = [JSONBodyDecoder()]
    ) -> Value? {
        if let known = serviceError as? Value { return known }
        guard let refusal = (underlying as? any PeerRefusal)?.refusal, !refusal.body.isEmpty else {
            return nil
        }
        return try? ResponseDecoding(decoders: decoders).decodeAny(type, from: refusal)
    }
}

extension ProviderConfiguration {
    /// The same error with what the service said, where that is of ``errorType``.
    func withServiceError(_ error: WaybillError) -> WaybillError {
        guard let errorType, error.serviceError == nil else { return error }
        var error = error
        error.serviceError = decoded(errorType, error)
        return error
    }

    private func decoded(_ type: (some Error).Type, _ error: WaybillError) -> (any Error)? {
        error.serviceError(as: type, decoders: decoders)
    }

    /// What a call fails with whose reply could not be decoded: `rejected`, where the reply is of ``errorType``.
    ///
    /// MQTT and STOMP have no status for replies: a service answers with an error in the place of what was asked for.
    ///
    /// - Parameters:
    ///   - reply: The reply.
    ///   - request: What was asked, which says more than the topic that the answer came by.
    ///   - error: Why it is not what was asked for.
    /// - Returns: The error to throw.
    func serviceFailure(
        in reply: Message,
        to request: Request,
        _ error: WaybillError
    ) -> WaybillError {
        var error = error
        (error.topic, error.command) = (request.topic, request.command.name)
        guard error.code == .decodingFailed, let errorType,
            let refusal = decoded(errorType, in: reply)
        else { return error }
        var rejected = WaybillError(
            .rejected,
            "the service has answered with an error",
            topic: error.topic,
            command: error.command,
            underlying: refusal
        )
        rejected.serviceError = refusal
        return rejected
    }

    private func decoded(_ type: (some Error).Type, in reply: Message) -> (any Error)? {
        try? ResponseDecoding(decoders: decoders).decodeAny(type, from: reply)
    }
}
