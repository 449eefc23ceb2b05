import WireCore

/// The messages of a subscription, as an asynchronous sequence.
///
/// - Every iteration that runs at the same time gets every message once. The first gets all from the
///   subscription on; one that begins while another runs, all from then on. One that begins when none
///   runs goes on where the last one stopped.
/// - A message of QoS 1 or 2 is acknowledged when the consumer takes it, not before.
/// - What waits is bounded, by the ``BufferPolicy`` of the entry or the transport.
/// - An element that cannot be decoded, or that an interceptor refuses, is thrown in its turn and ends
///   nothing: the next call of `next()`, or a new loop, goes on with the next element. A loop that
///   must not stop runs over ``skippingFailures``, or over ``results`` if it has to see each failure in its place.
/// - When the task is cancelled, `next()` throws `CancellationError`. When the last copy of the
///   sequence and its iterators is gone, or after ``cancel()``, the subscription ends.
/// - The sequence and its iterators keep the transport alive until the subscription has ended.
public struct Messages<Element: Sendable>: AsyncSequence, Sendable {
    let handle: MessageHandle
    let intercept: (@Sendable (Message) async throws -> Message)?
    let decode: @Sendable (consuming Message) throws(WaybillError) -> Element

    init(
        handle: MessageHandle,
        intercept: (@Sendable (Message) async throws -> Message)?,
        decode: @escaping @Sendable (consuming Message) throws(WaybillError) -> Element
    ) {
        self.handle = handle
        self.intercept = intercept
        self.decode = decode
    }

    /// How many messages were dropped because they were not taken in time.
    public var droppedCount: Int { handle.source.droppedCount }

    /// The quality of service that the server granted, which may be less than was asked for; nil where the
    /// protocol has no such thing.
    public var grantedQoS: QoS? { handle.source.grantedQoS }

    /// Ends the subscription: iterations finish, and the peer is told.
    ///
    /// No further element comes, not even of those that have arrived.
    public func cancel() {
        handle.cancel()
    }

    /// Keeps a transport alive as long as there are messages to come.
    ///
    /// For transports of one's own: an app may let go of its provider while it reads the messages.
    ///
    /// - Parameter transport: The transport, which ends when its last reference goes.
    /// - Returns: The same messages.
    public func keeping(_ transport: any Transport) -> Messages {
        handle.keep(transport)
        return self
    }

    /// The same messages, each with its own success or failure, so that a loop never stops at one.
    public var results: Results { Results(base: self) }

    /// Begins to iterate.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: self)
    }

    /// One iteration.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let base: Messages
        private let consumer: MessageConsumer

        init(base: Messages) {
            self.base = base
            consumer = MessageConsumer(base.handle)
        }

        /// The next element; nil when the subscription has ended.
        ///
        /// - Throws: `WaybillError` for an element that cannot be delivered, and once at the end if the
        ///   subscription failed; `CancellationError`.
        public mutating func next() async throws -> Element? {
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

        /// As ``next()``, on the caller's actor: a loop over messages that are there lets others run there each 256
        /// messages.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await next()
        }

        /// The next element or its failure; nil when the subscription has ended well.
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

        /// One iteration.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var iterator: Messages.AsyncIterator

            /// The next element or why there is none in its place; nil when the subscription has ended.
            ///
            /// - Throws: `WaybillError` if the subscription itself failed; `CancellationError`.
            public mutating func next() async throws -> Result<Element, WaybillError>? {
                try await iterator.nextResult()
            }

            /// As ``next()``, on the caller's actor.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Result<Element, WaybillError>? {
                try await iterator.nextResult()
            }
        }
    }
}

extension Messages where Element == Message {
    /// Makes a sequence and what feeds it, for transports of one's own.
    ///
    /// - Parameters:
    ///   - policy: What happens to messages that come faster than they are taken.
    ///   - onTermination: Called once when nobody listens any longer.
    ///   - onDrop: Called when the policy has dropped so many messages with so many bytes of body.
    ///   - onTaken: Called once for each message when a consumer takes it, and after all have where there are several:
    ///     the moment to acknowledge it to the peer. The policy then drops no message and does not count them, since
    ///     the peer sends only as many as may wait for an acknowledgement. Not called for messages that no consumer
    ///     takes before the end. With no lock held, on the consumer's thread.
    /// - Returns: The sequence to give out, and the feed to keep.
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
                told.delivery = ToldDelivery(message, onTaken)
                return told
            }
        )
    }

    /// Ends the sequence after what waits; with an error, the consumer sees it once.
    public func finish(throwing error: WaybillError? = nil) {
        source.finish(throwing: error)
    }
}

/// Tells a transport that a message was taken.
private final class ToldDelivery: MessageDelivery {
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

/// One iterator's place in a subscription: what it took and has not used goes back when it is gone.
///
/// Used by one iterator alone, so nothing here is locked.
final class MessageConsumer {
    private let handle: MessageHandle
    private let buffer: MessageBuffer
    private let termination: RaisedFlag
    private var batch: [Message] = []
    private var position = 0
    /// What follows the batch of what was taken at once, the next portion last; used while the account is full.
    private var portions: [Portion] = []
    /// What the account is charged for the portion under way; zero for a whole batch.
    private var portionByteCount = 0
    private var turn = Turn()

    private struct Portion {
        var messages: [Message] = []
        var byteCount = 0
    }

    /// From how many bytes on a portion is complete: 1 MiB.
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

    /// Whether the subscription was cancelled.
    var isCancelled: Bool { termination.isRaised }

    /// Begins another turn if this one is over.
    /// - Returns: Whether others should run before.
    func endTurnIfOver() -> Bool { turn.endIfOver() }

    /// Takes all that waits; false at the end.
    func refill() async throws -> Bool {
        batch = []
        position = 0
        if takePortion() { return true }
        buffer.releaseTaken()
        let more: [Message]?
        do { more = try await buffer.take() } catch {
            if error is WaybillError { handle.letGo() }
            throw error
        }
        guard let more else {
            handle.letGo()
            return false
        }
        batch = more
        if buffer.isAccountFull { cutIntoPortions() }
        handle.source.drained()
        return true
    }

    /// Has a large batch given back to the account bit by bit: until the account has room, no answer to a request that the
    /// loop makes can be read.
    private func cutIntoPortions() {
        var portion = Portion()
        for message in batch {
            portion.messages.append(message)
            portion.byteCount += MessageBuffer.memoryByteCount(of: message)
            guard portion.byteCount >= Self.portionByteLimit else { continue }
            portions.append(portion)
            portion = Portion()
        }
        if !portion.messages.isEmpty { portions.append(portion) }
        portions.reverse()
        batch = []
        _ = takePortion()
    }

    /// Goes on with the next portion.
    private func takePortion() -> Bool {
        if portionByteCount > 0 { buffer.releaseTaken(portionByteCount) }
        portionByteCount = 0
        guard let portion = portions.popLast() else { return false }
        batch = portion.messages
        portionByteCount = portion.byteCount
        return true
    }

    /// The next message, which thereby is taken; nil when there is none left.
    func takeNext() -> Message? {
        while position < batch.count {
            guard !termination.isRaised else {
                dropRest()
                return nil
            }
            let message = batch[position]
            position += 1
            turn.advance()
            guard let delivery = message.delivery else { return message }
            switch delivery.messageWasTaken() {
            case .valid: return message
            case .comesAgain where handle.source.isOver: return message
            case .comesAgain, .empty: continue
            }
        }
        return nil
    }

    /// Drops what has been taken from the buffer and was not asked for.
    private func dropRest() {
        let rest = unused
        position = batch.count
        portions = []
        for message in rest { message.delivery?.messageWasDropped() }
    }
}
