#if os(Linux)
    package import Glibc

    /// The address of a socket of this machine, 127.0.0.1, for the calls of the C library.
    package enum LoopbackAddress {
        /// Calls `bind`, `connect` or the like with the address of a port; zero stands for any.
        package static func with<Result>(
            _ port: UInt16,
            _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
        ) rethrows -> Result {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return try withUnsafePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }

        /// The port that a socket is bound to; zero if it is not bound.
        package static func port(of descriptor: Int32) -> UInt16 {
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getsockname(descriptor, $0, &size)
                }
            }
            return result == 0 ? UInt16(bigEndian: address.sin_port) : 0
        }
    }
#endif
