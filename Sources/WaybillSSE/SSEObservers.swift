import Waybill
import WireCore

/// The observers of the stream events of a transport.
final class SSEObservers: Sendable {
    typealias StreamEvent = SSETransport.StreamEvent

    /// The stream events that wait for one observer: the newest ones within its limits and those of the account.
    private final class Observer: Sendable {
        static let byteLimit = 1 << 20

        private let countLimit: Int
        private let account: MemoryAccount
        private let mailbox = Mailbox<StreamEvent>()
        /// The bytes of the events that the app has not got yet.
        private let byteCount = Locked(0)
        /// The events that were taken out of the mailbox and not given to the app yet.
        private let taken = Locked<ArraySlice<StreamEvent>>([])
        private let onEnd: @Sendable () -> Void

        init(keeping count: Int, in account: MemoryAccount, onEnd: @escaping @Sendable () -> Void) {
            countLimit = min(max(count, 1), 1_024)
            self.account = account
            self.onEnd = onEnd
        }

        deinit {
            let rest = byteCount.withLock { $0 }
            account.release(rest, droppable: rest)
            onEnd()
        }

        func append(_ event: StreamEvent) {
            let size = event.byteCount
            let dropped = mailbox.append { [countLimit, account] waiting in
                let takenCount = taken.withLock(\.count)
                return byteCount.withLock { byteCount in
                    waiting.append(event)
                    var (surplus, dropped) = (0, 0)
                    while waiting.count - surplus > 1,
                        takenCount + waiting.count - surplus > countLimit
                            || byteCount + size - dropped > Self.byteLimit
                            || !account.hasRoom(forDroppable: size, beside: -dropped, of: -dropped)
                    {
                        dropped += waiting[surplus].byteCount
                        surplus += 1
                    }
                    waiting.removeFirst(surplus)
                    byteCount += size - dropped
                    return dropped
                }
            }
            account.charge(size - dropped, droppable: size - dropped)
        }

        func finish() { mailbox.finish(.finished) }

        func next() async -> StreamEvent? {
            if let event = give() { return event }
            guard let batch = try? await mailbox.take() else { return nil }
            taken.withLock { $0 = batch[...] }
            return give()
        }

        private func give() -> StreamEvent? {
            guard let event = taken.withLock({ $0.popFirst() }) else { return nil }
            let size = event.byteCount
            byteCount.withLock { $0 -= size }
            account.release(size, droppable: size)
            return event
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

    private let account: MemoryAccount
    private let state = Locked(State())

    /// - Parameter account: Counts the stream events that wait.
    init(account: MemoryAccount) {
        self.account = account
    }

    /// Whether there is no observer.
    var isEmpty: Bool { state.withLock { $0.observers.isEmpty } }

    func observe(keeping count: Int) -> AsyncStream<StreamEvent> {
        let observer = state.withLock { state in
            state.last += 1
            let number = state.last
            let observer = Observer(keeping: count, in: account) { [weak self] in
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
