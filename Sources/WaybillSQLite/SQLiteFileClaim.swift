import CWaybillSQLite
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The right of one store of this process to open a file; released with the last reference.
///
/// SQLite's locks keep other processes out. Within a process they are not enough: the kernel drops a process's locks on
/// a file when the process closes any descriptor of the file (POSIX, `fcntl`). A second store therefore must not even
/// open it. Symbolic and hard links lead to the same claim.
final class SQLiteFileClaim: Sendable {
    private typealias Claimed = (identity: Identity, number: UInt64)

    private struct Identity: Hashable {
        var device: UInt64 = 0
        var inode: UInt64 = 0
    }

    /// The claims of the process, each with its number.
    private static let claimed = Locked<(claims: [Identity: UInt64], last: UInt64)>(([:], 0))

    /// The absolute path.
    let path: String
    private let identity: Identity
    private let number: UInt64

    /// Claims the file, and makes an empty one if there is none.
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
        var made = Self.claim(absolute, path)
        for _ in 0..<5 {
            guard case .failure(let error) = made, error.reason == .inUse else { break }
            waybill_sqlite_pause()
            made = Self.claim(absolute, path)
        }
        (identity, number) = try made.get()
        self.path = absolute
    }

    private static func claim(_ absolute: String, _ path: String)
        -> Result<Claimed, SQLiteStoreError>
    {
        claimed.withLock { claimed in
            var identity = Identity()
            var isNew: Int32 = 0
            let code = waybill_sqlite_claim(absolute, &identity.device, &identity.inode, &isNew)
            guard code == 0 else {
                return .failure(
                    SQLiteStoreError(.cannotOpen, "the system's error \(code)", path: path)
                )
            }
            // A new file may have the inode of a deleted one that was just closed, and whose claim ends soon.
            guard isNew != 0 || claimed.claims[identity] == nil else {
                return .failure(
                    SQLiteStoreError(.inUse, "a store of this process has it", path: path)
                )
            }
            claimed.last &+= 1
            claimed.claims[identity] = claimed.last
            return .success((identity, claimed.last))
        }
    }

    deinit {
        Self.claimed.withLock { claimed in
            guard claimed.claims[identity] == number else { return }
            claimed.claims[identity] = nil
        }
    }

    /// Whether the path still leads to the claimed file.
    var isCurrent: Bool {
        Self.claimed.withLock { _ in
            var identity = Identity()
            return FileManager.default.fileExists(atPath: path)
                && waybill_sqlite_claim(path, &identity.device, &identity.inode, nil) == 0
                && identity == self.identity
        }
    }

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
