import Waybill
import WireCore

/// The newest records of a ``Recorder`` in memory, which can be read while they are written.
///
/// It is bounded in records and in bytes: the oldest records make room for new ones. Each record has a serial number in
/// the buffer, from 1, and a reader asks for those after the last one that it knows.
///
/// ```swift
/// let buffer = RecordingBuffer()
/// configuration.wireLogger = Recorder(buffer: buffer)
/// var serial: UInt64 = 0
/// for await _ in buffer.arrivals() {
///     let snapshot = buffer.snapshot(after: serial)
///     serial = snapshot.lastSerial
///     show(snapshot.records)
/// }
/// ```
public final class RecordingBuffer: Sendable {
    /// The records after a serial number, at one moment.
    public struct Snapshot: Sendable {
        /// The records, the oldest first.
        public var records: [Recording.Record] = []
        /// The serial number of the last of them, for the next call; the given number if there is none.
        public var lastSerial: UInt64
        /// The number of records after the given number that had to make room.
        public var missedCount: UInt64 = 0
        /// Whether the buffer has more records, because of the limit of the call.
        public var hasMore = false
    }

    private struct State {
        /// A ring: the record of a serial number is at its remainder.
        ///
        /// It grows up to the maximum.
        var ring: [Recording.Record?] = []
        /// The serial number of the oldest record; one more than the newest if there is none.
        var first: UInt64 = 1
        var count = 0
        var byteCount = 0
        var observers: [UInt64: AsyncStream<UInt64>.Continuation] = [:]
        var lastObserver: UInt64 = 0

        var last: UInt64 { first + UInt64(count) - 1 }

        func place(_ serial: UInt64) -> Int { Int(serial % UInt64(ring.count)) }

        mutating func removeOldest() {
            let place = place(first)
            byteCount -= ring[place]?.memorySize ?? 0
            ring[place] = nil
            first += 1
            count -= 1
        }

        /// Doubles the ring, up to a maximum.
        mutating func grow(to maximum: Int) {
            let old = ring
            ring = Array(repeating: nil, count: min(maximum, max(16, old.count * 2)))
            for offset in 0..<UInt64(count) {
                let serial = first + offset
                ring[place(serial)] = old[Int(serial % UInt64(old.count))]
            }
        }
    }

    /// The greatest number of records, at least 1.
    public let maximumCount: Int
    /// The greatest memory of all records, in bytes; a single longer record is not kept.
    public let maximumByteCount: Int
    private let state = Locked(State())

    /// Makes an empty buffer.
    ///
    /// - Parameters:
    ///   - maximumCount: The greatest number of records; 100,000 by default, and at least 1.
    ///   - maximumByteCount: The greatest memory of all records, in bytes; 32 MiB by default.
    public init(maximumCount: Int = 100_000, maximumByteCount: Int = 32 << 20) {
        self.maximumCount = max(maximumCount, 1)
        self.maximumByteCount = max(maximumByteCount, 0)
    }

    deinit {
        for (_, observer) in state.withLock({ $0.observers }) { observer.finish() }
    }

    /// The number of records that the buffer has.
    public var count: Int { state.withLock { $0.count } }

    /// The memory of all records that the buffer has, in bytes.
    public var byteCount: Int { state.withLock { $0.byteCount } }

    /// Returns the records after a serial number.
    ///
    /// - Parameters:
    ///   - serial: The serial number of the last record that the caller knows; 0 for none.
    ///   - limit: The greatest number of records; 1,000 by default. Loggers wait while they are copied.
    /// - Returns: The records, and the number for the next call.
    public func snapshot(after serial: UInt64 = 0, limit: Int = 1_000) -> Snapshot {
        state.withLock { state in
            var snapshot = Snapshot(lastSerial: serial)
            guard serial < state.last else { return snapshot }
            let start = max(serial + 1, state.first)
            snapshot.missedCount = start - serial - 1
            let end = min(state.last, start - 1 + UInt64(max(limit, 0)))
            if start <= end {
                snapshot.records.reserveCapacity(Int(end - start) + 1)
                for serial in start...end {
                    if let record = state.ring[state.place(serial)] {
                        snapshot.records.append(record)
                    }
                }
            }
            snapshot.lastSerial = max(end, start - 1)
            snapshot.hasMore = end < state.last
            return snapshot
        }
    }

    /// The serial number of the newest record, each time that there are new ones.
    ///
    /// A reader that is slower gets only the newest number, so that nothing piles up. The sequence begins with the
    /// records that are there, and ends when the buffer is gone.
    public func arrivals() -> AsyncStream<UInt64> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: UInt64.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let (identifier, last) = state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = continuation
            return (state.lastObserver, state.count > 0 ? state.last : 0)
        }
        continuation.onTermination = { [weak self] _ in
            let ended = self?.state.withLock { $0.observers.removeValue(forKey: identifier) }
            // Released outside of the lock.
            _ = ended
        }
        if last > 0 { continuation.yield(last) }
        return stream
    }

    /// Removes all records; serial numbers go on.
    public func removeAll() {
        let removed = state.withLock { state in
            let ring = state.ring
            (state.first, state.count, state.byteCount) = (state.last + 1, 0, 0)
            state.ring = []
            return ring
        }
        // Released outside of the lock.
        _ = removed
    }

    /// A record that observers have not been told of yet.
    struct Arrival {
        fileprivate var serial: UInt64
        fileprivate var observers: [AsyncStream<UInt64>.Continuation]

        /// Tells the observers; called with no lock held.
        func tell() {
            for observer in observers { observer.yield(serial) }
        }
    }

    func append(_ record: Recording.Record) -> Arrival {
        let size = record.memorySize
        return state.withLock { state in
            while state.count > 0,
                state.count == maximumCount || state.byteCount + size > maximumByteCount
            {
                state.removeOldest()
            }
            if state.count == state.ring.count { state.grow(to: maximumCount) }
            state.count += 1
            state.byteCount += size
            state.ring[state.place(state.last)] = record
            // A record that is too long alone takes its number only.
            if size > maximumByteCount { state.removeOldest() }
            let observers = state.observers.isEmpty ? [] : Array(state.observers.values)
            return Arrival(serial: state.last, observers: observers)
        }
    }
}
