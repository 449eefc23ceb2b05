/// Where a token's keeper reports what it does: the transports of all requests that have asked it for a token.
///
/// None is kept alive by that.
struct TokenOutlets: Sendable {
    private struct Outlet: Sendable {
        weak var source: TransportEventSource?
    }

    private var outlets: [Outlet] = []

    /// Those that are still there.
    var sources: [TransportEventSource] { outlets.compactMap(\.source) }

    /// Adds one, unless it is there already.
    mutating func note(_ source: TransportEventSource?) {
        guard let source, !outlets.contains(where: { $0.source === source }) else { return }
        outlets.removeAll { $0.source == nil }
        outlets.append(Outlet(source: source))
    }
}
