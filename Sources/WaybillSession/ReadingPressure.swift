package import Waybill
import WaybillLink
package import WireCore

/// Holds the peer back as long as any of several subscriptions wants that.
///
/// What a subscription wants is looked up under one lock whenever it may have changed: told as it changes, a
/// late "hold" could come after the "go on" that it should have come before, and stay.
package final class ReadingPressure: Sendable {
    private enum Holder: Hashable, Sendable {
        case source(ObjectIdentifier)
        case name(String)
    }

    private struct State: Sendable {
        var holders: Set<Holder> = []
        var isReleased = false
        var hold = ReadingHold()
        /// Stops or resumes reading; of the connection that there is.
        var setReading: (@Sendable (Bool) -> Void)?
        /// Counts connections.
        var connection: UInt64 = 0

        /// What to tell to whom; nil when nothing is to be told by this thread.
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
    /// What waits for all subscriptions together.
    package let account: MemoryAccount

    /// Without a connection.
    /// - Parameter account: What waits.
    package init(account: MemoryAccount = MemoryAccount()) {
        self.account = account
    }

    /// For one connection.
    /// - Parameters:
    ///   - account: What waits.
    ///   - setReading: Stops or resumes reading; called by one thread at a time.
    package convenience init(
        account: MemoryAccount = MemoryAccount(),
        setReading: @escaping @Sendable (Bool) -> Void
    ) {
        self.init(account: account)
        attach(setReading)
    }

    /// Goes over to another connection, which is read from as yet.
    /// - Parameter setReading: Stops or resumes reading; called by one thread at a time.
    package func attach(_ setReading: @escaping @Sendable (Bool) -> Void) {
        change { state in
            state.connection += 1
            state.setReading = setReading
            state.isReleased = false
            state.hold = ReadingHold()
        }
    }

    /// Lets go of the connection, which is over.
    package func detach() {
        change { state in
            state.connection += 1
            state.setReading = nil
        }
    }

    /// Looks whether a subscription is full.
    package func update(_ source: MessageSource) {
        change(.source(ObjectIdentifier(source))) { source.isFull }
    }

    /// Looks whether a subscription is full by a measure of its transport's own.
    /// - Parameters:
    ///   - name: The subscription.
    ///   - isFull: Looks; called with a lock held.
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

    /// Lets the peer go on although a subscription is full: what it says last must be heard.
    ///
    /// A full account still holds it back, through the driver.
    package func release() {
        change { $0.isReleased = true }
    }

    private func change(_ holder: Holder, _ isFull: () -> Bool) {
        change { state in
            if isFull() { state.holders.insert(holder) } else { state.holders.remove(holder) }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        var next = state.withLock { state in
            body(&state)
            state.hold.isHeld = !state.holders.isEmpty && !state.isReleased
            return state.next()
        }
        while let telling = next {
            telling.setReading(!telling.isHeld)
            next = state.withLock { state in
                // Another connection has its own thread that tells.
                guard state.connection == telling.connection else { return nil }
                state.hold.endTelling()
                return state.next()
            }
        }
    }
}
