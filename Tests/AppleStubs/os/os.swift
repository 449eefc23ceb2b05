/// Stands in for the parts of os that Waybill uses. No body here is ever run.

@available(macOS 13.0, iOS 16.0, tvOS 16.0, watchOS 9.0, visionOS 1.0, *)
@frozen
public struct OSAllocatedUnfairLock<State>: @unchecked Sendable {
    public init(uncheckedState initialState: State) {}

    public func withLockUnchecked<R>(_ body: (inout State) throws -> R) rethrows -> R {
        fatalError("stand-in")
    }
}

@available(macOS 13.0, iOS 16.0, tvOS 16.0, watchOS 9.0, visionOS 1.0, *)
extension OSAllocatedUnfairLock where State: Sendable {
    public init(initialState: State) {}

    public func withLock<R: Sendable>(
        _ body: @Sendable (inout State) throws -> R
    ) rethrows -> R {
        fatalError("stand-in")
    }
}
