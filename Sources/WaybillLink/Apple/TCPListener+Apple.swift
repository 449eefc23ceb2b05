#if canImport(Network)
    /// Stands where the platform has no listener.
    package final class TCPListener: Sendable {
        /// The port.
        package let port: UInt16 = 0

        /// - Throws: `LinkError.unsupported`.
        package init(
            port: UInt16 = 0,
            accept: @escaping @Sendable (any ByteStream) -> Void
        ) throws(LinkError) {
            throw .unsupported("the loopback broker")
        }

        /// Does nothing.
        package func close() {}
    }
#endif
