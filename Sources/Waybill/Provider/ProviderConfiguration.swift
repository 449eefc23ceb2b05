/// What a provider needs beside its transport.
public struct ProviderConfiguration: Sendable {
    /// Who decodes bodies: those that accept a content type first, then the others, each in order.
    public var decoders: [any BodyDecoder]
    /// Who encodes the bodies of entries that leave the format to the provider (``EntryBody/value(_:)-(Sendable)``).
    ///
    /// The first that encodes values of the type is taken.
    public var encoders: [any BodyEncoder]
    /// What the service says when it refuses, as a type of the app's own; nil to leave that undecoded.
    ///
    /// The body of a refusal is decoded by the ``decoders``, and is then in ``WaybillError/serviceError``. Any type that a
    /// decoder makes: most are `Decodable`.
    public var errorType: (any Error.Type)?
    /// What the delays before retries are measured by.
    public var clock: any Clock<Duration>
    /// How many entries that were enqueued may be without an outcome at a time; 65,536 unless it is changed.
    ///
    /// One more fails with `limitExceeded`: see ``Provider/enqueue(_:)``.
    public var maximumEnqueuedCount = 65_536
    /// How many bytes of body the entries that were enqueued may have together while they are without an outcome; 16 MiB
    /// unless it is changed.
    ///
    /// A single entry may be larger.
    public var maximumEnqueuedByteCount = 16 << 20

    /// Decodes and encodes JSON, and waits by the system's clock, unless told otherwise.
    public init(
        decoders: [any BodyDecoder] = [JSONBodyDecoder()],
        encoders: [any BodyEncoder] = [JSONBodyEncoder()],
        errorType: (any Error.Type)? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.decoders = decoders
        self.encoders = encoders
        self.errorType = errorType
        self.clock = clock
    }
}
