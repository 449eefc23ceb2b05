// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with the interface of Foundation.
// Observed by: nobody.

@_exported public import CoreFoundation
@_exported public import Darwin
@_exported public import Dispatch
@_exported public import FoundationEssentials

// Stands in for Foundation. On Apple platforms it contains what FoundationEssentials contains on Linux, and
// re-exports the other three modules.

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public protocol NSObjectProtocol: AnyObject {}

@available(macOS 10.5, iOS 4.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
open class OperationQueue {}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct Notification {
    public struct Name: Hashable, Sendable {
        public init(_ rawValue: String) {}
    }
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
open class NotificationCenter: @unchecked Sendable {
    open class var `default`: NotificationCenter { NotificationCenter() }

    open func addObserver(
        forName name: Notification.Name?,
        object obj: Any?,
        queue: OperationQueue?,
        using block: @escaping @Sendable (Notification) -> Void
    ) -> any NSObjectProtocol { preconditionFailure() }

    open func removeObserver(_ observer: Any) {}
}

// What only the tests use.

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
open class FileHandle: @unchecked Sendable {
    public convenience init(forUpdating url: URL) throws { self.init() }

    public convenience init?(forUpdatingAtPath path: String) { self.init() }

    init() {}

    open var fileDescriptor: Int32 { -1 }

    open var availableData: Data { Data() }

    // macOS 10.15.4, iOS 13.4.
    public func seekToEnd() throws -> UInt64 { 0 }

    public func seek(toOffset offset: UInt64) throws {}

    public func write<T: DataProtocol>(contentsOf data: T) throws {}

    public func close() throws {}
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
open class Pipe: @unchecked Sendable {
    open var fileHandleForReading: FileHandle { FileHandle() }

    open var fileHandleForWriting: FileHandle { FileHandle() }

    public init() {}
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
open class Thread {
    // macOS 10.12, iOS 10.
    open class func detachNewThread(_ block: @escaping @Sendable () -> Void) {}
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public struct CharacterSet: Sendable {
    public static var whitespaces: CharacterSet { CharacterSet() }
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
extension StringProtocol {
    public func trimmingCharacters(in set: CharacterSet) -> String { "" }

    public func range(of text: some StringProtocol) -> Range<Index>? { nil }

    public func replacingOccurrences(
        of text: some StringProtocol,
        with other: some StringProtocol
    ) -> String { "" }
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
extension FileManager {
    public final class DirectoryEnumerator: Sequence, IteratorProtocol {
        public init() {}

        public func next() -> Any? { nil }
    }

    public func enumerator(atPath path: String) -> DirectoryEnumerator? { nil }
}

@available(macOS 10.0, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
extension Error {
    public var localizedDescription: String { "" }
}
