import Foundation
import Waybill
import WaybillSQLite

/// A folder for the files of one test.
final class TemporaryStore: Sendable {
    let folder: URL

    /// - Parameter inMemory: Whether the files may be in memory, where thousands are opened in seconds.
    init(inMemory: Bool = false) throws {
        let memory = "/dev/shm"
        let isThere = inMemory && FileManager.default.isWritableFile(atPath: memory)
        let parent =
            isThere ? URL(fileURLWithPath: memory) : FileManager.default.temporaryDirectory
        folder =
            parent
            .appendingPathComponent("waybill-store-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var path: String { folder.appendingPathComponent("store.sqlite").path }

    func open(
        _ change: (inout SQLiteSessionStore.Options) -> Void = { _ in }
    ) throws -> SQLiteSessionStore {
        var options = SQLiteSessionStore.Options()
        change(&options)
        return try SQLiteSessionStore(path: path, options: options)
    }

    static func message(_ number: Int, byteCount: Int = 0) -> StoredMessage {
        let body = Array("\(number)".utf8) + [UInt8](repeating: 0x2E, count: byteCount)
        return StoredMessage(topic: "t/\(number)", body: body, qos: 1)
    }
}

extension Collection<StoredMessage> {
    /// The numbers in the topics.
    var numbers: [Int] { compactMap { Int($0.topic.dropFirst(2)) } }
}
