#if canImport(Network)
    import CoreFoundation
    import Security

    // Uses Core Foundation's functions, because `as CFData` and similar casts exist only on Apple platforms, and every
    // line should also be type-checked on Linux.

    /// Conversions between Core Foundation's values and Swift's.
    enum CoreFoundationValues {
        static func data(_ bytes: [UInt8]) -> CFData? {
            CFDataCreate(nil, bytes, bytes.count)
        }

        static func bytes(_ data: CFData) -> [UInt8] {
            guard let start = CFDataGetBytePtr(data) else { return [] }
            // Valid as long as `data`, which the caller keeps.
            return Array(UnsafeBufferPointer(start: start, count: CFDataGetLength(data)))
        }

        static func string(_ text: String) -> CFString? {
            let bytes = Array(text.utf8)
            let encoding = CFStringBuiltInEncodings.UTF8.rawValue
            return CFStringCreateWithBytes(nil, bytes, bytes.count, encoding, false)
        }

        /// An array that retains its elements.
        static func array(_ elements: [some AnyObject]) -> CFArray? {
            let array = withUnsafePointer(to: kCFTypeArrayCallBacks) { callBacks in
                CFArrayCreateMutable(nil, 0, callBacks)
            }
            guard let array else { return nil }
            for element in elements {
                CFArrayAppendValue(array, Unmanaged.passUnretained(element).toOpaque())
            }
            return array
        }

        /// A dictionary that retains its keys and values.
        static func dictionary(_ pairs: [(key: CFString, value: AnyObject)]) -> CFDictionary? {
            let dictionary = withUnsafePointer(to: kCFTypeDictionaryKeyCallBacks) { keys in
                withUnsafePointer(to: kCFTypeDictionaryValueCallBacks) { values in
                    CFDictionaryCreateMutable(nil, 0, keys, values)
                }
            }
            guard let dictionary else { return nil }
            for (key, value) in pairs {
                CFDictionarySetValue(
                    dictionary,
                    Unmanaged.passUnretained(key).toOpaque(),
                    Unmanaged.passUnretained(value).toOpaque()
                )
            }
            return dictionary
        }

        /// A certificate; nil if the bytes are not the DER of one.
        static func certificate(_ bytes: [UInt8]) -> SecCertificate? {
            data(bytes).flatMap { SecCertificateCreateWithData(nil, $0) }
        }

        /// The elements of an array with elements of a single known type.
        static func elements<Element: AnyObject>(
            of array: CFArray,
            as type: Element.Type
        ) -> [Element] {
            (0..<CFArrayGetCount(array)).compactMap { index in
                CFArrayGetValueAtIndex(array, index).map {
                    Unmanaged<Element>.fromOpaque($0).takeUnretainedValue()
                }
            }
        }

        /// The elements of a value that is an array, with elements of a single known type.
        static func elements<Element: AnyObject>(
            ofAny value: CFTypeRef,
            as type: Element.Type
        ) -> [Element] {
            let address = Unmanaged.passUnretained(value).toOpaque()
            let array = Unmanaged<CFArray>.fromOpaque(address).takeUnretainedValue()
            return elements(of: array, as: type)
        }

        /// The value of a key with a known type; nil if there is none.
        static func value<Value: AnyObject>(
            of key: CFString,
            in dictionary: CFDictionary,
            as type: Value.Type
        ) -> Value? {
            CFDictionaryGetValue(dictionary, Unmanaged.passUnretained(key).toOpaque()).map {
                Unmanaged<Value>.fromOpaque($0).takeUnretainedValue()
            }
        }
    }

    extension String {
        /// Makes a string with the same text.
        init(copying text: CFString) {
            let encoding = CFStringBuiltInEncodings.UTF8.rawValue
            let length = CFStringGetLength(text)
            // And one byte for the terminating zero.
            let size = CFStringGetMaximumSizeForEncoding(length, encoding) + 1
            var buffer = [CChar](repeating: 0, count: size)
            _ = CFStringGetCString(text, &buffer, buffer.count, encoding)
            let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            self = String(decoding: bytes, as: UTF8.self)
        }
    }
#endif
