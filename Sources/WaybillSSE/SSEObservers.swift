import Waybill
import WireCore

/// The observers of the stream events of a transport.
final class SSEObservers: Sendable {
    typealias StreamEvent = SSETransport.StreamEvent

    /// The stream events that wait for one observer: the newest ones within two limits.
    private final class Observer: Sendable {
        static let byteLimit = 1 << 20

        private let countLimit: Int
        private let mailbox = Mailbox<StreamEvent>()
        /// The bytes of the events in the mailbox.
        private let byteCount = Locked(0)
        /// The events that were taken out of the mailbox and not given to the app yet.
        private let taken = Locked<ArraySlice<StreamEvent>>([])
        private let onEnd: @Sendable () -> Void

        init(keeping count: Int, onEnd: @escaping @Sendable () -> Void) {
            countLimit = min(max(count, 1), 1_024)
            self.onEnd = onEnd
        }

        deinit { onEnd() }

        func append(_ event: StreamEvent) {
            mailbox.append { [countLimit] waiting in
                byteCount.withLock { byteCount in
                    waiting.append(event)
                    byteCount += event.byteCount
                    var surplus = 0
                    while waiting.count - surplus > countLimit
                        || byteCount > Self.byteLimit && waiting.count - surplus > 1
                    {
                        byteCount -= waiting[surplus].byteCount
                        surplus += 1
                    }
                    waiting.removeFirst(surplus)
                }
            }
        }

        func finish() { mailbox.finish(.finished) }

        func next() async -> StreamEvent? {
            if let event = taken.withLock({ $0.popFirst() }) { return event }
            let batch = try? await mailbox.take { byteCount.withLock { $0 = 0 } }
            guard let batch else { return nil }
            return taken.withLock { taken in
                taken = batch[...]
                return taken.popFirst()
            }
        }
    }

    private struct Weak: Sendable {
        weak var observer: Observer?
    }

    private struct State: Sendable {
        var observers: [UInt64: Weak] = [:]
        var last: UInt64 = 0
        var lastSerial: UInt64 = 0
        var isOver = false
    }

    private let state = Locked(State())

    /// Whether there is no observer.
    var isEmpty: Bool { state.withLock { $0.observers.isEmpty } }

    func observe(keeping count: Int) -> AsyncStream<StreamEvent> {
        let observer = state.withLock { state in
            state.last += 1
            let number = state.last
            let observer = Observer(keeping: count) { [weak self] in
                self?.state.withLock { $0.observers[number] = nil }
            }
            if state.isOver {
                observer.finish()
            } else {
                state.observers[number] = Weak(observer: observer)
            }
            return observer
        }
        // The stream alone keeps the observer.
        return AsyncStream { await observer.next() }
    }

    /// Makes the number of the next stream event or message.
    func makeSerial() -> UInt64 {
        state.withLock { state in
            state.lastSerial += 1
            return state.lastSerial
        }
    }

    /// Reports an event, which is made with its serial if there is an observer.
    func report(_ event: (UInt64) -> StreamEvent) {
        let observers = all()
        guard !observers.isEmpty else { return }
        let event = event(makeSerial())
        for observer in observers { observer.append(event) }
    }

    func finish() {
        state.withLock { $0.isOver = true }
        for observer in all() { observer.finish() }
    }

    /// Locked without letting go of an observer, whose end takes the lock.
    private func all() -> [Observer] {
        state.withLock { $0.observers.valuesInKeyOrder }.compactMap(\.observer)
    }
}

extension SSETransport.StreamEvent {
    /// The bytes that it keeps in memory, about.
    fileprivate var byteCount: Int {
        switch self {
        case .opened(let topic, let response, _):
            response.headers.reduce(topic.utf8.count + 256) {
                $0 + $1.name.utf8.count + $1.value.utf8.count
            }
        case .comment(let topic, let text, _): topic.utf8.count + text.utf8.count + 64
        }
    }
}
