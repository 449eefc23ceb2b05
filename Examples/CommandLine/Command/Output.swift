import CommandText
import Dispatch
import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Standard output or a file, written in blocks, at most a millisecond after the first byte of a block.
///
/// A reader that is slow holds the writer back.
final class Output: Sendable {
    private struct State {
        var buffer: [UInt8] = []
        var isScheduled = false
        var failure: (any Error)?
        /// Called once, when a block could not be written.
        var onFailure: (@Sendable () -> Void)?
        /// Whether the file has to be emptied before the first write.
        var mustEmpty = false
    }

    private static let blockSize = 65_536

    private let state: Mutex<State>
    private let descriptor: Int32
    private let name: String
    private let isPipe: Bool
    private let queue = DispatchQueue(label: "waybill.output")

    /// Standard output.
    init() {
        descriptor = STDOUT_FILENO
        name = "standard output"
        isPipe = Self.isPipe(descriptor)
        state = Mutex(State())
    }

    /// A file, which is made, or emptied before the first write; with nil standard output.
    ///
    /// - Throws: `Failure` if the file cannot be opened.
    static func opening(_ path: String?) throws -> Output {
        guard let path, path != "-" else { return Output() }
        var descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        let isMade = descriptor >= 0
        if !isMade, errno == EEXIST {
            // With O_CREAT, since a link may lead to a file that is not there.
            descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        }
        guard descriptor >= 0 else {
            throw Failure(.file, "\(path) cannot be written: \(Self.reason). Name another file.")
        }
        if isMade { made.withLock { $0.append((path, descriptor)) } }
        return Output(descriptor, path, mustEmpty: !isMade && isFile(descriptor))
    }

    private init(_ descriptor: Int32, _ name: String, mustEmpty: Bool) {
        self.descriptor = descriptor
        self.name = name
        isPipe = Self.isPipe(descriptor)
        state = Mutex(State(mustEmpty: mustEmpty))
    }

    /// The files that this process has made.
    private static let made = Mutex<[(path: String, descriptor: Int32)]>([])

    /// Removes the files that this process has made and left empty.
    static func removeEmptyFiles() {
        for file in made.withLock({ $0 }) {
            var (open, present) = (stat(), stat())
            guard fstat(file.descriptor, &open) == 0, open.st_size == 0,
                lstat(file.path, &present) == 0,
                present.st_ino == open.st_ino, present.st_dev == open.st_dev
            else { continue }
            unlink(file.path)
        }
    }

    /// Whether output goes to a terminal, which must not be controlled by what others have sent.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Calls a closure once, when output that was added could not be written: the next message may never come.
    func onFailure(_ action: @escaping @Sendable () -> Void) {
        let hasFailed = state.withLock { state in
            if state.failure == nil { state.onFailure = action }
            return state.failure != nil
        }
        if hasFailed { action() }
    }

    /// Adds bytes.
    ///
    /// - Parameter append: Appends bytes to the block.
    /// - Throws: `ClosedPipe`; `Failure` if a block could not be written.
    func add(_ append: (inout [UInt8]) -> Void) throws {
        let (schedules, failure) = state.withLock { state -> (Bool, (any Error)?) in
            if let failure = state.failure { return (false, failure) }
            append(&state.buffer)
            if state.buffer.count >= Self.blockSize { writeOut(&state) }
            guard !state.buffer.isEmpty, !state.isScheduled else { return (false, state.failure) }
            state.isScheduled = true
            return (true, state.failure)
        }
        if let failure { throw failure }
        guard schedules else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(1)) { [self] in
            let onFailure = state.withLock { state in
                state.isScheduled = false
                writeOut(&state)
                guard state.failure != nil else { return (@Sendable () -> Void)?.none }
                defer { state.onFailure = nil }
                return state.onFailure
            }
            onFailure?()
        }
    }

    /// Adds a line of text.
    func writeLine(_ text: String) throws {
        try add { buffer in
            buffer += text.utf8
            buffer.append(0x0A)
        }
    }

    /// Writes what is left.
    ///
    /// - Throws: `ClosedPipe`; `Failure` if it could not be written.
    func flush() throws {
        let failure = state.withLock { state in
            writeOut(&state)
            return state.failure
        }
        if let failure { throw failure }
    }

    private func writeOut(_ state: inout State) {
        guard state.failure == nil else { return state.buffer.removeAll() }
        if state.mustEmpty, !state.buffer.isEmpty {
            state.mustEmpty = false
            guard ftruncate(descriptor, 0) == 0 else {
                state.failure = Failure(.file, "\(name) cannot be emptied: \(Self.reason).")
                return state.buffer.removeAll()
            }
        }
        state.buffer.withUnsafeBytes { bytes in
            var begin = 0
            while begin < bytes.count, state.failure == nil {
                // A full pipe must not keep an interrupted command from its end.
                guard !isPipe || Self.waitForRoom(descriptor) else { break }
                let part = min(bytes.count - begin, isPipe ? 4_096 : bytes.count)
                let rest = UnsafeRawBufferPointer(rebasing: bytes[begin...].prefix(part))
                let count = write(descriptor, rest.baseAddress, rest.count)
                if count >= 0 {
                    begin += count
                } else if errno == EPIPE {
                    state.failure = ClosedPipe()
                } else if errno == EAGAIN {
                    _ = Self.waitForRoom(descriptor)
                } else if errno != EINTR {
                    let text = "\(name) cannot be written: \(Self.reason)."
                    state.failure = Failure(.file, text + " Free space, or name another file.")
                }
            }
        }
        state.buffer.removeAll(keepingCapacity: true)
    }

    /// Waits until a pipe takes 4,096 bytes; false when the command was interrupted meanwhile.
    private static func waitForRoom(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while poll(&entry, 1, 100) == 0 {
            if Interruption.status != nil { return false }
        }
        return true
    }

    private static func isPipe(_ descriptor: Int32) -> Bool { kind(of: descriptor) == S_IFIFO }

    private static func isFile(_ descriptor: Int32) -> Bool { kind(of: descriptor) == S_IFREG }

    private static func kind(of descriptor: Int32) -> mode_t? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    /// The reason of the last failed call of the system.
    static var reason: String { String(cString: strerror(errno)) }

    // MARK: Standard error

    /// Whether standard error is a terminal.
    static let hasTerminal = isatty(STDERR_FILENO) == 1

    /// Writes one line to standard error.
    static func complain(_ message: String) {
        tell("waybill: \(TerminalText.spaced(message))\n")
    }

    /// Writes text to standard error.
    static func tell(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// The progress of long work, on a line of standard error that is written anew, if it is a terminal.
final class Progress: Sendable {
    private let last = Mutex((time: ContinuousClock.now, isShown: false))
    private let begin = ContinuousClock.now

    /// Shows the count of what is done, at most five times a second.
    func show(_ count: Int, of total: Int? = nil, _ unit: String = "messages") {
        guard Output.hasTerminal else { return }
        let now = ContinuousClock.now
        let isDue = last.withLock { last in
            guard now - last.time >= .milliseconds(200) else { return false }
            last = (now, true)
            return true
        }
        guard isDue else { return }
        let rate = Int(Double(count) / max((now - begin).inSeconds, 0.001))
        let goal = total.map { " of \(shown($0))" } ?? ""
        Output.tell("\r\u{1B}[K\(shown(count))\(goal) \(unit), \(shown(rate))/s")
    }

    /// Removes the line.
    func end() {
        if last.withLock({ $0.isShown }) { Output.tell("\r\u{1B}[K") }
    }
}
