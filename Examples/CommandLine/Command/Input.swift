import CommandText
import Dispatch

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Files and standard input.
enum Input {
    /// The longest body and line, in bytes.
    static let bodyLimit = 256 << 20
    private static let secretLimit = 64 << 10

    /// The contents of a file; `-` is standard input.
    ///
    /// - Throws: `Failure` if it cannot be read or is longer than the limit in bytes; `CancellationError`.
    static func contents(of path: String, limit: Int = bodyLimit) async throws -> [UInt8] {
        let descriptor = try descriptor(of: path)
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        let reader = BlockReader(descriptor)
        while let block = try await reader.next() {
            bytes += block
            guard bytes.count <= limit else {
                let name = path == "-" ? "standard input" : path
                throw Failure(.file, "\(name) is longer than \(shown(limit)) bytes. Send less.")
            }
        }
        return bytes
    }

    /// The first line of a file, for secrets.
    static func secret(in path: String) async throws -> String {
        let bytes = try await contents(of: path, limit: secretLimit)
        return String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
    }

    private static func descriptor(of path: String) throws -> Int32 {
        let descriptor =
            path == "-" ? dup(STDIN_FILENO) : openForReading(expandingHome(path))
        guard descriptor >= 0 else {
            throw Failure(.file, "\(path) cannot be read: \(Output.reason). Name another file.")
        }
        return descriptor
    }

    private static func openForReading(_ path: String) -> Int32 {
        open(path, O_RDONLY | O_CLOEXEC)
    }

    /// The path with the home folder in place of a leading `~`.
    static func expandingHome(_ path: String) -> String {
        guard path.hasPrefix("~/"), let home = environment("HOME") else { return path }
        return home + path.dropFirst()
    }

    /// Whether a file can be read.
    static func isReadable(_ path: String) -> Bool { access(path, R_OK) == 0 }

    /// Whether users other than its owner may read a file.
    static func isOpenToOthers(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & (S_IRGRP | S_IROTH) != 0
    }

    /// A variable of the environment that is not empty.
    static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// Asks for a password at the terminal, without an echo.
    ///
    /// - Throws: `Failure` without a terminal; `CancellationError`.
    static func password(for name: String) async throws -> String {
        let terminal = openTerminal()
        guard terminal >= 0 else {
            throw Failure(.usage, "no terminal to ask for a password at: set WAYBILL_PASSWORD")
        }
        defer { close(terminal) }
        var before = termios()
        tcgetattr(terminal, &before)
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(terminal, TCSAFLUSH, &silent)
        defer {
            tcsetattr(terminal, TCSAFLUSH, &before)
            put("\n", to: terminal)
        }
        put("Password for \(name): ", to: terminal)
        var line: [UInt8] = []
        let reader = BlockReader(terminal)
        while let block = try await reader.next() {
            line += block
            if block.contains(0x0A) { break }
        }
        return String(decoding: line.prefix { $0 != 0x0A }, as: UTF8.self)
    }

    private static func openTerminal() -> Int32 {
        open("/dev/tty", O_RDWR | O_CLOEXEC)
    }

    private static func put(_ text: String, to terminal: Int32) {
        _ = Array(text.utf8).withUnsafeBytes { write(terminal, $0.baseAddress, $0.count) }
    }
}

/// Reads a descriptor in big blocks, on a thread of its own, so that a slow one keeps no task from running.
final class BlockReader: Sendable {
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "waybill.input")
    private let size: Int

    init(_ descriptor: Int32, size: Int = 1 << 18) {
        self.descriptor = descriptor
        self.size = size
    }

    /// The next block; nil at the end.
    ///
    /// - Throws: `Failure` if it cannot be read; `CancellationError` when the command was interrupted.
    func next() async throws -> [UInt8]? {
        let descriptor = descriptor
        let size = size
        let result: Result<[UInt8], any Error> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Self.block(of: descriptor, size)) }
        }
        let block = try result.get()
        return block.isEmpty ? nil : block
    }

    private static func block(of descriptor: Int32, _ size: Int) -> Result<[UInt8], any Error> {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while true {
            if Interruption.status != nil { return .failure(CancellationError()) }
            guard poll(&entry, 1, 100) != 0 else { continue }
            var failure: Int32 = 0
            let block = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                let length = read(descriptor, buffer.baseAddress, size)
                if length < 0 { failure = errno }
                count = max(length, 0)
            }
            if failure == EINTR || failure == EAGAIN { continue }
            guard failure == 0 else {
                let reason = String(cString: strerror(failure))
                return .failure(Failure(.file, "the input cannot be read: \(reason)"))
            }
            return .success(block)
        }
    }
}
