package import WireCore

/// Those who want every message that comes to a transport, whoever has subscribed to it.
///
/// They look on: what they get is a copy, which holds up no acknowledgement and no peer. Connections come and go; only
/// the end of the transport ends what they see.
package final class CatchAll: Sendable {
    private struct State: Sendable {
        var sources: [MessageSource] = []
        var isOver = false
    }

    private let state = Locked(State())
    private let events: TransportEventSource
    private let account: MemoryAccount

    /// - Parameters:
    ///   - events: Where it is reported what a policy has dropped.
    ///   - account: What is charged for messages that wait.
    package init(
        reportingTo events: TransportEventSource,
        account: MemoryAccount = MemoryAccount()
    ) {
        self.events = events
        self.account = account
    }

    deinit { end() }

    /// Who looks on.
    package var sources: [MessageSource] { state.withLock { $0.sources } }

    /// Lets somebody look on.
    ///
    /// - Parameter policy: What happens when messages come faster than they are taken.
    /// - Returns: Every message from now on.
    /// - Throws: `unsupported` for a policy that holds the peer back, `shutDown`.
    package func listen(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        guard policy.overflow != .holdBack else {
            throw WaybillError(.unsupported, "who looks on holds nobody back")
        }
        let itself = Locked<MessageSource?>(nil)
        let source = MessageSource(
            policy: policy,
            account: account,
            callbacks: .init(
                onTermination: { [weak self] in
                    guard let source = itself.withLock({ $0.take() }) else { return }
                    self?.state.withLock { $0.sources.removeAll { $0 === source } }
                },
                onDrop: { [events] count, byteCount in
                    let reason = TransportEvent.DropReason(policy.overflow)
                    events.report(.dropped(count, byteCount: byteCount, topic: nil, reason: reason))
                }
            )
        )
        itself.withLock { $0 = source }
        let messages = source.messages
        let isOver = state.withLock { state in
            if !state.isOver { state.sources.append(source) }
            return state.isOver
        }
        guard !isOver else { throw WaybillError(.shutDown, "the transport was shut down") }
        return messages
    }

    /// Shows messages to everybody.
    package func deliver(_ batch: [Message]) {
        let sources = sources
        guard !sources.isEmpty else { return }
        let copies = batch.map(\.unacknowledged)
        for source in sources { source.deliver(copies) }
    }

    /// Ends every stream: the transport is shut down.
    package func end() {
        let sources = state.withLock { state in
            state.isOver = true
            defer { state.sources = [] }
            return state.sources
        }
        for source in sources { source.finish() }
    }
}

extension Message {
    /// A copy whose fate the peer hears nothing of.
    package var unacknowledged: Message {
        var copy = self
        copy.delivery = nil
        return copy
    }
}
