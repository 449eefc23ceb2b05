import Waybill
import WaybillSession

/// Reports the requests of a mock: as states of its connection, and as events.
struct MockReporter: Sendable {
    let states = ConnectionStateSource()
    let events = TransportEventSource()

    func reportDisconnected(_ cause: WaybillError?) {
        states.report(.disconnected(cause: cause))
        events.report(.disconnected(from: nil, since: nil, cause: cause))
    }

    /// The connection is away, and comes back.
    func reportWaiting(for delay: Duration, _ cause: WaybillError) {
        states.report(.waiting(for: delay, cause: cause))
        events.report(.disconnected(from: nil, since: nil, cause: cause))
        events.report(.waiting(until: .now + delay, attempt: 1, cause: cause))
    }

    /// The connection is back.
    func reportRestored() {
        states.report(.connecting(attempt: 1))
        events.report(.connecting(to: nil))
        states.report(.connected)
        events.report(.connected(to: nil, since: nil))
    }

    /// A request has come.
    func reportBegin(of request: Request) {
        switch request.command.code {
        case .connect:
            states.report(.connecting(attempt: 1))
            events.report(.connecting(to: nil))
        case .send:
            let byteCount = request.body.count
            events.report(
                .sent(topic: request.topic, byteCount: byteCount, qos: request.command.qos)
            )
        default: break
        }
    }

    /// A request was confirmed.
    func reportSuccess(
        of request: Request,
        _ receipt: Receipt,
        since begun: ContinuousClock.Instant?
    ) {
        let (topic, byteCount) = (request.topic, request.body.count)
        switch request.command.code {
        case .connect:
            states.report(.connected)
            let isResumed = receipt[.sessionPresence] ?? false
            events.report(.connected(to: nil, since: begun, isResumed: isResumed))
        case .disconnect: reportDisconnected(nil)
        case .send:
            events.reportSend(
                topic,
                byteCount: byteCount,
                qos: request.command.qos,
                nil,
                since: begun
            )
        case .subscribe:
            let granted = receipt.grantedQoS
            events.report(.subscribed(topic: topic, since: begun, qos: granted))
        default: break
        }
    }

    /// A request has failed, or was cancelled, which is no error.
    func reportFailure(
        of request: Request,
        _ error: WaybillError?,
        since begun: ContinuousClock.Instant?
    ) {
        let cause = error ?? WaybillError(.notConnected, "the request was cancelled")
        let (topic, byteCount) = (request.topic, request.body.count)
        switch request.command.code {
        case .connect:
            states.report(.disconnected(cause: error))
            events.report(.connectionFailed(to: nil, since: begun, error: cause))
        case .send:
            events.reportSend(
                topic,
                byteCount: byteCount,
                qos: request.command.qos,
                cause,
                since: begun
            )
        case .subscribe:
            events.report(.subscriptionRefused(topic: topic, since: begun, error: cause))
        default: break
        }
    }
}
