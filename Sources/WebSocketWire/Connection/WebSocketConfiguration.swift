package import HTTPWire

/// How a ``WebSocketConnection`` behaves.
package struct WebSocketConfiguration: Sendable {
    /// The longest message to accept, in bytes, inflated: 1 MiB.
    package var maximumMessageSize = 1 << 20
    /// How large the head of the handshake may be.
    package var headLimits = HTTPHeadLimits()
    /// How much of the body of a refused upgrade is kept: 64 KiB.
    package var maximumRefusalBody = 65_536
    /// What is offered or accepted as compression; nil for none.
    package var deflate: PermessageDeflate?
    /// How short a message is sent as it is, in bytes.
    package var compressionThreshold = 64
    /// How long the opening handshake may take.
    package var handshakeTimeout = Duration.seconds(10)
    /// How long the peer may take to answer a Close, and then to close the stream.
    package var closeTimeout = Duration.seconds(5)
    /// After how much silence a ping is sent; nil for never.
    package var pingInterval: Duration?
    /// Whether pings wait for ``WebSocketConnection/startPings()``.
    package var pingsOnRequest = false
    /// How long the peer may then stay silent.
    package var pingTimeout = Duration.seconds(20)
    /// Gives that many random words, for keys that nobody can predict (RFC 6455, 5.3 and 10.3).
    package var randomWords: @Sendable (Int) -> [UInt64]

    package init(randomWords: @escaping @Sendable (Int) -> [UInt64]) {
        self.randomWords = randomWords
    }
}
