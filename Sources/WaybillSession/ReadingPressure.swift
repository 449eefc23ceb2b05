package import Waybill
package import WaybillLink
package import WireCore

/// Stops reading from the peer while any of several subscriptions is full.
///
/// Whether a subscription is full is looked up under one lock after each possible change. A notification with the
/// value could be overtaken: a late "full" after "not full" would stop the reading for good.
package final class ReadingPressure: Sendable {
    /// Why a connection is not read.
    enum Reason: Sendable {
        /// The account is full.
        case account
        /// The policy of a full subscription holds it back.
        case policy
    }

    private enum Holder: Hashable, Sendable {
        case source(ObjectIdentifier)
        case name(String)
    }

    private struct State: Sendable {
        var holders: Set<Holder> = []
        var isReleased = false
        var hold = ReadingHold()
        /// Stops or resumes reading of the current connection.
        var setReading: (@Sendable (Bool) -> Void)?
        /// The number of the current connection.
        var connection: UInt64 = 0

        /// Returns the next call of `setReading`; nil if this thread has none to make.
        mutating func next() -> Telling? {
            guard let setReading, let isHeld = hold.beginTelling() else { return nil }
            return Telling(isHeld: isHeld, setReading: setReading, connection: connection)
        }
    }

    private struct Telling {
        let isHeld: Bool
        let setReading: @Sendable (Bool) -> Void
        let connection: UInt64
    }

    private let state = Locked(State())
    /// The account of the bytes that wait in all subscriptions together.
    package let account: MemoryAccount
    private let watch: ReadingWatch?
    private let observation = Locked<UInt64?>(nil)

    /// Makes one without a connection.
    ///
    /// - Parameter account: Counts the bytes that wait.
    package init(account: MemoryAccount = MemoryAccount()) {
        self.account = account
        watch = nil
    }

    /// Makes one without a connection, which tells of long stops.
    ///
    /// - Parameters:
    ///   - account: Counts the bytes that wait.
    ///   - events: Receives the events.
    ///   - clock: Measures the stops.
    package init(
        account: MemoryAccount,
        reportingTo events: TransportEventSource,
        by clock: any TimerSource
    ) {
        self.account = account
        watch = ReadingWatch(account, reportingTo: events, by: clock)
    }

    /// Makes one for a connection.
    ///
    /// - Parameters:
    ///   - account: Counts the bytes that wait.
    ///   - setReading: Stops or resumes reading; called by one thread at a time.
    package convenience init(
        account: MemoryAccount = MemoryAccount(),
        setReading: @escaping @Sendable (Bool) -> Void
    ) {
        self.init(account: account)
        attach(setReading)
    }

    /// Changes to another connection, whose reading is not stopped yet.
    ///
    /// - Parameter setReading: Stops or resumes reading; called by one thread at a time.
    package func attach(_ setReading: @escaping @Sendable (Bool) -> Void) {
        observe()
        change { state in
            state.connection += 1
            state.setReading = setReading
            state.isReleased = false
            state.hold = ReadingHold()
        }
    }

    /// Releases the connection, which is over.
    package func detach() {
        change { state in
            state.connection += 1
            state.setReading = nil
        }
        if let observer = observation.withLock({ $0.take() }) { account.stopObserving(observer) }
    }

    /// Checks whether a subscription is full.
    package func update(_ source: MessageSource) {
        change(.source(ObjectIdentifier(source))) { source.isFull }
    }

    /// Checks whether a subscription is full by the transport's own measure.
    ///
    /// - Parameters:
    ///   - name: The subscription.
    ///   - isFull: Returns whether it is full; called with a lock held.
    package func update(_ name: String, isFull: () -> Bool) {
        change(.name(name), isFull)
    }

    /// Forgets a subscription that has ended.
    package func forget(_ source: MessageSource) {
        change(.source(ObjectIdentifier(source))) { false }
    }

    /// Forgets every subscription.
    package func forgetAll() {
        change { $0.holders = [] }
    }

    /// Resumes reading although a subscription is full, so that the peer's last packets are received.
    ///
    /// A full account still stops the reading, through the driver.
    package func release() {
        change { $0.isReleased = true }
    }

    // MARK: Long stops

    private func observe() {
        guard watch != nil else { return }
        let observer = account.observe { [weak self] in self?.updateWatch() }
        let former = observation.withLock { observation in
            defer { observation = observer }
            return observation
        }
        if let former { account.stopObserving(former) }
    }

    private func updateWatch() { watch?.update { reason } }

    /// Why the present connection is not read.
    private var reason: Reason? {
        let (isAttached, isHeld) = state.withLock { ($0.setReading != nil, $0.hold.isHeld) }
        guard isAttached else { return nil }
        if account.isFull { return .account }
        return isHeld ? .policy : nil
    }

    /// Notes that a call had no answer in time: if reading was stopped for that long, the stream that stops it ends.
    ///
    /// - Parameter limit: The transport's limit for an answer; a call may have a shorter one.
    package func noteTimeout(of limit: Duration) {
        guard watch?.isStopped(for: limit) == true, let reason else { return }
        account.endLargestHolder(holdsBack: reason == .policy)
    }

    private func change(_ holder: Holder, _ isFull: () -> Bool) {
        change { state in
            if isFull() { state.holders.insert(holder) } else { state.holders.remove(holder) }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        var (next, isNews) = state.withLock { state in
            let before = (state.hold.isHeld, state.connection)
            body(&state)
            state.hold.isHeld = !state.holders.isEmpty && !state.isReleased
            return (state.next(), before != (state.hold.isHeld, state.connection))
        }
        if isNews { updateWatch() }
        while let telling = next {
            telling.setReading(!telling.isHeld)
            next = state.withLock { state in
                // The calls for another connection belong to another thread.
                guard state.connection == telling.connection else { return nil }
                state.hold.endTelling()
                return state.next()
            }
        }
    }
}
