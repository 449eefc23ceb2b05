#if os(Linux)
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// One socket address of a host.
    package struct SocketAddress: Hashable, Sendable {
        /// `AF_INET`, `AF_INET6`, or another family of the system.
        let family: Int32
        /// The address in the form of the system calls.
        let bytes: [UInt8]
    }

    extension SocketAddress {
        /// An IPv4 address and a port.
        package static func ipv4(_ address: UInt32, port: UInt16) -> SocketAddress {
            var native = sockaddr_in()
            native.sin_family = sa_family_t(AF_INET)
            native.sin_addr.s_addr = address.bigEndian
            native.sin_port = port.bigEndian
            return SocketAddress(
                family: AF_INET,
                bytes: withUnsafeBytes(of: &native) { Array($0) }
            )
        }

        /// The IPv6 address of this machine, `::1`, and a port.
        package static func ipv6Loopback(port: UInt16) -> SocketAddress {
            var native = sockaddr_in6()
            native.sin6_family = sa_family_t(AF_INET6)
            native.sin6_addr = in6addr_loopback
            native.sin6_port = port.bigEndian
            return SocketAddress(
                family: AF_INET6,
                bytes: withUnsafeBytes(of: &native) { Array($0) }
            )
        }
    }
#endif
