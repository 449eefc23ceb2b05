import CWaybillSQLite
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What tells a file from all others that exist: the same for all its names and links.
struct SQLiteFileIdentity: Hashable {
    /// A file that was found.
    struct Found {
        let identity: SQLiteFileIdentity
        let byteCount: Int64
    }

    /// The system's error.
    struct Failure: Error {
        let number: Int32
    }

    private var device: UInt64 = 0
    private var inode: UInt64 = 0

    /// Finds a regular file.
    static func find(_ path: String) -> Result<Found, Failure> {
        var identity = SQLiteFileIdentity()
        var byteCount: Int64 = 0
        let code = waybill_sqlite_identify(path, &identity.device, &identity.inode, &byteCount)
        guard code == 0 else { return .failure(Failure(number: code)) }
        return .success(Found(identity: identity, byteCount: byteCount))
    }

    /// The identity of a regular file; nil without one.
    static func of(_ path: String) -> SQLiteFileIdentity? { try? find(path).get().identity }
}

/// The right of one store of this process to open a file; released with the last reference.
///
/// SQLite's locks keep other processes out. Within a process they are not enough: the kernel drops a process's locks on
/// a file when the process closes any descriptor of the file (POSIX, `fcntl`). A second store therefore must not even
/// open it. Symbolic and hard links lead to the same claim.
final class SQLiteFileClaim: Sendable {
    private struct Claimed {
        let file: SQLiteFileIdentity.Found
        let number: UInt64
        let isNew: Bool
    }

    /// The claims of the process, each with its number.
    private static let claimed = Locked<(claims: [SQLiteFileIdentity: UInt64], last: UInt64)>(
        ([:], 0)
    )

    /// The absolute path.
    let path: String
    let identity: SQLiteFileIdentity
    /// Whether the claim has made the file.
    let isNew: Bool
    /// The size of the file when it was claimed, in bytes.
    let byteCount: Int64
    private let number: UInt64

    /// Claims the file, and makes one without tables if there is none.
    ///
    /// Waits 50 milliseconds for a store that has the file. A claim ends just after its file is closed, and until then
    /// another file may already have the inode of one that was deleted.
    ///
    /// - Throws: `inUse` if this process has it open; `cannotOpen` if it cannot be made or is not a regular file.
    init(_ path: String) throws(SQLiteStoreError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw SQLiteStoreError(.cannotOpen, "not a path", path: path)
        }
        let absolute =
            path.utf8.first == UInt8(ascii: "/")
            ? path : FileManager.default.currentDirectoryPath + "/" + path
        guard !SQLiteStoreError.isInAppGroup(absolute) else {
            throw SQLiteStoreError(.cannotOpen, SQLiteStoreError.whyNotInAppGroup, path: path)
        }
        var made = Self.claim(absolute, path)
        for _ in 0..<5 {
            guard case .failure(let error) = made, error.reason == .inUse else { break }
            waybill_sqlite_pause()
            made = Self.claim(absolute, path)
        }
        let claimed = try made.get()
        (identity, byteCount) = (claimed.file.identity, claimed.file.byteCount)
        (number, isNew) = (claimed.number, claimed.isNew)
        self.path = absolute
    }

    private static func claim(_ absolute: String, _ path: String)
        -> Result<Claimed, SQLiteStoreError>
    {
        claimed.withLock { claimed in
            let temporary = absolute + "-" + String(UInt32.random(in: 0 ... .max), radix: 16)
            var isNew: Int32 = 0
            let code = waybill_sqlite_make(absolute, temporary, &isNew)
            guard code == 0 else { return .failure(failure(code, path)) }
            return SQLiteFileIdentity.find(absolute).mapError { failure($0.number, path) }.flatMap {
                // A new file may have the inode of a deleted one that was just closed, and whose claim ends soon.
                guard isNew != 0 || claimed.claims[$0.identity] == nil else {
                    return .failure(
                        SQLiteStoreError(.inUse, "a store of this process has it", path: path)
                    )
                }
                claimed.last &+= 1
                claimed.claims[$0.identity] = claimed.last
                return .success(Claimed(file: $0, number: claimed.last, isNew: isNew != 0))
            }
        }
    }

    private static func failure(_ code: Int32, _ path: String) -> SQLiteStoreError {
        // EPERM; missing rights have EACCES.
        let why = code == 1 ? SQLiteStoreError.whyDenied : ""
        return SQLiteStoreError(.cannotOpen, "the system's error \(code)\(why)", path: path)
    }

    deinit {
        Self.claimed.withLock { claimed in
            guard claimed.claims[identity] == number else { return }
            claimed.claims[identity] = nil
        }
    }

    /// Whether the path still leads to the claimed file.
    var isCurrent: Bool { SQLiteFileIdentity.of(path) == identity }

    /// The URI that reads the file as it is: without locks, without its log and without any change
    /// (sqlite.org/uri.html, `immutable`).
    var readingURI: String {
        var uri = "file://"
        for byte in path.utf8 {
            let isPlain =
                byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_")
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            if isPlain {
                uri.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16)
                uri += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return uri + "?immutable=1"
    }
}
