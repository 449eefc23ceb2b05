package import WireCore

/// A subscription as its transport sees it: takes messages in batches, hands each consumer every one.
package final class MessageSource: Sendable {
    /// What a transport wants to hear.
    package struct Callbacks: Sendable {
        /// Nobody listens any longer; called once.
        package var onTermination: @Sendable () -> Void
        /// So many messages with so many bytes of body were dropped by the policy.
        package var onDrop: @Sendable (Int, Int) -> Void
        /// Whether the peer should be held back, see ``MessageSource/isFull``, may have changed.
        package var onPressure: @Sendable (MessageSource) -> Void
        /// The policy has ended the subscription; what follows would be dropped.
        package var onOverflow: @Sendable () -> Void

        package init(
            onTermination: @escaping @Sendable () -> Void = {},
            onDrop: @escaping @Sendable (Int, Int) -> Void = { _, _ in },
            onPressure: @escaping @Sendable (MessageSource) -> Void = { _ in },
            onOverflow: @escaping @Sendable () -> Void = {}
        ) {
            self.onTermination = onTermination
            self.onDrop = onDrop
            self.onPressure = onPressure
            self.onOverflow = onOverflow
        }
    }

    private struct State: Sendable {
        var buffers: [MessageBuffer]
        var primaryIsTaken = false
        var isTerminated = false
        var end: Mailbox<Message>.Ending?
        var granted: QoS?
    }

    private let state: Locked<State>
    private let primary: MessageBuffer
    private let policy: BufferPolicy
    private let callbacks: Callbacks
    private let account: MemoryAccount?
    /// Raised when the subscription ends: consumers look at it with each message.
    let termination = RaisedFlag()

    /// - Parameters:
    ///   - policy: What happens when messages come faster than they are taken.
    ///   - account: What is charged for messages that wait; nil for nothing.
    ///   - callbacks: What the transport wants to hear.
    package init(
        policy: BufferPolicy,
        account: MemoryAccount? = nil,
        callbacks: Callbacks = Callbacks()
    ) {
        self.policy = policy
        self.account = account
        self.callbacks = callbacks
        primary = MessageBuffer(policy: policy, account: account)
        state = Locked(State(buffers: [primary]))
    }

    /// What users hold; when the last copy is gone, so is the subscription.
    package var messages: Messages<Message> {
        Messages(handle: MessageHandle(self), intercept: nil) { message throws(WaybillError) in
            message
        }
    }

    /// How many messages the policy has dropped.
    package var droppedCount: Int {
        state.withLock { $0.buffers }.reduce(0) { $0 + $1.droppedCount }
    }

    /// What the server granted; nil before it has answered, or where the protocol has no such thing.
    package var grantedQoS: QoS? {
        get { state.withLock { $0.granted } }
        set { state.withLock { $0.granted = newValue } }
    }

    /// Whether more waits for a consumer than the policy allows; what has ended is never full.
    package var isFull: Bool {
        state.withLock { $0.end == nil ? $0.buffers : [] }.contains { $0.isFull }
    }

    /// What has ended the subscription; nil while it goes on, and when nothing was wrong.
    package var failure: WaybillError? {
        guard case .failed(let error) = state.withLock({ $0.end }) else { return nil }
        return error
    }

    /// Whether nobody listens any longer.
    package var isTerminated: Bool { state.withLock { $0.isTerminated } }

    /// Hands a batch to every consumer.
    package func deliver(_ batch: consuming [Message]) {
        let buffers = state.withLock { $0.isTerminated || $0.end != nil ? [] : $0.buffers }
        guard let first = buffers.first else {
            return batch.forEach { $0.delivery?.messageWasDropped() }
        }
        if buffers.count == 1 { return deliver(batch, to: first) }
        // Each consumer counts: the peer hears of a message when all have taken it.
        let shared = batch.map { message in
            var copy = message
            copy.delivery = message.delivery.map {
                SharedDelivery($0, consumers: buffers.count)
            }
            return copy
        }
        for buffer in buffers { deliver(shared, to: buffer) }
    }

    private func deliver(_ batch: consuming [Message], to buffer: MessageBuffer) {
        let topic = batch.last?.topic
        let outcome = buffer.append(batch)
        if outcome.dropped > 0 { callbacks.onDrop(outcome.dropped, outcome.droppedBytes) }
        switch outcome.pressure {
        case .none: break
        case .holdBack: callbacks.onPressure(self)
        case .fail:
            finish(
                throwing: WaybillError(
                    .slowConsumer,
                    """
                    more than \(policy.messageLimit) messages or \(policy.byteLimit) bytes waited, or all that the \
                    connection may keep in memory
                    """,
                    topic: topic
                )
            )
            callbacks.onOverflow()
        }
    }

    /// Removes messages that wait and that the peer sends again; streams that have ended keep theirs.
    package func removeWaiting(where comesAgain: (any MessageDelivery) -> Bool) {
        let buffers = state.withLock { $0.end == nil ? $0.buffers : [] }
        for buffer in buffers { buffer.remove(where: comesAgain) }
    }

    /// Whether no message follows those that wait.
    var isOver: Bool { state.withLock { $0.end != nil } }

    /// Ends the streams: consumers finish what waits, and then see the end.
    package func finish(throwing error: WaybillError? = nil) {
        let end: Mailbox<Message>.Ending = error.map { .failed($0) } ?? .finished
        let buffers: [MessageBuffer] = state.withLock { state in
            guard state.end == nil else { return [] }
            state.end = end
            return state.buffers
        }
        for buffer in buffers { buffer.finish(end) }
    }

    /// Ends the subscription from the consumers' side: what waits is dropped.
    package func terminate() {
        let buffers: [MessageBuffer]? = state.withLock { state in
            guard !state.isTerminated else { return nil }
            state.isTerminated = true
            termination.raise()
            defer { state.buffers = [] }
            return state.buffers
        }
        guard let buffers else { return }
        for buffer in buffers {
            buffer.finish(.finished)
            buffer.discard()
        }
        callbacks.onTermination()
    }

    // MARK: Consumers

    /// The buffer for a new iterator: the first one, unless somebody iterates over it now.
    func attach() -> MessageBuffer {
        state.withLock { state in
            guard state.primaryIsTaken, !state.isTerminated else {
                state.primaryIsTaken = true
                return primary
            }
            let buffer = MessageBuffer(policy: policy, account: account)
            if let end = state.end { buffer.finish(end) } else { state.buffers.append(buffer) }
            return buffer
        }
    }

    /// Takes back the buffer of an iterator that is gone, and what it had not used.
    func detach(_ buffer: MessageBuffer, unused: ArraySlice<Message>) {
        let isTerminated = state.withLock { state in
            if buffer === primary {
                state.primaryIsTaken = false
            } else {
                state.buffers.removeAll { $0 === buffer }
            }
            return state.isTerminated
        }
        buffer.putBack(unused)
        if buffer !== primary || isTerminated { buffer.discard() }
    }

    /// Hears that a consumer has taken what waited.
    func drained() {
        if policy.overflow == .holdBack { callbacks.onPressure(self) }
    }
}

/// One message, several consumers: passes on once that all have taken it.
private final class SharedDelivery: MessageDelivery {
    private struct State: Sendable {
        var left: Int
        var wasTaken = false
    }

    private let delivery: any MessageDelivery
    private let state: Locked<State>

    init(_ delivery: any MessageDelivery, consumers: Int) {
        self.delivery = delivery
        state = Locked(State(left: consumers))
    }

    var origin: any MessageDelivery { delivery.origin }

    func messageWasTaken() -> MessageValidity { settle(taken: true) }

    func messageWasDropped() { _ = settle(taken: false) }

    var acknowledgementByteCount: Int { delivery.acknowledgementByteCount }

    private func settle(taken: Bool) -> MessageValidity {
        let (isLast, wasTaken) = state.withLock { state in
            state.left -= 1
            state.wasTaken = state.wasTaken || taken
            return (state.left == 0, state.wasTaken)
        }
        guard isLast else { return delivery.validity }
        if wasTaken { return delivery.messageWasTaken() }
        delivery.messageWasDropped()
        return .valid
    }
}

/// Kept by every copy of a ``Messages`` value and its iterators.
///
/// It keeps the transport that the messages come from, which ends when its last reference goes. The transport does not
/// know it: no cycle.
final class MessageHandle: Sendable {
    let source: MessageSource
    private let transport = Locked<(any Transport)?>(nil)
    private let origin = Locked<MessageOrigin?>(nil)

    init(_ source: MessageSource) {
        self.source = source
    }

    deinit {
        // First, so that the transport can still tell the peer.
        source.terminate()
    }

    /// Keeps a transport as long as there are messages to come.
    func keep(_ transport: any Transport) {
        self.transport.withLock { $0 = transport }
    }

    /// Notes what was subscribed to, for the errors.
    func come(from origin: MessageOrigin) {
        self.origin.withLock { $0 = origin }
    }

    /// The same error, with the topic and the command of the subscription where it names none.
    func located(_ error: WaybillError) -> WaybillError {
        guard let origin = origin.withLock({ $0 }) else { return error }
        return error.about(topic: origin.topic, command: "subscribe")
    }

    /// Tells observers of a message that was skipped.
    func reportSkipped(_ error: WaybillError) {
        origin.withLock { $0?.events }?.report(.skipped(error))
    }

    /// Lets go of the transport, as no more messages come.
    func letGo() {
        let events = origin.withLock { $0?.events.take() }
        withExtendedLifetime(events) {}
        // Released outside the lock: this may be the last reference to the transport.
        let kept = transport.withLock { $0.take() }
        withExtendedLifetime(kept) {}
    }

    /// Ends the subscription.
    func cancel() {
        source.terminate()
        letGo()
    }
}
