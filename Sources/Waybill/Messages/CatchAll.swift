package import WireCore

/// The streams of every message that arrives at a transport, whichever subscription it belongs to.
///
/// Each stream gets copies: it delays no acknowledgement and stops no reading from the peer. The streams outlive
/// connections and end when the transport is shut down.
package final class CatchAll: Sendable {
    private struct State: Sendable {
        var sources: [MessageSource] = []
        var isOver = false
    }

    private let state = Locked(State())
    private let events: TransportEventSource
    package let account: MemoryAccount

    /// - Parameters:
    ///   - events: The source to which drops are reported.
    ///   - account: The account that waiting messages are charged to.
    package init(
        reportingTo events: TransportEventSource,
        account: MemoryAccount = MemoryAccount()
    ) {
        self.events = events
        self.account = account
    }

    deinit { end() }

    /// The present streams.
    package var sources: [MessageSource] { state.withLock { $0.sources } }

    /// Adds a stream.
    ///
    /// - Parameter policy: What happens when messages arrive faster than the consumer takes them.
    /// - Returns: Every message from now on.
    /// - Throws: `unsupported` for a policy that holds the peer back, `shutDown`.
    package func listen(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        guard policy.overflow != .holdBack else {
            throw WaybillError(
                .unsupported,
                "a listener for all messages cannot hold the peer back: choose another buffer policy"
            )
        }
        let itself = Locked<MessageSource?>(nil)
        let holder = account.add(MessageSource.holder(nil) { itself.withLock { $0 } })
        let source = MessageSource(
            policy: policy,
            account: account,
            callbacks: .init(
                onTermination: { [weak self, account] in
                    guard let source = itself.withLock({ $0.take() }) else { return }
                    account.remove(holder)
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

    /// Hands copies of messages to every stream.
    package func deliver(_ batch: [Message]) {
        let sources = sources
        guard !sources.isEmpty else { return }
        let copies = batch.map(\.unacknowledged)
        for source in sources { source.deliver(copies) }
    }

    /// Ends every stream, because the transport is shut down.
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
    /// A copy without an acknowledgement to the peer.
    package var unacknowledged: Message {
        var copy = self
        copy.delivery = nil
        copy.isBoundedByPeer = false
        return copy
    }
}
