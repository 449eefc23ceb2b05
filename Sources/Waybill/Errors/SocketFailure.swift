#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// An error of the system on a socket: its POSIX error number.
///
/// It is the `underlying` error of a ``WaybillError`` when a connection could not be made or was broken.
/// ``WaybillError/socketFailure`` finds it.
///
/// ```swift
/// catch let error as WaybillError where error.socketFailure?.name == "ECONNREFUSED" { … }
/// ```
public struct SocketFailure: Error, Hashable, Sendable {
    /// The system's error number (`errno`), such as 111 for ECONNREFUSED on Linux; numbers differ between systems.
    public var errorNumber: Int32
    /// The system call that failed, such as `connect`; nil if unknown.
    public var call: String?

    /// Describes a failure.
    public init(errorNumber: Int32, call: String? = nil) {
        self.errorNumber = errorNumber
        self.call = call
    }

    /// The name of the number, such as `ECONNREFUSED`, the same on every system; `errno` and the number if the name is
    /// not known here.
    public var name: String {
        Self.known.first { $0.number == errorNumber }?.name ?? "errno \(errorNumber)"
    }

    private static let known: [(number: Int32, name: String, words: String)] = [
        (ECONNREFUSED, "ECONNREFUSED", "connection refused"),
        (ECONNRESET, "ECONNRESET", "connection reset by the peer"),
        (ECONNABORTED, "ECONNABORTED", "connection aborted"),
        (EPIPE, "EPIPE", "the connection is closed for writing"),
        (ETIMEDOUT, "ETIMEDOUT", "no answer from the host"),
        (EHOSTUNREACH, "EHOSTUNREACH", "no way to the host"),
        (EHOSTDOWN, "EHOSTDOWN", "the host is down"),
        (ENETUNREACH, "ENETUNREACH", "no way to the network"),
        (ENETDOWN, "ENETDOWN", "the network is down"),
        (ENETRESET, "ENETRESET", "the network broke the connection"),
        (ENOTCONN, "ENOTCONN", "not connected"),
        (EADDRNOTAVAIL, "EADDRNOTAVAIL", "no local address or port is left"),
        (EADDRINUSE, "EADDRINUSE", "the address is in use"),
        (EAFNOSUPPORT, "EAFNOSUPPORT", "this system has no such kind of address"),
        (EACCES, "EACCES", "permission denied"),
        (EPERM, "EPERM", "not permitted, as by a firewall"),
        (EINVAL, "EINVAL", "invalid argument"),
        (EBADF, "EBADF", "no such file descriptor"),
        (EMFILE, "EMFILE", "too many open files in this process"),
        (ENFILE, "ENFILE", "too many open files on this machine"),
        (ENOBUFS, "ENOBUFS", "no buffers left"),
        (ENOMEM, "ENOMEM", "no memory left"),
    ]
}

extension SocketFailure {
    package static var refused: SocketFailure {
        SocketFailure(errorNumber: ECONNREFUSED, call: "connect")
    }

    package static var reset: SocketFailure { SocketFailure(errorNumber: ECONNRESET) }
}

extension SocketFailure: CustomStringConvertible {
    /// A short text, the name of the number, and the call.
    public var description: String {
        let words = Self.known.first { $0.number == errorNumber }?.words ?? "error of the system"
        return "\(words) (\([name, call].compactMap { $0 }.joined(separator: ", ")))"
    }
}

extension WaybillError {
    /// The system's error on the socket; nil for other kinds of failure.
    public var socketFailure: SocketFailure? { underlying as? SocketFailure }
}
