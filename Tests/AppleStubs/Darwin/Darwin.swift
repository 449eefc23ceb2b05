// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with sys/*.h and time.h.
// Observed by: nobody.

/// Stands in for the parts of Darwin that Waybill uses. No body here is ever run.

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias OSStatus = Int32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias time_t = Int

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct timespec: Sendable {
    public var tv_sec: time_t
    public var tv_nsec: Int

    public init() {
        tv_sec = 0
        tv_nsec = 0
    }

    public init(tv_sec: time_t, tv_nsec: Int) {
        self.tv_sec = tv_sec
        self.tv_nsec = tv_nsec
    }
}

@available(macOS 10.12, iOS 10.0, tvOS 10.0, watchOS 3.0, visionOS 1.0, *)
public struct clockid_t: RawRepresentable, Equatable, Sendable {
    public var rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }
}

@available(macOS 10.12, iOS 10.0, tvOS 10.0, watchOS 3.0, visionOS 1.0, *)
public var CLOCK_UPTIME_RAW: clockid_t { clockid_t(rawValue: 8) }

@available(macOS 10.12, iOS 10.0, tvOS 10.0, watchOS 3.0, visionOS 1.0, *)
@discardableResult
public func clock_gettime(_ clock: clockid_t, _ time: UnsafeMutablePointer<timespec>!) -> Int32 {
    0
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public enum POSIXErrorCode: Int32, Hashable, Sendable {
    case EPIPE = 32
    case ENETDOWN = 50
    case ENETUNREACH = 51
    case ECONNABORTED = 53
    case ECONNRESET = 54
    case ENOTCONN = 57
    case ETIMEDOUT = 60
    case ECONNREFUSED = 61
    case EHOSTUNREACH = 65
    case ECANCELED = 89
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_RDONLY: Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_WRONLY: Int32 { 0x1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_APPEND: Int32 { 0x8 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_CREAT: Int32 { 0x200 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var STDOUT_FILENO: Int32 { 1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias mode_t = UInt16

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 { -1 }

@available(macOS 10.12, iOS 10.0, tvOS 10.0, watchOS 3.0, visionOS 1.0, *)
public var CLOCK_MONOTONIC: clockid_t { clockid_t(rawValue: 6) }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_CLOEXEC: Int32 { 0x100_0000 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_NONBLOCK: Int32 { 0x4 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func read(_ fd: Int32, _ buf: UnsafeMutableRawPointer!, _ nbyte: Int) -> Int { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func close(_ fd: Int32) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var STDERR_FILENO: Int32 { 2 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func write(_ fd: Int32, _ buf: UnsafeRawPointer!, _ nbyte: Int) -> Int { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func exit(_ status: Int32) -> Never { fatalError("stand-in") }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var errno: Int32 {
    get { 0 }
    set {}
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EINTR: Int32 { 4 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func log(_ x: Double) -> Double { x }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func log2(_ x: Double) -> Double { x }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func exp2(_ x: Double) -> Double { x }

@available(macOS 10.12, iOS 10.0, tvOS 10.0, watchOS 3.0, visionOS 1.0, *)
public func timingsafe_bcmp(
    _ b1: UnsafeRawPointer!,
    _ b2: UnsafeRawPointer!,
    _ len: Int
) -> Int32 {
    0
}

// What only the tests use.

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct timeval: Sendable {
    public var tv_sec: time_t
    public var tv_usec: Int32
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct rusage: Sendable {
    public var ru_utime: timeval
    public var ru_stime: timeval

    public init() { fatalError("stand-in") }
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var RUSAGE_SELF: Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func getrusage(_ who: Int32, _ usage: UnsafeMutablePointer<rusage>!) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct FILE {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func fopen(
    _ filename: UnsafePointer<CChar>!,
    _ mode: UnsafePointer<CChar>!
) -> UnsafeMutablePointer<FILE>! { nil }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func fclose(_ file: UnsafeMutablePointer<FILE>!) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func fread(
    _ pointer: UnsafeMutableRawPointer!,
    _ size: Int,
    _ count: Int,
    _ stream: UnsafeMutablePointer<FILE>!
) -> Int { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func getpagesize() -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func memchr(
    _ bytes: UnsafeRawPointer!,
    _ byte: Int32,
    _ count: Int
) -> UnsafeMutableRawPointer! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func sched_yield() -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func fcntl(_ fd: Int32, _ command: Int32, _ value: Int32) -> Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var F_SETFL: Int32 { 4 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EAGAIN: Int32 { 35 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func mkfifo(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { 0 }
