public import Waybill
import WireCore

extension Recorder {
    /// Records the states and the events of a transport, from now on.
    ///
    /// States end when the transport is shut down, and events when it is gone. Both end when the recorder is closed or
    /// released, and when the returned task is cancelled. The transport is not kept alive.
    ///
    /// The time of a state or an event is that of its arrival at the recorder, which may be a moment later.
    ///
    /// - Parameters:
    ///   - transport: The transport.
    ///   - label: The label of the records of states; events have that of the transport's configuration.
    /// - Returns: The task that observes.
    @discardableResult
    public func observe(_ transport: some Transport, label: String? = nil) -> Task<Void, Never> {
        let states = Self.each(of: transport.states) { [weak self] state in
            self?.record(state, label: label)
        }
        let events = Self.each(of: transport.events) { [weak self] event in self?.record(event) }
        let number = beginObservation()
        let observation = Task { [weak self] in
            await withTaskCancellationHandler {
                await states.value
                await events.value
            } onCancel: {
                states.cancel()
                events.cancel()
            }
            self?.endObservation(number)
        }
        keep(observation, as: number)
        return observation
    }

    private static func each<Elements: AsyncSequence & Sendable>(
        of elements: Elements,
        _ body: @escaping @Sendable (Elements.Element) -> Void
    ) -> Task<Void, Never> {
        // Made now, so that nothing is missed before the task starts.
        let observed = elements.makeAsyncIterator()
        return Task {
            var iterator = observed
            // `next(isolation:)` and the type of the error are there since macOS 15.
            while let element = try? await iterator.next() { body(element) }
        }
    }

    private func record(_ state: ConnectionState, label: String?) {
        append(.state, name: state.name, label: label, text: "\(state)".escaped)
    }

    private func record(_ event: TransportEvent) {
        append(
            .event,
            name: event.kind.name,
            topic: event.topic?.withoutQuery,
            byteCount: event.byteCount ?? 0,
            label: event.label,
            text: "\(event)"
        )
    }
}

extension ConnectionState {
    /// The name of the case.
    fileprivate var name: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .connected: "connected"
        case .waiting: "waiting"
        case .paused: "paused"
        case .disconnected: "disconnected"
        }
    }
}
