import Waybill

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The name of a column whose value no store writes.
struct UnreadableColumn: Error {
    let name: String
}

extension SQLiteRow {
    fileprivate func read<Value>(
        _ name: String,
        _ value: Value?
    ) throws(UnreadableColumn) -> Value {
        guard let value else { throw UnreadableColumn(name: name) }
        return value
    }

    fileprivate func integer(
        _ name: String,
        _ column: Int32,
        _ range: ClosedRange<Int64>
    ) throws(UnreadableColumn) -> Int64 {
        try read(name, integer(column).flatMap { range.contains($0) ? $0 : nil })
    }
}

extension StoredOptions {
    /// Reads the columns of single options, which versions before the seventh have written.
    fileprivate init(earlier row: SQLiteRow) throws(UnreadableColumn) {
        let isRetained = try row.integer("is_retained", 6, 0...1)
        let isText = row.isNull(13) ? nil : try row.integer("is_text", 13, 0...1)
        self.init(
            isRetained: isRetained == 1,
            responseTopic: row.isNull(11) ? nil : try row.read("response_topic", row.text(11)),
            correlationData: row.isNull(12) ? nil : try row.read("correlation_data", row.blob(12)),
            isText: isText.map { $0 == 1 }
        )
    }
}

extension StoredMessage {
    /// Reads a row of `SQLiteStatement.messages`, of any version.
    ///
    /// The count of attempts is for the app's information: one that cannot be read is 0. So is a number of suspicious
    /// ends, because it only grows again.
    init(_ row: SQLiteRow) throws(UnreadableColumn) {
        let number = try row.integer("id", 0, 1...SQLiteSchema.maximumNumber)
        // Before anything is read.
        _ = try row.integer("size", SQLiteRow.size, 0...Int64(SQLiteSchema.maximumSize))
        let qos = try row.integer("qos", 5, 1...2)
        _ = try row.read("stored", row.integer(7))
        let expiry = row.isNull(8) ? nil : try row.read("expiry", row.integer(8))
        let stage = try row.integer("stage", 10, 1...2)
        let isAdapted = try row.integer("is_adapted", 15, 0...1)
        let needsToken = try row.integer("needs_token", 16, 0...1)
        self.init(
            topic: try row.read("topic", row.text(1)),
            body: try row.read("body", row.blob(2)),
            contentType: row.isNull(3) ? nil : try row.read("content_type", row.text(3)),
            headers: try row.read("headers", row.blob(4).flatMap(StoredHeaders.headers)),
            qos: Int(qos),
            expiry: expiry.map { Date(timeIntervalSince1970: Double($0) / 1_000) },
            needsToken: needsToken == 1
        )
        storedOptions =
            row.isNull(17)
            ? try StoredOptions(earlier: row)
            : try row.read("options", row.blob(17).flatMap { try? StoredOptions(checking: $0) })
        id = UInt64(number)
        self.isAdapted = isAdapted == 1
        attempts = Int(Int32(clamping: max(0, row.integer(9) ?? 0)))
        self.stage = stage == 2 ? .released : .published
        suspiciousEnds = Int(UInt16(clamping: row.integer(14) ?? 0))
    }
}
