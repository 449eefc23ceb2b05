import Waybill
import WaybillSQLite

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The cost of a stored message: stored, and removed as an acknowledgement does it.
enum StoreBenchmarks {
    /// - Parameters:
    ///   - level: `full`, `process`, `batched` or `memory`.
    ///   - folder: The folder of the file.
    ///   - count: The number of messages.
    ///   - size: The size of a message.
    ///   - taskCount: The number of callers at a time.
    @concurrent
    static func run(
        _ level: String,
        folder: String,
        _ count: Int,
        size: Int,
        taskCount: Int
    ) async throws {
        let path = "\(folder)/waybill-benchmark-\(UUID().uuidString)"
        defer {
            for ending in ["", "-wal"] {
                try? FileManager.default.removeItem(atPath: path + ending)
            }
        }
        let synchronization: SQLiteSessionStore.Synchronization =
            switch level {
            case "process": .process
            case "batched": .batched(within: .milliseconds(50))
            default: .full
            }
        let onDisk =
            level == "memory"
            ? nil
            : try SQLiteSessionStore(
                path: path,
                options: .init(synchronization: synchronization)
            )
        let store: any SessionStore = onDisk ?? InMemorySessionStore()
        let message = StoredMessage(
            topic: "benchmarks/topic",
            body: [UInt8](repeating: 0x2E, count: size),
            qos: 1
        )
        let usage = Usage()
        let times = try await withThrowingTaskGroup { group in
            for task in 0..<taskCount {
                group.addTask {
                    var times: [Double] = []
                    for _ in stride(from: task, to: count, by: taskCount) {
                        let begun = ContinuousClock.now
                        let id = try await store.add(message)
                        times.append((ContinuousClock.now - begun) / .microseconds(1))
                        store.remove(id)
                    }
                    return times
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        try await onDisk?.flush()
        usage.report("store \(level), \(taskCount) callers", count, times: times)
        onDisk?.close()
    }
}
