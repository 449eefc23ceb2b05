import Dispatch
public import Waybill
import WireCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Records frames, requests and messages of any transport as lines of JSON: in a file, in memory, or in both.
///
/// ```swift
/// let recorder = try Recorder(path: "/tmp/wire.jsonl")
/// configuration.wireLogger = recorder
/// let transport = try MQTTTransport(url: url, configuration: configuration)
/// recorder.observe(transport)
/// let chat = Provider<ChatEntry>(transport: transport).logged(recorder)
/// ```
///
/// Records have no bodies, credentials, queries or values of headers, unless ``Options/bodies`` asks for bodies. The page
/// on recording lists what stays, and the keys of a line.
///
/// A call of ``log(_:)`` takes the time and a number, and puts the record into a queue. A queue of the system then writes
/// to the file, as soon as it is scheduled, so that a slow disk does not hold up a connection. The record is in the hands
/// of the system after the write: the end of the process does not lose it, the end of the power may. The queue is
/// bounded. A record without room is not waited for; it is counted, and a line `dropped` stands in its place.
///
/// Any number of threads and transports may share a recorder. Only one recorder may have a path.
public final class Recorder: WireLogger {
    /// What a recorder records, and its limits.
    public struct Options: Sendable {
        /// Whether records have bodies; hidden by default.
        public var bodies = WireLogBodies.hidden
        /// The bytes of a body that are recorded, if bodies are; 64 KiB by default.
        public var maximumBodySize = 1 << 16
        /// The memory of the records that wait to be written, in bytes; 1 MiB by default.
        public var maximumQueueSize = 1 << 20
        /// The length of a file in bytes, after which it is set aside; 16 MiB by default.
        ///
        /// A file has at least one record, so that it may be longer by one record.
        public var maximumFileSize = 16 << 20
        /// The number of files, with the one that is written; 4 by default, from 1 to 1,000.
        ///
        /// The others are `path.1`, the newest of them, to `path.3`.
        public var maximumFileCount = 4

        static let maximumFileCountLimit = 1_000

        /// Makes the default options.
        public init() {}
    }

    /// What a recorder has done so far.
    public struct Status: Sendable {
        /// The number of records that were logged.
        public var recordCount = 0
        /// The number of records that the files have; zero without a file.
        public var writtenCount = 0
        /// The number of records that are not in the file: without room in the queue, or not written.
        public var droppedCount = 0
        /// The memory of the records that wait to be written, in bytes.
        public var waitingByteCount = 0
        /// The error of the last attempt to write; nil after one that succeeded.
        ///
        /// The recorder tries again with the next records.
        public var error: RecordingError?
    }

    fileprivate struct State {
        var queue: [Recording.Record] = []
        var lastNumber: UInt64 = 0
        var status = Status()
        var isScheduled = false
        var isClosed = false
        var observations: [UInt64: Task<Void, Never>] = [:]
        /// The observations that have not ended.
        var openObservations: Set<UInt64> = []
        var lastObservation: UInt64 = 0
    }

    /// Whether records have bodies.
    public let bodies: WireLogBodies
    /// The buffer of the newest records; nil without one.
    public let buffer: RecordingBuffer?
    private let options: Options
    private let file: RecordingFile?
    private let now: @Sendable () -> Duration
    private let queue = DispatchQueue(label: "waybill.recorder")
    private let state = Locked(State())

    /// Records to a file.
    ///
    /// A recording that is already there is set aside as `path.1`. Another file is refused. Only the owner of the file may read it (mode 0600).
    ///
    /// - Parameters:
    ///   - path: The path of the file; its folder must be there.
    ///   - buffer: A buffer that gets the records, too; nil for none. It belongs to this recorder alone.
    ///   - options: The options.
    /// - Throws: ``RecordingError``: `cannotOpen`, `notAFile`, `notARecording`, `diskFull`, `diskFailed`.
    public convenience init(
        path: String,
        buffer: RecordingBuffer? = nil,
        options: Options = Options()
    ) throws(RecordingError) {
        try self.init(
            path: path,
            buffer: buffer,
            options: options,
            now: RecordingTime.now,
            write: { descriptor, bytes, count in write(descriptor, bytes, count) }
        )
    }

    /// Records to memory alone.
    ///
    /// - Parameters:
    ///   - buffer: The buffer, which belongs to this recorder alone.
    ///   - options: The options, of which only those of bodies matter.
    public convenience init(buffer: RecordingBuffer, options: Options = Options()) {
        self.init(file: nil, buffer: buffer, options: options, now: RecordingTime.now)
    }

    /// Records to a file, for tests: with their time and their way to write.
    convenience init(
        path: String,
        buffer: RecordingBuffer? = nil,
        options: Options = Options(),
        now: @escaping @Sendable () -> Duration,
        write: @escaping RecordingFile.Write
    ) throws(RecordingError) {
        let file = try RecordingFile(
            path: path,
            maximumSize: options.maximumFileSize,
            maximumCount: min(max(options.maximumFileCount, 1), Options.maximumFileCountLimit),
            now: now,
            write: write
        )
        self.init(file: file, buffer: buffer, options: options, now: now)
    }

    private init(
        file: RecordingFile?,
        buffer: RecordingBuffer?,
        options: Options,
        now: @escaping @Sendable () -> Duration
    ) {
        (self.file, self.buffer, self.options, self.now) = (file, buffer, options, now)
        bodies = options.bodies
    }

    deinit {
        for observation in state.withLock({ $0.observations }).values { observation.cancel() }
    }

    /// What the recorder has done so far.
    public var status: Status { state.withLock { $0.status } }

    // MARK: Recording

    /// Records a frame, request or message; after ``close()`` it does nothing.
    public func log(_ record: WireRecord) {
        var copy = Recording.Record(
            number: 0,
            time: now(),
            kind: Recording.Kind(record.kind),
            direction: record.direction,
            name: record.name,
            topic: record.topic,
            byteCount: record.byteCount,
            text: record.text
        )
        copy.label = record.label
        if let body = record.body { copy.setBody(body, limit: options.maximumBodySize) }
        append(copy)
    }

    /// Records a state or an event now.
    func append(
        _ kind: Recording.Kind,
        name: String,
        topic: String? = nil,
        byteCount: Int = 0,
        label: String?,
        text: String
    ) {
        var record = Recording.Record(
            number: 0,
            time: now(),
            kind: kind,
            name: name,
            topic: topic,
            byteCount: byteCount,
            text: text
        )
        record.label = label
        append(record)
    }

    private func append(_ record: Recording.Record) {
        let (mustSchedule, arrival) = state.withLock { state in
            guard !state.isClosed else { return (false, RecordingBuffer.Arrival?.none) }
            var record = record
            state.lastNumber += 1
            record.number = state.lastNumber
            state.status.recordCount += 1
            // Under the lock, so that the buffer has the order of the numbers.
            let arrival = buffer?.append(record)
            guard file != nil else { return (false, arrival) }
            return (state.enqueue(record, limit: options.maximumQueueSize), arrival)
        }
        arrival?.tell()
        if mustSchedule { queue.async { self.drain() } }
    }

    private func drain() {
        guard let file else { return }
        while true {
            let records = state.withLock { state in
                let records = state.queue
                state.queue = []
                state.isScheduled = !records.isEmpty
                return records
            }
            guard !records.isEmpty else { return }
            let outcome = file.append(records)
            let size = records.reduce(0) { $0 + $1.memorySize }
            state.withLock { state in
                state.status.waitingByteCount -= size
                state.status.writtenCount += outcome.writtenCount
                state.status.droppedCount += outcome.lostCount
                state.status.error = outcome.error
            }
        }
    }

    // MARK: Ending

    /// Returns when all records that were logged before are written, or lost.
    public func flush() async {
        await withCheckedContinuation { continuation in
            queue.async {
                // What was logged before the call may not be scheduled yet.
                self.drain()
                continuation.resume()
            }
        }
    }

    /// Writes all records that were logged before, and ends the recording.
    ///
    /// It waits for the disk, so do not call it on the main thread of an app. A recorder that is released has written
    /// all its records, too; the call is for a process that ends.
    public func close() {
        let observations = state.withLock { state in
            state.isClosed = true
            defer { state.observations = [:] }
            return Array(state.observations.values)
        }
        for observation in observations { observation.cancel() }
        queue.sync { drain() }
    }

    /// Begins an observation.
    ///
    /// - Returns: Its number.
    func beginObservation() -> UInt64 {
        state.withLock { state in
            state.lastObservation += 1
            state.openObservations.insert(state.lastObservation)
            return state.lastObservation
        }
    }

    /// Keeps the task of an observation until it ends, or until the end of the recording.
    func keep(_ observation: Task<Void, Never>, as number: UInt64) {
        let isClosed = state.withLock { state in
            // It may have ended already.
            if !state.isClosed, state.openObservations.contains(number) {
                state.observations[number] = observation
            }
            return state.isClosed
        }
        if isClosed { observation.cancel() }
    }

    /// Forgets an observation that has ended.
    func endObservation(_ number: UInt64) {
        state.withLock { state in
            state.openObservations.remove(number)
            state.observations[number] = nil
        }
    }

    /// The number of observations that are kept.
    var observationCount: Int { state.withLock { $0.observations.count } }
}

extension Recorder.State {
    /// Puts a record into the queue, or counts it if there is no room.
    ///
    /// - Returns: Whether the queue has to be written and is not yet scheduled.
    fileprivate mutating func enqueue(_ record: Recording.Record, limit: Int) -> Bool {
        let size = record.memorySize
        if status.waitingByteCount + size <= limit {
            status.waitingByteCount += size
            queue.append(record)
        } else {
            status.droppedCount += 1
            if let last = queue.indices.last, queue[last].kind == .dropped {
                queue[last].count = (queue[last].count ?? 0) + 1
                queue[last].number = record.number
            } else {
                // The note takes room beyond the limit: one for each record in the queue at most, and one more.
                var note = Recording.Record(droppedBefore: record)
                (note.number, note.count) = (record.number, 1)
                status.waitingByteCount += note.memorySize
                queue.append(note)
            }
        }
        defer { isScheduled = true }
        return !isScheduled
    }
}

extension Recording.Record {
    /// Copies a body, or its beginning, out of memory that it may share with others.
    fileprivate mutating func setBody(_ whole: Payload, limit: Int) {
        let limit = max(limit, 0)
        body = whole.withUnsafeBytes { bytes in
            guard bytes.count > limit else { return Payload(Array(bytes)) }
            // Not within a character of UTF-8, which has up to four bytes.
            let end = (max(limit - 3, 0)...limit).last { bytes[$0] & 0xC0 != 0x80 } ?? limit
            return Payload(Array(bytes[..<end]))
        }
        bodyByteCount = whole.count > limit ? whole.count : nil
    }
}
