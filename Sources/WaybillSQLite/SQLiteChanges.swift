import Waybill
import WireCore

/// What one transaction writes, beside its new messages: the latest state of everything that has changed.
///
/// Its size is bounded, because no entry is about a message that is neither stored nor waits to be stored.
struct SQLiteChanges {
    /// Whether everything is removed first.
    var isClearing = false
    /// Whether the stages and identifiers of the session are forgotten first.
    var isSessionLost = false
    /// The name of the session, if that has changed.
    var session: String?
    /// The messages to remove.
    var removals: Set<StoredMessage.ID> = []
    var stages: [StoredMessage.ID: StoredMessage.Stage] = [:]
    /// The numbers of suspicious ends.
    var ends: [StoredMessage.ID: Int] = [:]
    /// Whether an identifier is known.
    var received: [UInt16: Bool] = [:]
    var filters: [String]?
    /// The last event IDs of streams; empty for none.
    var streams: [WireName: String] = [:]
    /// Called after the transaction.
    var completions: [@Sendable () -> Void] = []

    var isEmpty: Bool {
        !isClearing && !isSessionLost && session == nil && removals.isEmpty && stages.isEmpty
            && ends.isEmpty && received.isEmpty && filters == nil && streams.isEmpty
    }

    /// The number of entries.
    var count: Int {
        removals.count + stages.count + ends.count + received.count + streams.count
    }

    /// The number of changes, of which those without an entry of their own count as one.
    var unwrittenCount: Int { isEmpty ? 0 : max(count, 1) }

    mutating func clear() {
        let completions = completions
        self = SQLiteChanges()
        self.completions = completions
        isClearing = true
    }

    /// Forgets the changes of messages in a file that is gone, and names its session in the file that follows.
    mutating func beginAnew(_ name: String?) {
        isClearing = false
        (removals, stages, ends) = ([], [:], [:])
        session = session ?? name
    }

    mutating func loseSession() {
        isSessionLost = true
        stages = [:]
        received = [:]
    }

    mutating func remove(_ id: StoredMessage.ID) {
        removals.insert(id)
        stages[id] = nil
        ends[id] = nil
    }

    /// Puts changes that could not be written before these.
    mutating func putBack(_ failed: SQLiteChanges) {
        // A later clearing makes them void.
        guard !isClearing else { return }
        var merged = failed
        if isSessionLost { merged.loseSession() }
        merged.session = session ?? merged.session
        for id in removals { merged.remove(id) }
        merged.stages.merge(stages) { $1 }
        merged.ends.merge(ends) { $1 }
        merged.received.merge(received) { $1 }
        merged.filters = filters ?? merged.filters
        merged.streams.merge(streams) { $1 }
        merged.completions = completions
        self = merged
    }
}
