/// The event sources to which a token cache reports: those of all requests that have asked it for a token.
///
/// The references are weak.
struct TokenOutlets: Sendable {
    private struct Outlet: Sendable {
        weak var source: TransportEventSource?
    }

    private var outlets: [Outlet] = []

    /// The sources that still exist.
    var sources: [TransportEventSource] { outlets.compactMap(\.source) }

    /// Adds a source, unless it is already present.
    mutating func note(_ source: TransportEventSource?) {
        guard let source, !outlets.contains(where: { $0.source === source }) else { return }
        outlets.removeAll { $0.source == nil }
        outlets.append(Outlet(source: source))
    }
}
