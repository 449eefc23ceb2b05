/// The settings of a provider.
public struct ProviderConfiguration: Sendable {
    /// The decoders of bodies; those that accept a content type are tried first, then the others, each in order.
    public var decoders: [any BodyDecoder]
    /// The encoders of bodies whose entry leaves the format to the provider (``EntryBody/value(_:)-(Sendable)``).
    ///
    /// The first encoder that encodes values of the type is used.
    public var encoders: [any BodyEncoder]
    /// The app's type for error bodies of the service; nil to leave them undecoded.
    ///
    /// The ``decoders`` decode the body of a refusal to this type, and the result is in ``WaybillError/serviceError``.
    /// It may be any type that a decoder makes; most are `Decodable`.
    public var errorType: (any Error.Type)?
    /// The clock for the delays before retries.
    public var clock: any Clock<Duration>
    /// The number of enqueued entries that may be without an outcome at a time; 65,536 by default.
    ///
    /// A further entry fails with `limitExceeded`; see ``Provider/enqueue(_:)``.
    public var maximumEnqueuedCount: Int
    /// The number of body bytes that enqueued entries without an outcome may have together; 16 MiB by default.
    ///
    /// A single entry may exceed it.
    public var maximumEnqueuedByteCount: Int

    /// Makes a configuration; by default it decodes and encodes JSON and uses the system's clock.
    public init(
        decoders: [any BodyDecoder] = [JSONBodyDecoder()],
        encoders: [any BodyEncoder] = [JSONBodyEncoder()],
        errorType: (any Error.Type)? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        maximumEnqueuedCount: Int = 65_536,
        maximumEnqueuedByteCount: Int = 16 << 20
    ) {
        self.decoders = decoders
        self.encoders = encoders
        self.errorType = errorType
        self.clock = clock
        self.maximumEnqueuedCount = maximumEnqueuedCount
        self.maximumEnqueuedByteCount = maximumEnqueuedByteCount
    }
}
