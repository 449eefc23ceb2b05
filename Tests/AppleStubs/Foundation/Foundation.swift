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
