import WireCore

/// The messages of a subscription, as an asynchronous sequence.
///
/// - Every iteration gets every message once while it runs. The first iteration gets all messages since the
///   subscription. An iteration that begins while another runs gets all messages from then on. An iteration that begins
///   when none runs continues where the last one stopped.
/// - A message of QoS 1 or 2 is acknowledged when the consumer takes it, not before.
/// - The ``BufferPolicy`` of the entry or the transport bounds the waiting messages.
/// - An element that cannot be decoded, or that an interceptor refuses, is thrown in its place and ends nothing: the
///   next call of `next()`, or a new loop, continues with the next element. For a loop that must not stop, use
///   ``skippingFailures``, or ``results`` to see each failure in its place.
/// - When the task is cancelled, `next()` throws `CancellationError`. The subscription ends when the last copy of the
///   sequence and its iterators is gone, or after ``cancel()``.
/// - The sequence and its iterators keep the transport alive until the subscription has ended.
public struct Messages<Element: Sendable>: AsyncSequence, Sendable {
    @usableFromInline let handle: MessageHandle
    @usableFromInline let intercept: (@Sendable (Message) async throws -> Message)?
    @usableFromInline let decode: @Sendable (consuming Message) throws(WaybillError) -> Element

    init(
        handle: MessageHandle,
        intercept: (@Sendable (Message) async throws -> Message)?,
        decode: @escaping @Sendable (consuming Message) throws(WaybillError) -> Element
    ) {
        self.handle = handle
        self.intercept = intercept
        self.decode = decode
    }

    /// The number of messages that were dropped because the consumer did not take them in time.
    public var droppedCount: Int { handle.source.droppedCount }

    /// The quality of service that the server granted; nil if the protocol has none.
    ///
    /// It may be lower than requested.
    public var grantedQoS: QoS? { handle.source.grantedQoS }

    /// Ends the subscription: iterations finish, and the peer is told.
    ///
    /// No further element is delivered, not even one that has already arrived.
    public func cancel() {
        handle.cancel()
    }

    /// Ends the subscription as soon as the messages in hand are acknowledged.
    ///
    /// Iterations finish after their current element. With manual acknowledgement, the method then waits until the app has
    /// acknowledged or refused what it has taken. A STOMP server is told after that, because it takes no acknowledgement
    /// for a subscription that has ended; an MQTT server before, so that it sends nothing more meanwhile. Messages that wait
    /// in memory are not delivered, as after ``cancel()``. The wait ends early when the connection ends, or when the task
    /// is cancelled.
    public func drain() async {
        await handle.source.drain()
        handle.releaseTransport()
    }

    /// Keeps a transport alive as long as messages can arrive.
    ///
    /// A custom transport calls this: an app may release its provider while it reads the messages.
    ///
    /// - Parameter transport: The transport; it ends when its last reference goes.
    /// - Returns: The same messages.
    public func keeping(_ transport: any Transport) -> Messages {
        handle.keep(transport)
        return self
    }

    /// The same messages, each with its own success or failure, so that a failure does not stop a loop.
    public var results: Results { Results(base: self) }

    /// Begins to iterate.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: self)
    }

    /// An iteration.
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline let base: Messages
        @usableFromInline let consumer: MessageConsumer

        init(base: Messages) {
            self.base = base
            consumer = MessageConsumer(base.handle)
        }

        /// Returns the next element; nil when the subscription has ended.
        ///
        /// - Throws: `WaybillError` for an element that cannot be delivered, and once at the end if the
        ///   subscription failed; `CancellationError`.
        @inlinable
        public mutating func next() async throws -> Element? {
            // Compiled into the caller's loop: most messages take no more than this.
            if base.intercept == nil, let message = consumer.takeNextInTurn() {
                do throws(WaybillError) { return try base.decode(message) } catch {
                    throw base.handle.located(error)
                }
            }
            return try await nextAfterWaiting()
        }

        @usableFromInline
        mutating func nextAfterWaiting() async throws -> Element? {
            if consumer.endTurnIfOver() { await Turn.giveWay() }
            do {
                while true {
                    guard let message = consumer.takeNext() else {
                        guard try await consumer.refill() else { return nil }
                        continue
                    }
                    guard let intercept = base.intercept else { return try base.decode(message) }
                    let intercepted = try await intercept(message)
                    // The subscription may have been cancelled meanwhile.
                    guard !consumer.isCancelled else { return nil }
                    return try base.decode(intercepted)
                }
            } catch let error as WaybillError {
                throw base.handle.located(error)
            }
        }

        /// Does the same as ``next()``, on the caller's actor.
        ///
        /// It yields the actor after every 256 messages, so that other tasks on it can run.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await next()
        }

        /// Returns the next element or its failure; nil when the subscription has ended without an error.
        mutating func nextResult() async throws -> Result<Element, WaybillError>? {
            if consumer.endTurnIfOver() { await Turn.giveWay() }
            while true {
                guard let message = consumer.takeNext() else {
                    do {
                        guard try await consumer.refill() else { return nil }
                    } catch let error as WaybillError {
                        throw base.handle.located(error)
                    }
                    continue
                }
                do {
                    let intercepted = try await base.intercept?(message) ?? message
                    guard !consumer.isCancelled else { return nil }
                    return .success(try base.decode(intercepted))
                } catch let error as WaybillError {
                    return .failure(base.handle.located(error))
                }
            }
        }
    }

    /// The messages of a subscription, each with its own success or failure.
    public struct Results: AsyncSequence, Sendable {
        let base: Messages

        /// Begins to iterate.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(iterator: base.makeAsyncIterator())
        }

        /// An iteration.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var iterator: Messages.AsyncIterator

            /// Returns the next element or the failure in its place; nil when the subscription has ended.
            ///
            /// - Throws: `WaybillError` if the subscription itself failed; `CancellationError`.
            public mutating func next() async throws -> Result<Element, WaybillError>? {
                try await iterator.nextResult()
            }

            /// Does the same as ``next()``, on the caller's actor.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Result<Element, WaybillError>? {
                try await iterator.nextResult()
            }
        }
    }
}

extension Messages where Element == Message {
    /// Makes a sequence and its feed, for a custom transport.
    ///
    /// - Parameters:
    ///   - policy: What happens to messages that arrive faster than the consumer takes them.
    ///   - onTermination: Called once when the last consumer and the sequence are gone.
    ///   - onDrop: Called when the policy dropped messages, with their number and their number of body bytes.
    ///   - onTaken: Called once for each message when the consumer takes it; with several consumers, when all have
    ///     taken it. This is the moment to acknowledge the message to the peer. With this closure, the policy neither
    ///     drops nor counts messages, since the peer sends only as many as may wait for an acknowledgement. It is not
    ///     called for messages that no consumer takes before the end. It runs on the consumer's thread with no lock
    ///     held.
    /// - Returns: The sequence to return to the caller, and the feed to keep.
    public static func makeStream(
        policy: BufferPolicy = BufferPolicy(.dropOldest),
        onTermination: @escaping @Sendable () -> Void = {},
        onDrop: @escaping @Sendable (Int, Int) -> Void = { _, _ in },
        onTaken: (@Sendable (Message) -> Void)? = nil
    ) -> (messages: Messages<Message>, feed: MessageFeed) {
        let callbacks = MessageSource.Callbacks(
            onTermination: onTermination,
            onDrop: onDrop
        )
        let source = MessageSource(policy: policy, callbacks: callbacks)
        return (source.messages, MessageFeed(source: source, onTaken: onTaken))
    }
}

/// Feeds a sequence of messages.
public struct MessageFeed: Sendable {
    let source: MessageSource
    let onTaken: (@Sendable (Message) -> Void)?

    /// Hands messages to every consumer.
    public func deliver(_ messages: [Message]) {
        guard let onTaken else { return source.deliver(messages) }
        source.deliver(
            messages.map { message in
                var told = message
                told.delivery = ObservedDelivery(message, onTaken)
                told.isBoundedByPeer = true
                return told
            }
        )
    }

    /// Ends the sequence after the waiting messages; with an error, the consumer sees that error once.
    public func finish(throwing error: WaybillError? = nil) {
        source.finish(throwing: error)
    }
}

/// Tells a transport when a message was taken.
private final class ObservedDelivery: MessageDelivery {
    private let message: Message
    private let onTaken: @Sendable (Message) -> Void

    init(_ message: Message, _ onTaken: @escaping @Sendable (Message) -> Void) {
        self.message = message
        self.onTaken = onTaken
    }

    func messageWasTaken() -> MessageValidity {
        onTaken(message)
        return .valid
    }

    func messageWasDropped() {}
}

/// One iterator's position in a subscription; its unused messages return to the buffer when it is gone.
///
/// Used by one iterator only, so it needs no lock.
@usableFromInline
final class MessageConsumer {
    private let handle: MessageHandle
    private let buffer: MessageBuffer
    private let termination: RaisedFlag
    // `@exclusivity(unchecked)`, because: only an iterator and its copies reach these, which one task uses at a time, and
    // no code that could reach them runs inside an access. The check would take a tenth of the time of a message.
    @exclusivity(unchecked) private var batch: [Message] = []
    @exclusivity(unchecked) private var position = 0
    /// The rest of a taken batch in portions, the next portion last; used while the account is full.
    private var portions: [Portion] = []
    /// The bytes charged for the current portion; zero for a whole batch.
    private var portionCharge = MessageBuffer.Charge()
    @exclusivity(unchecked) private var turn = Turn()

    private struct Portion {
        var messages: [Message] = []
        var charge = MessageBuffer.Charge()
    }

    /// The number of bytes from which a portion is complete: 1 MiB.
    private static let portionByteLimit = 1 << 20

    init(_ handle: MessageHandle) {
        self.handle = handle
        buffer = handle.source.attach()
        termination = handle.source.termination
    }

    deinit {
        handle.source.detach(buffer, unused: unused)
    }

    private var unused: ArraySlice<Message> {
        guard !portions.isEmpty else { return batch[position...] }
        return batch[position...] + portions.reversed().flatMap(\.messages)
    }

    var isCancelled: Bool { termination.isRaised }

    /// Begins another turn if the present one is over.
    ///
    /// - Returns: Whether to yield before it.
    func endTurnIfOver() -> Bool { turn.endIfOver() }

    /// Takes all waiting messages; returns false at the end.
    func refill() async throws -> Bool {
        batch = []
        position = 0
        if takePortion() { return true }
        buffer.releaseTaken()
        let more: [Message]?
        do { more = try await buffer.take() } catch {
            if error is WaybillError { handle.releaseTransport() }
            throw error
        }
        guard let more else {
            handle.releaseTransport()
            return false
        }
        batch = more
        if buffer.asksForPortions { cutIntoPortions() }
        handle.source.drained()
        return true
    }

    /// Cuts a large batch into portions that are released to the account one by one.
    ///
    /// Until the account has room, no reply to a request of the loop can be read.
    private func cutIntoPortions() {
        var portion = Portion()
        for message in batch {
            portion.messages.append(message)
            portion.charge += buffer.charge(of: message)
            guard portion.charge.all >= Self.portionByteLimit else { continue }
            portions.append(portion)
            portion = Portion()
        }
        if !portion.messages.isEmpty { portions.append(portion) }
        portions.reverse()
        batch = []
        _ = takePortion()
    }

    /// Continues with the next portion.
    private func takePortion() -> Bool {
        if portionCharge.all > 0 { buffer.releaseTaken(portionCharge) }
        portionCharge = MessageBuffer.Charge()
        guard let portion = portions.popLast() else { return false }
        batch = portion.messages
        portionCharge = portion.charge
        return true
    }

    /// Takes the next message; nil when there is none left, or when the caller has to yield first.
    @usableFromInline
    func takeNextInTurn() -> Message? { turn.isOver ? nil : takeNext() }

    /// Takes the next message; nil when there is none left.
    func takeNext() -> Message? {
        while position < batch.count {
            guard !termination.isRaised else {
                dropRest()
                return nil
            }
            let place = position
            position += 1
            turn.advance()
            // Moved out of its place, and returned without a variable, which would be a copy.
            guard let delivery = batch[place].delivery else { return batch[place].moveOut() }
            switch delivery.messageWasTaken() {
            case .valid: return batch[place].moveOut()
            case .comesAgain where handle.source.isOver: return batch[place].moveOut()
            case .comesAgain, .empty: continue
            }
        }
        return nil
    }

    /// Drops messages that were taken from the buffer and not yet returned to the loop.
    private func dropRest() {
        let rest = unused
        position = batch.count
        portions = []
        for message in rest { message.delivery?.messageWasDropped() }
    }
}
