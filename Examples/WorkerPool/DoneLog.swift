#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A file with the jobs that a worker has done, one a line: the job, and the time in nanoseconds since the start of the
/// machine.
final class DoneLog: Sendable {
    private let file: Int32

    /// Opens the file, whose end is written to.
    init?(_ path: String) {
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
    }

    deinit { close(file) }

    /// Writes a line at once: a killed process writes no buffer.
    func append(_ job: String) {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let line = Array("\(job) \(time.tv_sec * 1_000_000_000 + time.tv_nsec)\n".utf8)
        _ = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    }
}
