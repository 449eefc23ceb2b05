/// What a provider needs beside its transport.
public struct ProviderConfiguration: Sendable {
    /// Who decodes bodies: those that accept a content type first, then the others, each in order.
    public var decoders: [any BodyDecoder]
    /// What the delays before retries are measured by.
    public var clock: any Clock<Duration>

    /// Decodes JSON, and waits by the system's clock, unless told otherwise.
    public init(
        decoders: [any BodyDecoder] = [JSONBodyDecoder()],
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.decoders = decoders
        self.clock = clock
    }
}
