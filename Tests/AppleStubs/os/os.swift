// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with os/*.h.
// Observed by: nobody.

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

@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, visionOS 1.0, *)
public struct Logger: @unchecked Sendable {
    public init(subsystem: String, category: String) {}

    public func debug(_ message: OSLogMessage) {}
}

@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, visionOS 1.0, *)
@frozen
public struct OSLogMessage: ExpressibleByStringInterpolation, ExpressibleByStringLiteral {
    public init(stringInterpolation: OSLogInterpolation) {}
    public init(stringLiteral value: String) {}
}

@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, visionOS 1.0, *)
@frozen
public struct OSLogInterpolation: StringInterpolationProtocol {
    public init(literalCapacity: Int, interpolationCount: Int) {}
    public mutating func appendLiteral(_ literal: String) {}
    public mutating func appendInterpolation(
        _ argumentString: @autoclosure @escaping () -> String,
        align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {}
}

@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, visionOS 1.0, *)
@frozen
public struct OSLogStringAlignment {
    public static var none: OSLogStringAlignment { OSLogStringAlignment() }
}

@available(macOS 11.0, iOS 14.0, tvOS 14.0, watchOS 7.0, visionOS 1.0, *)
@frozen
public struct OSLogPrivacy {
    public static var auto: OSLogPrivacy { OSLogPrivacy() }
    public static var `public`: OSLogPrivacy { OSLogPrivacy() }
}

// Apple's types are not Sendable either.

@available(*, unavailable)
extension OSLogMessage: Sendable {}

@available(*, unavailable)
extension OSLogInterpolation: Sendable {}

@available(*, unavailable)
extension OSLogStringAlignment: Sendable {}

@available(*, unavailable)
extension OSLogPrivacy: Sendable {}
