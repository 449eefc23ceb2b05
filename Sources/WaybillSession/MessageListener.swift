package import Waybill
import WireCore

/// One consumer of a subscription.
package struct MessageListener: Sendable {
    /// The source that hands the messages to the consumer.
    package let source: MessageSource
    /// Whether the app acknowledges each message itself.
    package let isManual: Bool

    package init(source: MessageSource, isManual: Bool) {
        self.source = source
        self.isManual = isManual
    }

    /// Makes a listener by the options of a subscription.
    ///
    /// - Parameters:
    ///   - command: The command of the subscription.
    ///   - buffering: The buffer policy, unless the command has one.
    ///   - topic: The topic of the subscription, for the events.
    ///   - events: Receives an event for messages that the policy drops.
    ///   - onLeave: Called, with the source, when its last consumer has left, and before that when the policy has ended
    ///     the subscription.
    ///   - onDrain: Waits until the app has acknowledged the messages that it has taken.
    ///   - pressure: Stops the reading of the connection while the buffer is full.
    package init(
        _ command: EntryCommand,
        buffering: BufferPolicy,
        topic: String? = nil,
        events: TransportEventSource? = nil,
        onLeave: @escaping @Sendable (MessageSource) -> Void,
        onDrain: @escaping @Sendable (MessageSource) async -> Void = { _ in },
        pressure: ReadingPressure
    ) {
        let itself = Locked<MessageSource?>(nil)
        let holder = pressure.account.add(MessageSource.holder(topic) { itself.withLock { $0 } })
        let policy = command[.buffering] ?? buffering
        let source = MessageSource(
            policy: policy,
            account: pressure.account,
            callbacks: .init(
                onTermination: {
                    guard let source = itself.withLock({ $0.take() }) else { return }
                    pressure.account.remove(holder)
                    pressure.forget(source)
                    onLeave(source)
                },
                onDrop: { count, byteCount in
                    events?.report(
                        .dropped(
                            count,
                            byteCount: byteCount,
                            topic: topic,
                            reason: TransportEvent.DropReason(policy.overflow)
                        )
                    )
                },
                onPressure: { pressure.update($0) },
                onOverflow: {
                    if let source = itself.withLock({ $0 }) { onLeave(source) }
                },
                onDrain: {
                    if let source = itself.withLock({ $0 }) { await onDrain(source) }
                }
            )
        )
        itself.withLock { $0 = source }
        self.init(source: source, isManual: command.isSet(.manualAcknowledgement))
    }
}
