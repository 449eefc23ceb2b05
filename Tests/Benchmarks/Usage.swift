#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The elapsed time and the CPU time since its creation.
struct Usage {
    private let wall = ContinuousClock().now
    private let cpu = Usage.cpuMicroseconds

    private static var cpuMicroseconds: Double {
        var usage = rusage()
        #if canImport(Glibc)
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
            getrusage(RUSAGE_SELF, &usage)
        #endif
        let user = Double(usage.ru_utime.tv_sec) * 1e6 + Double(usage.ru_utime.tv_usec)
        return user + Double(usage.ru_stime.tv_sec) * 1e6 + Double(usage.ru_stime.tv_usec)
    }

    /// The resident memory, a multiple of the page size; 0 where the system has no `/proc`.
    static var residentBytes: Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var text = [UInt8](repeating: 0, count: 128)
        let count = fread(&text, 1, text.count, file)
        let pages = String(decoding: text.prefix(count), as: UTF8.self).split(separator: " ")
        return (pages.count > 1 ? Int(pages[1]) ?? 0 : 0) * Int(getpagesize())
    }

    private var seconds: Double {
        (ContinuousClock().now - wall) / .seconds(1)
    }

    func nanoseconds(per count: Int) -> Double { seconds * 1e9 / Double(count) }

    /// The processor time for each item. Other processes influence it less than the elapsed time.
    func processorNanoseconds(per count: Int) -> Double {
        (Usage.cpuMicroseconds - cpu) * 1e3 / Double(count)
    }

    /// Prints a line of JSON.
    /// - Parameters:
    ///   - job: The contender.
    ///   - count: The number of messages.
    ///   - times: The duration of each round trip in microseconds, if it was measured.
    ///   - byteCount: The bytes that were sent, if they were counted.
    func report(_ job: String, _ count: Int, times: [Double] = [], byteCount: Int? = nil) {
        let cpu = (Usage.cpuMicroseconds - cpu) / Double(count)
        let rate = Double(count) / seconds
        var text = #"{"job": "\#(job)", "count": \#(count), "cpu_us_per_message": \#(cpu), "#
        text += #""messages_per_second": \#(rate)"#
        if let byteCount { text += #", "bytes": \#(byteCount)"# }
        if !times.isEmpty {
            let sorted = times.sorted()
            text += #", "p50_us": \#(sorted[sorted.count / 2])"#
            text += #", "p99_us": \#(sorted[sorted.count * 99 / 100])"#
        }
        print(text + "}")
    }
}
