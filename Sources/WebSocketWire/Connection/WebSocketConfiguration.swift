package import HTTPWire

/// The settings of a ``WebSocketConnection``.
package struct WebSocketConfiguration: Sendable {
    /// The longest message to accept, in bytes after decompression: 1 MiB.
    ///
    /// With nil, messages have no limit and are not gathered: the parts of each are delivered as they arrive, as one
    /// message event each. A part of a text may end within a character.
    package var maximumMessageSize: Int? = 1 << 20
    /// The limits of the head of the handshake.
    package var headLimits = HTTPHeadLimits()
    /// The part of a refused upgrade's body that is kept: 64 KiB.
    package var maximumRefusalBody = 65_536
    /// The compression to offer or accept; nil for none.
    package var deflate: PermessageDeflate?
    /// The length in bytes from which messages are compressed.
    package var compressionThreshold = 64
    /// The time limit of the opening handshake.
    package var handshakeTimeout = Duration.seconds(10)
    /// The time limit for the peer's Close, and then for the end of the stream.
    package var closeTimeout = Duration.seconds(5)
    /// The silence after which a ping is sent; nil for never.
    package var pingInterval: Duration?
    /// Whether pings wait for ``WebSocketConnection/startPings()``.
    package var pingsOnRequest = false
    /// The time that the peer may stay silent after the ping.
    package var pingTimeout = Duration.seconds(20)
    /// Returns a number of random words, for masking keys that cannot be predicted (RFC 6455, 5.3 and 10.3).
    package var randomWords: @Sendable (Int) -> [UInt64]

    package init(randomWords: @escaping @Sendable (Int) -> [UInt64]) {
        self.randomWords = randomWords
    }
}
