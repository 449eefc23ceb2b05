/// Finds the item that a peer answers by ending the connection, each time it is sent again.
///
/// An *item* is what a client sends again over each connection until the peer has acknowledged it, such as a message of
/// QoS 1. A peer handles items in order, so only the oldest unacknowledged one can be at fault: it is the *suspect*.
/// An end of the connection is *suspicious* if the peer ended it within ``limit`` of the last byte of the suspect, and
/// no acknowledgement came after the suspect was written.
///
/// What is known on one connection:
///
/// | state | the oldest item is written | the outbound buffer is given to the stream | a suspect sent alone outlives the limit |
/// | --- | --- | --- | --- |
/// | idle | → queued | | |
/// | queued | | → leaving | |
/// | leaving | | → leaving for the rest of that buffer, → written for the next one | → idle |
/// | written | | | → idle |
///
/// Anything else that is written beside the suspect is its company. An acknowledgement, or the end of the connection,
/// leads from each state to idle.
///
/// What is known of an item is its ``Record``, which travels with the item from connection to connection. Only the end
/// of a connection in the states leaving and written changes it:
///
/// | record | later than the limit | the peer closed | the peer refused | the peer named the item: in company | alone |
/// | --- | --- | --- | --- | --- | --- |
/// | clear | clear | suspected, 1 | isolated, 1 | isolated, 1 | proven |
/// | suspected, 1 | clear | suspected, 2 | isolated, 2 | isolated, 2 | proven |
/// | suspected, 2 | clear | isolated, 3 | isolated, 3 | isolated, 3 | proven |
/// | isolated, n | clear | proven | proven | proven | proven |
///
/// An end within the limit for any other reason changes no record. An isolated item is sent alone: no other item is written until it is
/// acknowledged, or until it has outlived the limit.
package struct ReplaySuspicion: Hashable, Sendable {
    /// What is known of an item.
    package enum Record: Hashable, Sendable {
        /// No suspicious end.
        case clear
        /// As many suspicious ends in a row.
        case suspected(ends: UInt16)
        /// As many, and the item is sent alone.
        case isolated(ends: UInt16)

        /// Makes the record of an item from its stored number of suspicious ends in a row.
        package init(ends: Int) {
            let ends = UInt16(clamping: ends)
            switch ends {
            case 0: self = .clear
            case ..<ReplaySuspicion.endsBeforeIsolation: self = .suspected(ends: ends)
            default: self = .isolated(ends: ends)
            }
        }

        /// The number of suspicious ends in a row.
        package var ends: UInt16 {
            switch self {
            case .clear: 0
            case .suspected(let ends), .isolated(let ends): ends
            }
        }

        /// Whether the item is sent alone.
        package var isIsolated: Bool {
            if case .isolated = self { true } else { false }
        }
    }

    /// The reason why a connection has ended.
    package enum End: Hashable, Sendable {
        /// This side, the network, or a reason that has nothing to do with an item.
        case unrelated
        /// The peer closed the connection.
        case closed
        /// The peer refused something, which may be an item or the client as a whole.
        case refused
        /// The peer closed the connection for a reason that only an item can give.
        case named
    }

    /// What the end of a connection says.
    package enum Verdict: Hashable, Sendable {
        /// Nothing.
        case none
        /// Items are unacknowledged, and it is not known which one is at fault.
        case unclear
        /// The record of an item has changed.
        case recorded(UInt32, Record)
        /// The peer ended as many connections because of an item.
        case proven(UInt32, ends: UInt16)
    }

    /// What was written beside the suspect, and may still be unanswered.
    private struct Company: OptionSet, Hashable, Sendable {
        let rawValue: UInt8

        /// What is not sent again: no acknowledgement tells that the peer has handled it.
        static let others = Company(rawValue: 1)
        /// Items that are unacknowledged.
        static let items = Company(rawValue: 2)
    }

    private struct Suspect: Hashable, Sendable {
        let item: UInt32
        let record: Record
        var company: Company

        func with(_ other: Company) -> Suspect {
            Suspect(item: item, record: record, company: company.union(other))
        }

        /// The verdict of a suspicious end.
        func verdict(_ end: End) -> Verdict {
            let ends = record.ends == .max ? .max : record.ends + 1
            if record.isIsolated || (end == .named && company.isEmpty) {
                return .proven(item, ends: ends)
            }
            let isIsolated = end != .closed || ends >= ReplaySuspicion.endsBeforeIsolation
            return .recorded(item, isIsolated ? .isolated(ends: ends) : .suspected(ends: ends))
        }
    }

    private enum State: Hashable, Sendable {
        case idle(Company)
        case queued(Suspect)
        /// Bytes of the suspect may be left; the time is that of the last ones that were given to the stream.
        case leaving(Suspect, at: WireInstant)
        case written(Suspect, at: WireInstant)
    }

    /// The longest time from the last byte of a suspect to a suspicious end: 10 seconds.
    package static let limit = Duration.seconds(10)
    /// The number of suspicious ends in a row after which an item is sent alone.
    package static let endsBeforeIsolation: UInt16 = 3

    private var state = State.idle([])

    /// Makes the state at the beginning of a connection.
    package init() {}

    // MARK: Writing

    /// Notes that an item was written into the outbound buffer.
    ///
    /// - Parameters:
    ///   - item: Identifies the item on this connection.
    ///   - record: The record of the item.
    ///   - isOldest: Whether no other item is unacknowledged.
    package mutating func noteWritten(_ item: UInt32, _ record: Record, isOldest: Bool) {
        guard isOldest, case .idle(let company) = state else { return note(.items) }
        state = .queued(Suspect(item: item, record: record, company: company))
    }

    /// Notes that something was written that is not sent again.
    package mutating func noteOther() { note(.others) }

    private mutating func note(_ company: Company) {
        switch state {
        case .idle(let present): state = .idle(present.union(company))
        case .queued(let suspect): state = .queued(suspect.with(company))
        case .leaving(let suspect, let time): state = .leaving(suspect.with(company), at: time)
        case .written(let suspect, let time): state = .written(suspect.with(company), at: time)
        }
    }

    /// Notes that bytes of the outbound buffer are given to the stream.
    ///
    /// - Parameters:
    ///   - isRest: Whether an earlier write has left these bytes; otherwise they are all of the outbound buffer.
    ///   - now: The current time.
    package mutating func noteGiven(isRest: Bool, at now: WireInstant) {
        switch state {
        case .queued(let suspect) where !isRest: state = .leaving(suspect, at: now)
        case .leaving(let suspect, _) where isRest: state = .leaving(suspect, at: now)
        case .leaving(let suspect, let time): state = .written(suspect, at: time)
        case .idle, .queued, .written: break
        }
    }

    // MARK: Answers

    /// Notes that the peer has acknowledged an item.
    ///
    /// - Parameter hasItems: Whether other items are unacknowledged.
    package mutating func noteAcknowledged(hasItems: Bool) {
        state = .idle(company.intersection(.others).union(hasItems ? .items : []))
    }

    private var company: Company {
        switch state {
        case .idle(let company): company
        case .queued(let suspect), .leaving(let suspect, _), .written(let suspect, _):
            suspect.company
        }
    }

    private var suspect: Suspect? {
        switch state {
        case .idle: nil
        case .queued(let suspect), .leaving(let suspect, _), .written(let suspect, _): suspect
        }
    }

    /// Whether an item is sent alone: no other item may be written.
    package var isIsolating: Bool { suspect?.record.isIsolated == true }

    /// The time at which an item that is sent alone has outlived the limit; nil without one.
    package var deadline: WireInstant? {
        switch state {
        case .idle, .queued: nil
        case .leaving(let suspect, let time), .written(let suspect, let time):
            suspect.record.isIsolated ? time.advanced(by: Self.limit) : nil
        }
    }

    /// Ends the isolation of an item that has outlived the limit.
    ///
    /// - Returns: The item, whose record is clear now; nil without one.
    package mutating func endIsolation(at now: WireInstant) -> UInt32? {
        guard let deadline, deadline <= now, let suspect else { return nil }
        state = .idle(suspect.company.union(.items))
        return suspect.item
    }

    /// Notes the end of the connection.
    package mutating func noteEnd(_ end: End, at now: WireInstant) -> Verdict {
        defer { state = .idle([]) }
        switch state {
        case .idle(let company):
            return end == .named && company.contains(.items) ? .unclear : .none
        case .queued: return end == .named ? .unclear : .none
        case .leaving(let suspect, let time), .written(let suspect, let time):
            guard time.duration(to: now) <= Self.limit else {
                if suspect.record != .clear { return .recorded(suspect.item, .clear) }
                return end == .named ? .unclear : .none
            }
            return end == .unrelated ? .none : suspect.verdict(end)
        }
    }
}
