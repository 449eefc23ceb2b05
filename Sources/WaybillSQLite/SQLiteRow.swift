import CWaybillSQLite

/// A row of a result; valid until the next one.
///
/// SQLite stores any type in any column, and a damaged or foreign file has any value. So each function returns nil for
/// a value of another type.
struct SQLiteRow {
    /// The column of `SQLiteStatement.messages` with the length of the others.
    static let size: Int32 = 18

    let statement: UnsafeMutableRawPointer

    private func type(_ column: Int32) -> Int { Int(waybill_sqlite_column_type(statement, column)) }

    func isNull(_ column: Int32) -> Bool { type(column) == Int(WAYBILL_SQLITE_TYPE_NULL) }

    func integer(_ column: Int32) -> Int64? {
        guard type(column) == Int(WAYBILL_SQLITE_TYPE_INTEGER) else { return nil }
        return waybill_sqlite_column_integer(statement, column)
    }

    /// The text, if it is UTF-8.
    func text(_ column: Int32) -> String? {
        guard type(column) == Int(WAYBILL_SQLITE_TYPE_TEXT) else { return nil }
        let bytes = bytes(column)
        let text = String(decoding: bytes, as: UTF8.self)
        // Decoding replaces what is not UTF-8.
        return text.utf8.elementsEqual(bytes) ? text : nil
    }

    func blob(_ column: Int32) -> [UInt8]? {
        guard type(column) == Int(WAYBILL_SQLITE_TYPE_BLOB) else { return nil }
        return bytes(column)
    }

    private func bytes(_ column: Int32) -> [UInt8] {
        var count: Int32 = 0
        guard let bytes = waybill_sqlite_column_bytes(statement, column, &count), count > 0 else {
            return []
        }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    }
}
