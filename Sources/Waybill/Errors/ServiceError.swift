import WireCore

/// An error to which the peer attached a body, such as an HTTP response that refuses a request, or an ERROR frame.
///
/// It is the `underlying` error of a ``WaybillError``; ``WaybillError/serviceError(as:decoders:)`` decodes its body.
/// The errors of a custom transport can conform, too.
public protocol PeerRefusal: Error {
    /// The body of the peer, with its headers and its content type.
    var refusal: Message { get }
}

extension HTTPRefusal: PeerRefusal {
    /// The body of the response, with its fields and its content type.
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
    /// The error body of the service, decoded as ``ProviderConfiguration/errorType``.
    ///
    /// Nil without such a type, if the peer sent no body, and if the body cannot be decoded as that type.
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

    /// Decodes the error body of the service.
    ///
    /// - Parameters:
    ///   - type: The type to decode to: any type that a decoder makes.
    ///   - decoders: The decoders. Those that accept the content type are tried first, then the others, each in order.
    /// - Returns: The value; nil if the peer sent no body, or if the body cannot be decoded as that type.
    public func serviceError<Value>(
        as type: Value.Type,
        decoders: [any BodyDecoder] = [JSONBodyDecoder()]
    ) -> Value? {
        if let known = serviceError as? Value { return known }
        guard let refusal = (underlying as? any PeerRefusal)?.refusal, !refusal.body.isEmpty else {
            return nil
        }
        return ResponseDecoding(decoders: decoders).value(type, from: refusal)
    }
}

extension ProviderConfiguration {
    /// The same error with the service's error body, if that can be decoded as ``errorType``.
    func withServiceError(_ error: WaybillError) -> WaybillError {
        guard let errorType, error.serviceError == nil else { return error }
        var error = error
        error.serviceError = decoded(errorType, error)
        return error
    }

    private func decoded(_ type: (some Error).Type, _ error: WaybillError) -> (any Error)? {
        error.serviceError(as: type, decoders: decoders)
    }

    /// The error for a reply that could not be decoded: `rejected` if the reply can be decoded as ``errorType``.
    ///
    /// MQTT and STOMP have no status for replies: a service puts an error in the place of the expected value.
    ///
    /// - Parameters:
    ///   - reply: The reply.
    ///   - request: The request; it names the topic asked, and the reply only the topic it arrived on.
    ///   - error: The error of decoding the expected type.
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
        ResponseDecoding(decoders: decoders).value(type, from: reply)
    }
}
