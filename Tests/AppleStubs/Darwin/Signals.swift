// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with errno.h and signal.h.
// Observed by: nobody.

// Stands in for the error numbers and the signals of Darwin that Waybill uses.

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EPERM: Int32 { 1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EBADF: Int32 { 9 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENOMEM: Int32 { 12 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EACCES: Int32 { 13 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EINVAL: Int32 { 22 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENFILE: Int32 { 23 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EMFILE: Int32 { 24 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EPIPE: Int32 { 32 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EAFNOSUPPORT: Int32 { 47 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EADDRINUSE: Int32 { 48 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EADDRNOTAVAIL: Int32 { 49 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENETDOWN: Int32 { 50 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENETUNREACH: Int32 { 51 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENETRESET: Int32 { 52 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ECONNABORTED: Int32 { 53 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ECONNRESET: Int32 { 54 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENOBUFS: Int32 { 55 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENOTCONN: Int32 { 57 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ETIMEDOUT: Int32 { 60 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ECONNREFUSED: Int32 { 61 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EHOSTDOWN: Int32 { 64 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EHOSTUNREACH: Int32 { 65 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias sigset_t = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIGPIPE: Int32 { 13 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIG_BLOCK: Int32 { 1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIG_SETMASK: Int32 { 3 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func sigemptyset(_ set: UnsafeMutablePointer<sigset_t>!) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func sigaddset(_ set: UnsafeMutablePointer<sigset_t>!, _ signo: Int32) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func sigismember(_ set: UnsafePointer<sigset_t>!, _ signo: Int32) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func sigpending(_ set: UnsafeMutablePointer<sigset_t>!) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func sigwait(
    _ set: UnsafePointer<sigset_t>!,
    _ sig: UnsafeMutablePointer<Int32>!
) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func pthread_sigmask(
    _ how: Int32,
    _ set: UnsafePointer<sigset_t>!,
    _ oset: UnsafeMutablePointer<sigset_t>!
) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIGINT: Int32 { 2 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIGTERM: Int32 { 15 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias sig_t = @convention(c) (Int32) -> Void

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIG_IGN: sig_t! { nil }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func signal(_ sig: Int32, _ handler: sig_t!) -> sig_t! { nil }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIG_DFL: sig_t! { nil }
