package import Waybill

extension TransportEventSource {
    /// Reports what has become of a subscription.
    package func report(
        _ kind: TransportEvent.Kind,
        _ topic: String,
        qos: QoS? = nil,
        _ error: WaybillError?,
        since begun: ContinuousClock.Instant?
    ) {
        guard isObserved else { return }
        var event = TransportEvent(kind)
        (event.topic, event.qos, event.error) = (topic, qos, error)
        event.duration = begun?.duration(to: event.time)
        report(event)
    }

    /// Reports that the peer has acknowledged a send, or that the send has failed.
    package func reportSend(
        _ topic: String?,
        byteCount: Int,
        qos: QoS? = nil,
        _ error: (any Error)?,
        since begun: ContinuousClock.Instant?
    ) {
        report(
            error.map(WaybillError.init(reporting:)).map {
                .sendFailed(topic: topic, byteCount: byteCount, qos: qos, since: begun, error: $0)
            } ?? .acknowledged(topic: topic, byteCount: byteCount, qos: qos, since: begun)
        )
    }
}
