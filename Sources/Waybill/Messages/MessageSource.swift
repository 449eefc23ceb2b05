package import WireCore

/// The transport's side of a subscription: takes messages in batches and hands every message to each consumer.
package final class MessageSource: Sendable {
    /// The closures that tell a transport of changes.
    package struct Callbacks: Sendable {
        /// The last consumer and its sequence are gone; called once.
        package var onTermination: @Sendable () -> Void
        /// The policy dropped messages; the arguments are their number and their number of body bytes.
        package var onDrop: @Sendable (Int, Int) -> Void
        /// ``MessageSource/isFull`` may have changed, which says whether to stop reading from the peer.
        package var onPressure: @Sendable (MessageSource) -> Void
        /// The policy ended the subscription; further messages would be dropped.
        package var onOverflow: @Sendable () -> Void
        /// Waits until the app has acknowledged the messages that it has taken.
        package var onDrain: @Sendable () async -> Void

        package init(
            onTermination: @escaping @Sendable () -> Void = {},
            onDrop: @escaping @Sendable (Int, Int) -> Void = { _, _ in },
            onPressure: @escaping @Sendable (MessageSource) -> Void = { _ in },
            onOverflow: @escaping @Sendable () -> Void = {},
            onDrain: @escaping @Sendable () async -> Void = {}
        ) {
            self.onTermination = onTermination
            self.onDrop = onDrop
            self.onPressure = onPressure
            self.onOverflow = onOverflow
            self.onDrain = onDrain
        }
    }

    private struct State: Sendable {
        var buffers: [MessageBuffer]
        var primaryIsTaken = false
        var isTerminated = false
        /// Whether no consumer gets a message any more.
        var isStopped = false
        var end: Mailbox<Message>.Ending?
        var granted: QoS?
    }

    private let state: Locked<State>
    private let primary: MessageBuffer
    private let policy: BufferPolicy
    private let callbacks: Callbacks
    private let account: MemoryAccount?
    /// Raised when the subscription ends; consumers check it with each message.
    let termination = RaisedFlag()

    /// - Parameters:
    ///   - policy: What happens when messages arrive faster than the consumer takes them.
    ///   - account: The account that waiting messages are charged to; nil for none.
    ///   - callbacks: The closures that tell the transport of changes.
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

    /// The sequence for users; the subscription ends when its last copy is gone.
    package var messages: Messages<Message> {
        Messages(handle: MessageHandle(self), intercept: nil) {
            (message: consuming Message) throws(WaybillError) -> Message in message
        }
    }

    /// The number of messages that the policy dropped.
    package var droppedCount: Int {
        state.withLock { $0.buffers }.reduce(0) { $0 + $1.droppedCount }
    }

    /// The granted quality of service; nil before the server's answer, or if the protocol has none.
    package var grantedQoS: QoS? {
        get { state.withLock { $0.granted } }
        set { state.withLock { $0.granted = newValue } }
    }

    /// Whether more messages wait for a consumer than the policy allows; false after the end.
    package var isFull: Bool {
        state.withLock { $0.end == nil ? $0.buffers : [] }.contains { $0.isFull }
    }

    /// The error that ended the subscription; nil before the end, and after an end without an error.
    package var failure: WaybillError? {
        guard case .failed(let error) = state.withLock({ $0.end }) else { return nil }
        return error
    }

    /// Whether the last consumer and its sequence are gone.
    package var isTerminated: Bool { state.withLock { $0.isTerminated } }

    /// Hands a batch to every consumer.
    package func deliver(_ batch: consuming [Message]) {
        let buffers = state.withLock { $0.isStopped || $0.end != nil ? [] : $0.buffers }
        guard let first = buffers.first else {
            return batch.forEach { $0.delivery?.messageWasDropped() }
        }
        if buffers.count == 1 { return deliver(batch, to: first) }
        // Each consumer counts: the peer gets the acknowledgement when all consumers have taken the message.
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
        carryOut(buffer.append(batch), topic)
    }

    private func carryOut(_ outcome: MessageBuffer.Outcome, _ topic: String?) {
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

    // MARK: Room for others

    /// Makes the stream known to the account, so that it makes room for others when it is the largest.
    ///
    /// - Parameters:
    ///   - topic: The topic of the subscription.
    ///   - find: Returns this source as long as it is in use.
    /// - Returns: A number for the account.
    package static func holder(
        _ topic: String?,
        _ find: @escaping @Sendable () -> MessageSource?
    ) -> MemoryAccount.Holder {
        MemoryAccount.Holder(
            topic: topic,
            waiting: { find()?.waiting ?? MemoryAccount.Waiting() },
            drop: { find()?.drop($0, topic) },
            end: { find()?.endHolding(topic) }
        )
    }

    /// What waits in all buffers.
    private var waiting: MemoryAccount.Waiting {
        var sum = MemoryAccount.Waiting()
        sum.holdsBack = policy.overflow == .holdBack
        for buffer in state.withLock({ $0.buffers }) {
            let waiting = buffer.waiting
            sum.droppable += waiting.droppable
            sum.firm += waiting.firm
            sum.isOver = sum.isOver || waiting.isOver
        }
        return sum
    }

    /// Drops bytes by the policy, from the largest buffers.
    private func drop(_ byteCount: Int, _ topic: String?) {
        let buffers = state.withLock { $0.buffers }.map {
            (buffer: $0, count: $0.waiting.droppable)
        }
        var rest = byteCount
        for (buffer, count) in buffers.sorted(by: { $0.count > $1.count }) where rest > 0 {
            carryOut(buffer.drop(rest), topic)
            rest -= count - buffer.waiting.droppable
        }
    }

    /// Ends the stream, whose messages stop the reading of the connection, and drops them.
    private func endHolding(_ topic: String?) {
        let buffers = state.withLock { $0.buffers }
        finish(
            throwing: WaybillError(
                .slowConsumer,
                "its messages stopped the reading of the connection until other calls timed out",
                topic: topic
            )
        )
        for buffer in buffers { buffer.discard() }
        callbacks.onPressure(self)
        callbacks.onOverflow()
    }

    /// Removes waiting messages that the peer sends again; streams that have ended keep theirs.
    package func removeWaiting(where comesAgain: (any MessageDelivery) -> Bool) {
        let buffers = state.withLock { $0.end == nil ? $0.buffers : [] }
        for buffer in buffers { buffer.remove(where: comesAgain) }
    }

    /// Whether no message will follow the waiting ones.
    var isOver: Bool { state.withLock { $0.end != nil } }

    /// Ends the streams: consumers take the waiting messages, and then see the end.
    package func finish(throwing error: WaybillError? = nil) {
        let end: Mailbox<Message>.Ending = error.map { .failed($0) } ?? .finished
        let buffers: [MessageBuffer] = state.withLock { state in
            guard state.end == nil else { return [] }
            state.end = end
            return state.buffers
        }
        for buffer in buffers { buffer.finish(end) }
    }

    /// Ends the subscription from the consumers' side: waiting messages are dropped.
    package func terminate() {
        stop()
        let isFirst = state.withLock { state in
            defer { state.isTerminated = true }
            return !state.isTerminated
        }
        if isFirst { callbacks.onTermination() }
    }

    /// Ends the streams, waits until the messages in hand are acknowledged, and ends the subscription then.
    func drain() async {
        stop()
        await callbacks.onDrain()
        terminate()
    }

    /// Ends the streams, and drops the waiting messages.
    private func stop() {
        let buffers = state.withLock { state -> [MessageBuffer] in
            guard !state.isStopped else { return [] }
            state.isStopped = true
            termination.raise()
            defer { state.buffers = [] }
            return state.buffers
        }
        for buffer in buffers {
            buffer.finish(.finished)
            buffer.discard()
        }
    }

    // MARK: Consumers

    /// Gives a new iterator its buffer: the first buffer, unless another iterator uses it now.
    func attach() -> MessageBuffer {
        state.withLock { state in
            guard state.primaryIsTaken, !state.isStopped else {
                state.primaryIsTaken = true
                return primary
            }
            let buffer = MessageBuffer(policy: policy, account: account)
            if let end = state.end { buffer.finish(end) } else { state.buffers.append(buffer) }
            return buffer
        }
    }

    /// Takes back the buffer of an iterator that is gone, with its unused messages.
    func detach(_ buffer: MessageBuffer, unused: ArraySlice<Message>) {
        let isTerminated = state.withLock { state in
            if buffer === primary {
                state.primaryIsTaken = false
            } else {
                state.buffers.removeAll { $0 === buffer }
            }
            return state.isStopped
        }
        buffer.putBack(unused)
        if buffer !== primary || isTerminated { buffer.discard() }
        // It may have been the only full one.
        if buffer !== primary { drained() }
    }

    /// Called when messages of a consumer wait no longer: it has taken all of them, or is gone.
    func drained() {
        if policy.overflow == .holdBack { callbacks.onPressure(self) }
    }
}

/// The delivery of one message to several consumers; passes on the outcome when all of them have one.
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

    func messageWasTaken() -> MessageValidity { finish(taken: true) }

    func messageWasDropped() { _ = finish(taken: false) }

    var acknowledgementByteCount: Int { delivery.acknowledgementByteCount }

    private func finish(taken: Bool) -> MessageValidity {
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

/// The shared state of every copy of a ``Messages`` value and its iterators.
///
/// It holds the transport of the messages, because a transport ends when its last reference goes. The transport holds
/// no reference back, so there is no cycle.
@usableFromInline
final class MessageHandle: Sendable {
    let source: MessageSource
    private let transport = Locked<(any Transport)?>(nil)
    private let origin = Locked<MessageOrigin?>(nil)

    init(_ source: MessageSource) {
        self.source = source
    }

    deinit {
        // Before the transport is released, so that the transport can still send UNSUBSCRIBE.
        source.terminate()
    }

    /// Keeps a transport alive as long as messages can arrive.
    func keep(_ transport: any Transport) {
        self.transport.withLock { $0 = transport }
    }

    /// Remembers topic and command of the subscription, for errors, and what the provider adds.
    func come(from origin: MessageOrigin) {
        self.origin.withLock { $0 = origin }
    }

    /// The decoders of the provider that made the stream; nil if none did.
    var decoders: [any BodyDecoder]? { origin.withLock { $0?.decoders } }

    /// The same error; topic and command of the subscription are added where it has none.
    @usableFromInline
    func located(_ error: WaybillError) -> WaybillError {
        guard let origin = origin.withLock({ $0 }) else { return error }
        return error.about(topic: origin.topic, command: origin.command)
    }

    /// Reports a skipped message to observers.
    func reportSkipped(_ error: WaybillError) {
        origin.withLock { $0?.events }?.report(.skipped(error))
    }

    /// Releases the transport, because no more messages arrive.
    func releaseTransport() {
        let events = origin.withLock { $0?.events.take() }
        withExtendedLifetime(events) {}
        // Released outside the lock: this may be the last reference to the transport.
        let kept = transport.withLock { $0.take() }
        withExtendedLifetime(kept) {}
    }

    func cancel() {
        source.terminate()
        releaseTransport()
    }
}
