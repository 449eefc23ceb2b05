// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with errno.h, fcntl.h, stdio.h and
// unistd.h.
// Observed by: nobody.

// Stands in for the files of Darwin that recordings use.

@available(macOS 10.12, iOS 10.0, tvOS 10.0, watchOS 3.0, visionOS 1.0, *)
public var CLOCK_REALTIME: clockid_t { clockid_t(rawValue: 0) }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias off_t = Int64

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_NOFOLLOW: Int32 { 0x100 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_RDWR: Int32 { 0x2 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var O_EXCL: Int32 { 0x800 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var F_OK: Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SEEK_SET: Int32 { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SEEK_END: Int32 { 2 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENOENT: Int32 { 2 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EIO: Int32 { 5 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EISDIR: Int32 { 21 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EFBIG: Int32 { 27 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ENOSPC: Int32 { 28 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var ELOOP: Int32 { 62 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var EDQUOT: Int32 { 69 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var SIGXFSZ: Int32 { 25 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func access(_ path: UnsafePointer<CChar>!, _ mode: Int32) -> Int32 { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func lseek(_ fd: Int32, _ offset: off_t, _ whence: Int32) -> off_t { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func ftruncate(_ fd: Int32, _ length: off_t) -> Int32 { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func unlink(_ path: UnsafePointer<CChar>!) -> Int32 { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func rename(_ old: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 { -1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func strerror_r(_ number: Int32, _ text: UnsafeMutablePointer<CChar>!, _ count: Int) -> Int32
{
    -1
}
