public import Waybill

extension SQLiteSessionStore {
    /// When a stored message is on the disk.
    public enum Synchronization: Hashable, Sendable {
        /// A send begins when its message is on the disk: it survives the end of the process and of the machine.
        ///
        /// Messages that are stored at the same time share one write.
        case full
        /// A send begins when its message is written to the file: it survives the end of the process.
        ///
        /// The last messages may be lost when the machine loses its power.
        case process
        /// A send begins at once. Its message is on the disk after this time at the latest.
        ///
        /// A process that ends before loses the messages of that time. ``SQLiteSessionStore/flush()`` writes them at
        /// once. A message that is acknowledged before its write is never written.
        case batched(within: Duration)
    }

    /// What happens to a file that is damaged when the store is opened, or gone while it is open.
    public enum CorruptFilePolicy: Hashable, Sendable {
        /// Opening fails with ``SQLiteStoreError/Reason/corrupt``, and each write with ``SQLiteStoreError/Reason/gone``.
        case refuse
        /// The file is renamed, and the store begins empty; ``Event/setAside(path:_:)`` tells the new name.
        ///
        /// In place of a file that is gone, another one is begun after the write that has failed. A file that has taken
        /// its place is renamed, unless it belongs to another store or program.
        case setAside
    }

    /// What a store reports.
    public enum Event: Sendable {
        /// A message was too old when the store was read: it was removed, and is not sent.
        case expired(StoredMessage)
        /// The file was damaged, or had taken the place of the store's file: it was renamed to this path, and the store
        /// began empty.
        case setAside(path: String, SQLiteStoreError)
        /// A part of the file cannot be read, or exceeds the limit: the message with this number; without one, a filter, a packet
        /// identifier or the settings.
        ///
        /// The rest is used. A message stays in the file, counts for the size, and is not sent;
        /// ``SQLiteSessionStore/remove(_:)`` removes it. Settings are made anew: exchanges of QoS 2 may then begin again.
        case unreadable(id: StoredMessage.ID?, SQLiteStoreError)
        /// Something could not be written.
        ///
        /// Callers that wait for it have the error. The store tries the rest again.
        case writeFailed(SQLiteStoreError)
        /// A message that was accepted (``Synchronization/batched(within:)``) could not be written until the store was
        /// closed: it is in no file.
        case lost(StoredMessage, SQLiteStoreError)
    }

    /// The options of a store.
    public struct Options: Sendable {
        /// The maximum size of all stored messages, in bytes; 64 MiB by default.
        ///
        /// Body, topic, headers, options and 128 bytes count for each message. A message above the limit is refused before
        /// anything is written. The files may take twice as much, and 8 MiB for the log.
        public var maximumByteCount: Int
        /// The maximum age of a message when the store is read; nil, the default, for no limit.
        public var maximumAge: Duration?
        /// When a stored message is on the disk; ``Synchronization/full`` by default.
        public var synchronization: Synchronization
        /// What happens to a file that is damaged or gone; by default opening or writing fails.
        public var whenCorrupt: CorruptFilePolicy
        /// Called with each report: on the thread that has called the store, or on a queue for reports.
        ///
        /// It may call the store.
        public var onEvent: (@Sendable (Event) -> Void)?

        /// Makes options.
        public init(
            maximumByteCount: Int = 64 << 20,
            maximumAge: Duration? = nil,
            synchronization: Synchronization = .full,
            whenCorrupt: CorruptFilePolicy = .refuse,
            onEvent: (@Sendable (Event) -> Void)? = nil
        ) {
            self.maximumByteCount = maximumByteCount
            self.maximumAge = maximumAge
            self.synchronization = synchronization
            self.whenCorrupt = whenCorrupt
            self.onEvent = onEvent
        }
    }
}
