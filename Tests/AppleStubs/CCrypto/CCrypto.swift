// Read in: nothing but what Documentation/OnAMac.md names; from memory, to compare with CommonCrypto/*.h.
// Observed by: nobody.

/// Stands in for the parts of CommonCrypto that Waybill uses. No body here is ever run.

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCPBKDFAlgorithm = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCPseudoRandomAlgorithm = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCOperation = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCAlgorithm = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCOptions = UInt32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCCryptorStatus = Int32

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCSuccess: Int { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCPBKDF2: Int { 2 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCPRFHmacAlgSHA1: Int { 1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCPRFHmacAlgSHA256: Int { 3 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCPRFHmacAlgSHA384: Int { 4 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCPRFHmacAlgSHA512: Int { 5 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCDecrypt: Int { 1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCAlgorithmAES: Int { 0 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCOptionPKCS7Padding: Int { 1 }

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func CCKeyDerivationPBKDF(
    _ algorithm: CCPBKDFAlgorithm,
    _ password: UnsafePointer<CChar>!,
    _ passwordLen: Int,
    _ salt: UnsafePointer<UInt8>!,
    _ saltLen: Int,
    _ prf: CCPseudoRandomAlgorithm,
    _ rounds: UInt32,
    _ derivedKey: UnsafeMutablePointer<UInt8>!,
    _ derivedKeyLen: Int
) -> Int32 {
    0
}

@available(macOS 10.10, iOS 8.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func CCCrypt(
    _ op: CCOperation,
    _ alg: CCAlgorithm,
    _ options: CCOptions,
    _ key: UnsafeRawPointer!,
    _ keyLength: Int,
    _ iv: UnsafeRawPointer!,
    _ dataIn: UnsafeRawPointer!,
    _ dataInLength: Int,
    _ dataOut: UnsafeMutableRawPointer!,
    _ dataOutAvailable: Int,
    _ dataOutMoved: UnsafeMutablePointer<Int>!
) -> CCCryptorStatus {
    0
}

@available(macOS 10.4, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CC_LONG = UInt32

@available(macOS 10.4, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
@discardableResult
public func CC_SHA256(
    _ data: UnsafeRawPointer!,
    _ len: CC_LONG,
    _ md: UnsafeMutablePointer<UInt8>!
) -> UnsafeMutablePointer<UInt8>! {
    nil
}

@available(macOS 10.4, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public typealias CCHmacAlgorithm = UInt32

@available(macOS 10.4, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public var kCCHmacAlgSHA256: Int { 2 }

@available(macOS 10.4, iOS 2.0, tvOS 9.0, watchOS 2.0, visionOS 1.0, *)
public func CCHmac(
    _ algorithm: CCHmacAlgorithm,
    _ key: UnsafeRawPointer!,
    _ keyLength: Int,
    _ data: UnsafeRawPointer!,
    _ dataLength: Int,
    _ macOut: UnsafeMutableRawPointer!
) {}
