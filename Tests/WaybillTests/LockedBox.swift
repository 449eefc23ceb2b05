import Synchronization

/// A value that tests share between tasks.
final class LockedBox<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) {
        mutex = Mutex(value)
    }

    var value: Value { mutex.withLock { $0 } }

    func change(_ body: (inout Value) -> Void) {
        mutex.withLock { value in
            var copy = value
            body(&copy)
            value = copy
        }
    }
}
