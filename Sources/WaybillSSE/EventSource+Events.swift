import Waybill
import WaybillSession
import WireCore

extension EventSource {
    /// The events of a source from the call of ``EventSource/events()`` on, as an asynchronous sequence.
    ///
    /// - It goes on over reconnections, and ends without an error after ``EventSource/disconnect()``, and when the
    ///   server has no more events. If the source gives up, the error of its last ``EventSource/Completion`` is thrown.
    ///   Events that wait at the end are delivered before it.
    /// - No event is dropped. Up to 256 events or 1 MiB wait. When more wait, the source takes no further event from the
    ///   stream and calls no handler until the loop has taken the waiting ones. Meanwhile
    ///   ``SSEConfiguration/buffering`` applies to what arrives: by default the server is held back.
    /// - A sequence is for one loop at a time; another call of ``EventSource/events()`` makes another sequence. A loop
    ///   that begins after another one continues where that one stopped.
    /// - When the task is cancelled, `next()` throws `CancellationError`. The source goes on.
    /// - The sequence and its iterators keep the source alive. Release a sequence that is not read any more: it holds
    ///   the source back.
    public struct Events: AsyncSequence, Sendable {
        let messages: Messages<Message>
        /// Kept alive, because a source without references closes its connection.
        let source: EventSource

        /// Begins to iterate.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(iterator: messages.makeAsyncIterator(), source: source)
        }

        /// An iteration.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var iterator: Messages<Message>.AsyncIterator
            let source: EventSource

            /// Returns the next event; nil when the source is closed.
            ///
            /// - Throws: `WaybillError`, once, if the source has given up; `CancellationError`.
            public mutating func next() async throws -> Event? {
                guard let message = try await iterator.next() else { return nil }
                return Event(message)
            }

            /// Does the same as ``next()``, on the caller's actor.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws -> Event? {
                try await next()
            }
        }
    }
}

extension EventSource.Events: CustomReflectable {
    /// Nothing: data is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EventSource.Events.AsyncIterator: CustomReflectable {
    /// Nothing: data is never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The events that wait for one sequence of an ``EventSource``.
final class EventFeed: Sendable {
    /// Wakes the source when the sequence may have room.
    private final class Room: Sendable {
        private let promise = Locked<Promise<Void>?>(nil)

        /// Makes the promise that the next ``open()`` resolves.
        func expect() -> Promise<Void> {
            promise.withLock { promise in
                let new = Promise<Void>()
                promise = new
                return new
            }
        }

        func open() {
            promise.withLock { $0.take() }?.resolve(.success(()))
        }
    }

    private let source: MessageSource
    private let room: Room

    /// - Parameter onLeave: Called when the sequence and its iterators are gone.
    init(onLeave: @escaping @Sendable () -> Void) {
        let room = Room()
        self.room = room
        source = MessageSource(
            policy: BufferPolicy(.holdBack, messageLimit: 256, byteLimit: 1 << 20),
            callbacks: MessageSource.Callbacks(
                onTermination: {
                    room.open()
                    onLeave()
                },
                onPressure: { _ in room.open() }
            )
        )
    }

    /// Makes the sequence of the events; to be called once.
    func messages() -> Messages<Message> { source.messages }

    func deliver(_ message: Message) { source.deliver([message]) }

    /// Waits while the sequence has no room.
    func waitForRoom() async {
        while source.isFull {
            let promise = room.expect()
            // The loop may have taken the events before there was a promise.
            guard source.isFull, (try? await promise.value()) != nil else { return }
        }
    }

    /// Ends the sequence, behind the events that wait.
    func finish(throwing error: WaybillError? = nil) {
        source.finish(throwing: error)
        room.open()
    }
}
