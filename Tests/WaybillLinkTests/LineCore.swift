import Testing
import WaybillLink
import WireCore
import WireTestSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A small protocol for tests: each line is an event, and each message is written as a line.
struct LineCore: ProtocolCore {
    enum Event: Equatable, Sendable {
        case line(String)
        case ended
        case tick(WireInstant)
        case progress
    }

    var outbound = ByteWriter()
    var deadline: WireInstant?
    var isFinished = false
    var events: [Event] = []
    var echoes = false
    /// The largest number of lines that one call decodes.
    var lineLimit = Int.max
    private(set) var hasMoreInput = false
    private var scanned = 0

    init(echoes: Bool = false, lineLimit: Int = .max) {
        self.echoes = echoes
        self.lineLimit = lineLimit
    }

    var hasEvents: Bool { !events.isEmpty }

    mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        var count = 0
        hasMoreInput = false
        while true {
            guard count < lineLimit else {
                hasMoreInput = true
                return
            }
            count += 1
            let length = buffer.withUnsafeBytes { bytes -> Int? in
                guard let start = bytes.baseAddress, scanned < bytes.count else { return nil }
                let found = memchr(start + scanned, 10, bytes.count - scanned)
                return found.map { UnsafeRawPointer($0) - start }
            }
            guard let length else {
                scanned = buffer.count
                return
            }
            scanned = 0
            let line = String(decoding: buffer.slice(at: 0, count: length).bytes, as: UTF8.self)
            buffer.consume(length + 1)
            events.append(.line(line))
            if echoes { send(line) }
        }
    }

    mutating func receiveEndOfStream(at now: WireInstant) {
        events.append(.ended)
        isFinished = true
    }

    mutating func advance(to now: WireInstant) {
        guard let deadline, deadline <= now else { return }
        self.deadline = nil
        events.append(.tick(now))
    }

    mutating func noteProgress(at now: WireInstant) { events.append(.progress) }

    mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    mutating func send(_ line: String) {
        outbound.append(contentsOf: line.utf8)
        outbound.append(UInt8(ascii: "\n"))
    }
}

/// Records what a driver reports, and lets a test wait for it.
final class Recorder: Sendable {
    private struct State {
        var events: [LineCore.Event] = []
        var ends: [LinkError?] = []
    }

    private let state = Locked(State())

    var events: [LineCore.Event] { state.withLock { $0.events } }
    var ends: [LinkError?] { state.withLock { $0.ends } }

    var handler: Driver<LineCore>.Handler {
        .init(
            receive: { events in self.note { $0.events += events } },
            end: { error in self.note { $0.ends.append(error) } }
        )
    }

    /// Records events that come from something other than a driver.
    func hear(_ events: [LineCore.Event]) { note { $0.events += events } }

    /// Records an end that comes from something other than a driver.
    func hearEnd(_ error: LinkError? = nil) { note { $0.ends.append(error) } }

    private func note(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
    }

    /// Waits until this many events and ends were recorded; otherwise records what was heard instead.
    func wait(
        events count: Int = 0,
        ends: Int = 0,
        _ location: SourceLocation = #_sourceLocation
    ) async {
        do {
            try await waitUntil(within: .seconds(30)) {
                state.withLock { $0.events.count >= count && $0.ends.count >= ends }
            }
        } catch {
            Issue.record(
                "\(events.count) events and the ends \(self.ends) instead of \(count) and \(ends) ends",
                sourceLocation: location
            )
        }
    }
}

/// A clock that moves only when a test moves it.
final class ManualTimers: TimerSource {
    private struct State {
        var now = WireInstant.zero
        var queue = TimerQueue()
    }

    private let state = Locked(State())

    var now: WireInstant { state.withLock { $0.now } }

    var count: Int { state.withLock { $0.queue.count } }

    func scheduleTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64 {
        state.withLock { $0.queue.add(at: deadline, action) }
    }

    func cancelTimer(_ token: UInt64) {
        state.withLock { _ = $0.queue.cancel(token) }
    }

    func advance(by duration: Duration) {
        let now = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            return state.now
        }
        while let action = state.withLock({ $0.queue.takeDue(at: now) }) { action() }
    }
}
