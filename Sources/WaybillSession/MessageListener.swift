package import Waybill
import WireCore

/// Someone who listens to a subscription.
package struct MessageListener: Sendable {
    /// Where the messages go.
    package let source: MessageSource
    /// Whether the app acknowledges by hand.
    package let isManual: Bool

    package init(source: MessageSource, isManual: Bool) {
        self.source = source
        self.isManual = isManual
    }

    /// A listener as the options of a subscription say.
    ///
    /// - Parameters:
    ///   - options: The options.
    ///   - buffering: What happens when messages come faster than they are taken, unless the options say.
    ///   - topic: What is subscribed to, for the events.
    ///   - events: Where it is reported what the policy has dropped.
    ///   - onLeave: Called once, with the source, when nobody listens any longer.
    ///   - pressure: Who holds the peer back.
    ///   - onOverflow: Called, with the source, when the policy has ended the subscription, before those who listen
    ///     leave.
    package init(
        _ options: SubscribeOptions,
        buffering: BufferPolicy,
        topic: String? = nil,
        events: TransportEventSource? = nil,
        onLeave: @escaping @Sendable (MessageSource) -> Void,
        pressure: ReadingPressure,
        onOverflow: @escaping @Sendable (MessageSource) -> Void = { _ in }
    ) {
        let itself = Locked<MessageSource?>(nil)
        let policy = options.buffering ?? buffering
        let source = MessageSource(
            policy: policy,
            account: pressure.account,
            callbacks: .init(
                onTermination: {
                    guard let source = itself.withLock({ $0.take() }) else { return }
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
                    if let source = itself.withLock({ $0 }) { onOverflow(source) }
                }
            )
        )
        itself.withLock { $0 = source }
        self.init(source: source, isManual: options.acknowledgement == .manual)
    }
}
