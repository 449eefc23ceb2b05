// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with CoreFoundation/*.h.
// Observed by: nobody.

/// Stands in for the parts of Core Foundation that Waybill uses. No body here is ever run.
///
/// Linux has no bridging, so Swift's values cannot be cast (`as CFData`). Waybill makes them with Core Foundation's
/// functions.

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CFTypeRef = AnyObject

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CFIndex = Int

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CFStringEncoding = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFAllocator {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFData {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFString {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFError {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFBoolean {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
nonisolated(unsafe) public let kCFBooleanTrue: CFBoolean! = nil

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public class CFArray {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFMutableArray: CFArray {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public class CFDictionary {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public final class CFMutableDictionary: CFDictionary {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct CFArrayCallBacks {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct CFDictionaryKeyCallBacks {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct CFDictionaryValueCallBacks {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCFTypeArrayCallBacks: CFArrayCallBacks { CFArrayCallBacks() }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCFTypeDictionaryKeyCallBacks: CFDictionaryKeyCallBacks { CFDictionaryKeyCallBacks() }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCFTypeDictionaryValueCallBacks: CFDictionaryValueCallBacks {
    CFDictionaryValueCallBacks()
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public enum CFStringBuiltInEncodings: UInt32, Sendable {
    case UTF8 = 0x0800_0100
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFDataCreate(
    _ allocator: CFAllocator!,
    _ bytes: UnsafePointer<UInt8>!,
    _ length: CFIndex
) -> CFData! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFDataGetLength(_ theData: CFData!) -> CFIndex { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFDataGetBytePtr(_ theData: CFData!) -> UnsafePointer<UInt8>! { nil }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFStringCreateWithBytes(
    _ alloc: CFAllocator!,
    _ bytes: UnsafePointer<UInt8>!,
    _ numBytes: CFIndex,
    _ encoding: CFStringEncoding,
    _ isExternalRepresentation: Bool
) -> CFString! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFStringGetLength(_ theString: CFString!) -> CFIndex { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFStringGetMaximumSizeForEncoding(
    _ length: CFIndex,
    _ encoding: CFStringEncoding
) -> CFIndex {
    0
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFStringGetCString(
    _ theString: CFString!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ bufferSize: CFIndex,
    _ encoding: CFStringEncoding
) -> Bool {
    false
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFArrayCreateMutable(
    _ allocator: CFAllocator!,
    _ capacity: CFIndex,
    _ callBacks: UnsafePointer<CFArrayCallBacks>!
) -> CFMutableArray! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFArrayAppendValue(_ theArray: CFMutableArray!, _ value: UnsafeRawPointer!) {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFArrayGetCount(_ theArray: CFArray!) -> CFIndex { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFArrayGetValueAtIndex(_ theArray: CFArray!, _ idx: CFIndex) -> UnsafeRawPointer! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFDictionaryCreateMutable(
    _ allocator: CFAllocator!,
    _ capacity: CFIndex,
    _ keyCallBacks: UnsafePointer<CFDictionaryKeyCallBacks>!,
    _ valueCallBacks: UnsafePointer<CFDictionaryValueCallBacks>!
) -> CFMutableDictionary! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFDictionarySetValue(
    _ theDict: CFMutableDictionary!,
    _ key: UnsafeRawPointer!,
    _ value: UnsafeRawPointer!
) {}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFDictionaryGetValue(
    _ theDict: CFDictionary!,
    _ key: UnsafeRawPointer!
) -> UnsafeRawPointer! {
    nil
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFErrorGetCode(_ err: CFError!) -> CFIndex { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CFErrorCopyDescription(_ err: CFError!) -> CFString! { nil }
