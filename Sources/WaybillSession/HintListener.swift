package import Waybill
package import WaybillLink
import WireCore

/// Listens, for a transport, to the connection hints of the app and to the platform's network changes.
package final class HintListener: Sendable {
    private struct State: Sendable {
        var subscriptions: [RequestHandle] = []
        var reachability: (any Reachability)?
        var reach: NetworkReach?
        var isOver = false
    }

    private let state = Locked(State())

    package init() {}

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - sources: The app's sources of hints.
    ///   - environment: Provides the platform's network changes.
    ///   - tell: Receives each hint.
    package func start(
        _ sources: [any ConnectionHintSource],
        in environment: LinkEnvironment,
        _ tell: @escaping @Sendable (ConnectionHint) -> Void
    ) {
        let subscriptions = sources.map { $0.start(tell) }
        let reachability = environment.makeReachability.map { $0() }
        let isOver = state.withLock { state in
            state.subscriptions = subscriptions
            state.reachability = reachability
            return state.isOver
        }
        reachability?.start { [weak self] reach in
            if self?.isReason(reach) == true { tell(.retryNow) }
        }
        if isOver { stop() }
    }

    /// Whether a change of the network is a reason for an attempt.
    ///
    /// The first known state is no change.
    private func isReason(_ reach: NetworkReach) -> Bool {
        state.withLock { state in
            defer { state.reach = reach }
            guard let before = state.reach, reach.isReachable else { return false }
            return !before.isReachable || before.interface != reach.interface
        }
    }

    /// Stops listening.
    ///
    /// Further calls do nothing.
    package func stop() {
        let (subscriptions, reachability) = state.withLock { state in
            defer {
                state.subscriptions = []
                state.reachability = nil
                state.isOver = true
            }
            return (state.subscriptions, state.reachability)
        }
        for subscription in subscriptions { subscription.cancel() }
        reachability?.stop()
    }

    deinit { stop() }
}
