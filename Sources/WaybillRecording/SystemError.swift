#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Errors of the system in words.
enum SystemError {
    /// The text of an error number.
    static func text(_ number: Int32) -> String {
        // Long enough for every message of every language.
        var text = [CChar](repeating: 0, count: 256)
        guard strerror_r(number, &text, text.count) == 0 else { return "error \(number)" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
