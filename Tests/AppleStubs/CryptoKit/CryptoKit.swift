// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with the interface of CryptoKit.
// Observed by: nobody.

/// Stands in for the parts of CryptoKit that Waybill uses. No body here is ever run.

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol Digest: Hashable, Sequence<UInt8> {
    static var byteCount: Int { get }
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public protocol HashFunction {
    associatedtype Digest: CryptoKit.Digest

    init()
    mutating func update(bufferPointer: UnsafeRawBufferPointer)
    func finalize() -> Digest
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public struct SHA256Digest: Digest {
    public static var byteCount: Int { 32 }

    public func makeIterator() -> Array<UInt8>.Iterator {
        [].makeIterator()
    }
}

@available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, visionOS 1.0, *)
public struct SHA256: HashFunction {
    public typealias Digest = SHA256Digest

    public init() {}

    public mutating func update(bufferPointer: UnsafeRawBufferPointer) {}

    public func finalize() -> SHA256Digest {
        SHA256Digest()
    }
}

// Apple's types are not Sendable either.

@available(*, unavailable)
extension SHA256Digest: Sendable {}
