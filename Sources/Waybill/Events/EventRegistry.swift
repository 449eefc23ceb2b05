import WireCore

/// The observers of a source of events, with the events that each has not seen yet.
///
/// Observers keep the registry after its source is gone, and then see the end.
final class EventRegistry: Sendable {
    /// One iterator's queue; its deinit removes it from the registry.
    final class Observation: Sendable {
        let mailbox: Mailbox<TransportEvent>
        private let registration: Registration

        init(mailbox: Mailbox<TransportEvent>, registration: Registration) {
            self.mailbox = mailbox
            self.registration = registration
        }
    }

    /// Keeps a handler registered as long as it lives.
    final class Registration: Sendable {
        private let registry: EventRegistry
        private let identifier: UInt64

        init(registry: EventRegistry, identifier: UInt64) {
            self.registry = registry
            self.identifier = identifier
        }

        deinit {
            registry.leave(identifier)
        }
    }

    private struct Handler: Sendable {
        let identifier: UInt64
        /// The number of the last event before the handler was added.
        let lastNumber: UInt64
        let body: @Sendable (TransportEvent) -> Void
    }

    private struct State: Sendable {
        // Both in the order of adding.
        var mailboxes: [(identifier: UInt64, mailbox: Mailbox<TransportEvent>)] = []
        var handlers: [Handler] = []
        /// The events that the handlers have not seen yet.
        var waiting: [TransportEvent] = []
        /// The number of the last event; counted only while there are handlers.
        var lastNumber: UInt64 = 0
        var isHanding = false
        var lastIdentifier: UInt64 = 0
        var isFinished = false

        mutating func makeIdentifier() -> UInt64 {
            lastIdentifier += 1
            return lastIdentifier
        }
    }

    /// The number of events that an observer may lag behind.
    static let lagLimit = 4_096

    private let state = Locked(State())

    var isObserved: Bool {
        state.withLock { !$0.mailboxes.isEmpty || !$0.handlers.isEmpty }
    }

    // MARK: Observers

    func observe() -> Observation {
        let mailbox = Mailbox<TransportEvent>()
        let identifier = state.withLock { state in
            let identifier = state.makeIdentifier()
            state.mailboxes.append((identifier, mailbox))
            if state.isFinished { mailbox.finish(.finished) }
            return identifier
        }
        let registration = Registration(registry: self, identifier: identifier)
        return Observation(mailbox: mailbox, registration: registration)
    }

    /// Adds a handler after the present ones.
    ///
    /// - Parameter body: Called with each event from now on, one at a time, in a task of the registry.
    /// - Returns: The registration, which keeps the handler. After its deinit, earlier events may still reach the
    ///   handler.
    func observe(_ body: @escaping @Sendable (TransportEvent) -> Void) -> Registration {
        let identifier = state.withLock { state in
            let identifier = state.makeIdentifier()
            state.handlers.append(
                Handler(identifier: identifier, lastNumber: state.lastNumber, body: body)
            )
            return identifier
        }
        return Registration(registry: self, identifier: identifier)
    }

    private func leave(_ identifier: UInt64) {
        // Returned out of the lock: the objects that a handler's closure holds must not be released under it.
        let (_, removed) = state.withLock { state in
            let place = state.mailboxes.firstIndex { $0.identifier == identifier }
            let index = state.handlers.firstIndex { $0.identifier == identifier }
            return (
                place.map { state.mailboxes.remove(at: $0) },
                index.map { state.handlers.remove(at: $0) }
            )
        }
        _ = removed
    }

    /// Ends the iterations after the waiting events.
    func finish() {
        let mailboxes = state.withLock { state in
            state.isFinished = true
            return state.mailboxes.map(\.mailbox)
        }
        for mailbox in mailboxes { mailbox.finish(.finished) }
    }

    // MARK: Events

    /// Hands events to every observer.
    func append(_ events: [TransportEvent]) {
        guard !events.isEmpty else { return }
        // Appended under the lock, so that all observers see one order. Waking an observer there only schedules its
        // task.
        let mustHand = state.withLock { state in
            for (_, mailbox) in state.mailboxes {
                mailbox.append { Self.append(events, to: &$0) }
            }
            guard !state.handlers.isEmpty else { return false }
            state.lastNumber += UInt64(events.count)
            Self.append(events, to: &state.waiting)
            defer { state.isHanding = true }
            return !state.isHanding
        }
        if mustHand { Task { @concurrent in self.hand() } }
    }

    /// Appends events; above the limit it drops the oldest quarter at once, so a lagging observer costs no move per
    /// event.
    private static func append(_ events: [TransportEvent], to waiting: inout [TransportEvent]) {
        waiting += events
        guard waiting.count > lagLimit else { return }
        let excess = waiting.count - lagLimit * 3 / 4
        let count = waiting[..<excess].reduce(0) { $0 + ($1.kind == .missed ? $1.count ?? 0 : 1) }
        waiting.replaceSubrange(..<excess, with: [.missed(count)])
    }

    /// Calls the handlers until no event waits.
    private func hand() {
        while let (events, last, handlers) = take() {
            for (index, event) in events.enumerated() {
                let number = last - UInt64(events.count - 1 - index)
                for handler in handlers where handler.lastNumber < number { handler.body(event) }
            }
        }
    }

    private func take() -> ([TransportEvent], last: UInt64, [Handler])? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isHanding = false
                return nil
            }
            defer { state.waiting = [] }
            return (state.waiting, state.lastNumber, state.handlers)
        }
    }
}
