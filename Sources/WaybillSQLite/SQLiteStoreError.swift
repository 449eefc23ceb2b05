#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The reason why a store on disk could not be opened, or has not stored something.
///
/// A send that could not be stored fails with `limitExceeded`, and has this error as `underlying`.
public struct SQLiteStoreError: Error, Hashable, Sendable {
    /// The kind of failure.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct Reason: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// The system's SQLite is missing; the detail says what to install.
        public static let libraryMissing = Reason(name: "libraryMissing")
        /// Another store, of this process or of another one, has the file open.
        public static let inUse = Reason(name: "inUse")
        /// The file is damaged, cut short or empty.
        ///
        /// ``SQLiteSessionStore/Options/whenCorrupt`` sets it aside instead.
        public static let corrupt = Reason(name: "corrupt")
        /// The file is a database of something else.
        public static let notAStore = Reason(name: "notAStore")
        /// A newer version of the package has written the file.
        public static let newerVersion = Reason(name: "newerVersion")
        /// The file cannot be opened or written, because of its folder, its permissions or its kind.
        public static let cannotOpen = Reason(name: "cannotOpen")
        /// The file, or its log, was deleted, moved or replaced while the store had it open.
        ///
        /// What was stored before may be gone, too. ``SQLiteSessionStore/Options/whenCorrupt`` begins another file instead.
        public static let gone = Reason(name: "gone")
        /// The message would exceed ``SQLiteSessionStore/Options/maximumByteCount``.
        ///
        /// There is room again when stored messages are acknowledged.
        public static let full = Reason(name: "full")
        /// There is no room on the disk.
        public static let diskFull = Reason(name: "diskFull")
        /// The disk, or what is between it and the process, could not read or write.
        public static let diskFailed = Reason(name: "diskFailed")
        /// The store was closed.
        public static let closed = Reason(name: "closed")
        /// Another error of SQLite; the detail is its text.
        public static let failed = Reason(name: "failed")
    }

    /// The kind of failure.
    public var reason: Reason
    /// The text of SQLite, or what to do; empty where the reason says everything.
    public var detail: String
    /// The path of the file.
    public var path: String
    /// Whether the text of a statement does not fit the tables (`SQLITE_ERROR`).
    var isOfStatement = false

    init(_ reason: Reason, _ detail: String = "", path: String) {
        self.reason = reason
        self.detail = detail
        self.path = path
    }
}

extension SQLiteStoreError {
    /// What may be the matter where the system denies access to a file.
    package static let whyDenied = """
        . A device of Apple keeps files protected from its start to its first unlock: open the store later, or give its \
        folder another protection
        """

    /// Why a file in the container of an app group is refused.
    package static let whyNotInAppGroup = """
        it is in the container of an app group. The store keeps the file locked, and the system ends an app that is \
        suspended with a lock on a shared file (0xdead10cc). Put it into the app's own container
        """

    /// Whether a path is in the container of an app group of a phone, tablet, watch or TV.
    ///
    /// On a Mac, apps are not suspended: its group containers (`Library/Group Containers`) are allowed.
    package static func isInAppGroup(_ path: String) -> Bool {
        let names = path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
        let container = ["Containers", "Shared", "AppGroup"].map { Array($0.utf8) }
        return names.indices.contains { names[$0...].starts(with: container) }
    }
}

extension SQLiteStoreError: CustomStringConvertible, LocalizedError {
    /// The kind, the detail and the file.
    public var description: String {
        detail.isEmpty ? "\(reason.name): \(path)" : "\(reason.name): \(detail) (\(path))"
    }

    /// As ``description``.
    public var errorDescription: String? { description }
}
