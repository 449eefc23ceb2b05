#if os(Linux)
    import Synchronization
#endif

/// A flag that is raised once and read often.
///
/// A read costs one load. On Apple platforms it costs an uncontended lock, because the standard library's atomics need
/// macOS 15.
package final class RaisedFlag: Sendable {
    #if canImport(Darwin)
        private let state = Locked(false)
    #else
        private let state = Atomic(false)
    #endif

    /// Makes a flag that is not raised.
    package init() {}

    package var isRaised: Bool {
        #if canImport(Darwin)
            state.withLock { $0 }
        #else
            state.load(ordering: .acquiring)
        #endif
    }

    /// Raises the flag permanently.
    package func raise() {
        #if canImport(Darwin)
            state.withLock { $0 = true }
        #else
            state.store(true, ordering: .releasing)
        #endif
    }
}
