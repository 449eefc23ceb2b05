/// Converts headers to bytes and back: each list begins with its count, in four bytes, the first one most significant.
enum StoredHeaders {
    static func bytes(_ headers: [[String]]) -> [UInt8] {
        guard !headers.isEmpty else { return [] }
        var bytes: [UInt8] = []
        append(headers.count, to: &bytes)
        for header in headers {
            append(header.count, to: &bytes)
            for text in header {
                append(text.utf8.count, to: &bytes)
                bytes += text.utf8
            }
        }
        return bytes
    }

    /// The number of bytes that ``bytes(_:)`` returns.
    static func byteCount(_ headers: [[String]]) -> Int {
        guard !headers.isEmpty else { return 0 }
        return headers.reduce(4) { count, header in
            header.reduce(count + 4) { $0 + 4 + $1.utf8.count }
        }
    }

    /// Returns nil for other bytes.
    ///
    /// Each count has at least as many bytes behind it as it says, so that it cannot ask for more memory than the row.
    static func headers(_ bytes: [UInt8]) -> [[String]]? {
        guard !bytes.isEmpty else { return [] }
        var rest = bytes[...]
        guard let count = takeCount(&rest) else { return nil }
        var headers: [[String]] = []
        for _ in 0..<count {
            guard let textCount = takeCount(&rest) else { return nil }
            var header: [String] = []
            for _ in 0..<textCount {
                guard let byteCount = takeCount(&rest), byteCount <= rest.count else { return nil }
                let text = String(decoding: rest.prefix(byteCount), as: UTF8.self)
                guard text.utf8.elementsEqual(rest.prefix(byteCount)) else { return nil }
                header.append(text)
                rest = rest.dropFirst(byteCount)
            }
            headers.append(header)
        }
        return rest.isEmpty ? headers : nil
    }

    private static func append(_ count: Int, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(clamping: count).bigEndian) { bytes += $0 }
    }

    private static func takeCount(_ rest: inout ArraySlice<UInt8>) -> Int? {
        guard rest.count >= 4 else { return nil }
        let count = rest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        rest = rest.dropFirst(4)
        // An integer may have 32 bits, too.
        return Int(exactly: count)
    }
}
