import Foundation
import WaybillRecording

/// A folder for the files of one test.
final class RecordingFolder: Sendable {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("waybill-recording-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        _ = try? FileManager.default.setAttributes(
            [.posixPermissions: 0o700],
            ofItemAtPath: folder.path
        )
        try? FileManager.default.removeItem(at: folder)
    }

    var path: String { folder.appendingPathComponent("wire.jsonl").path }

    /// The names of all files, in order.
    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
    }

    func text(_ suffix: String = "") throws -> String {
        try String(contentsOf: URL(fileURLWithPath: path + suffix), encoding: .utf8)
    }

    func lines(_ suffix: String = "") throws -> [String] {
        try text(suffix).split(separator: "\n").map(String.init)
    }
}

extension WireRecord {
    /// A frame, for tests.
    static func frame(
        _ name: String,
        _ topic: String? = nil,
        _ direction: Direction = .outbound,
        byteCount: Int = 10,
        text: String? = nil,
        body: Payload? = nil
    ) -> WireRecord {
        var record = WireRecord(
            kind: .frame,
            direction: direction,
            text: text ?? name,
            byteCount: byteCount,
            body: body
        )
        (record.name, record.topic) = (name, topic)
        return record
    }
}

extension Recording.Record {
    /// A frame at a number of seconds, for tests.
    static func frame(
        _ number: UInt64,
        _ name: String,
        _ topic: String? = nil,
        _ direction: WireRecord.Direction = .outbound,
        byteCount: Int = 10,
        at seconds: Int = 0
    ) -> Self {
        Recording.Record(
            number: number,
            time: .seconds(seconds),
            kind: .frame,
            direction: direction,
            name: name,
            topic: topic,
            byteCount: byteCount,
            text: "\(name) \(topic ?? "")"
        )
    }
}
