import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// PUBLISH, with and without waiting for its acknowledgement.
extension MQTTConnection {
    /// Publishes, waits for the acknowledgement of the quality of service, and reports the send if there are observers.
    func publish(
        _ publish: MQTTPublish,
        _ request: Request,
        timeout: Duration?,
        isObserved: Bool,
        storedNumber: UInt64? = nil,
        isSentOnce: Bool = false,
        lastsUntil: WireInstant? = nil
    ) async throws -> Receipt {
        guard publish.qos != .atMostOnce else {
            let pause = try submitAtMostOnce(publish, request, isObserved: isObserved)
            if pause != .none { try await driver.wait(for: pause, of: request) }
            return Receipt(of: request.topic)
        }
        do {
            let call = MQTTPendingCall(willSucceed: session.removal(of: storedNumber))
            let answer = try await call.answer(
                sending: { () throws(WaybillError) in
                    try submit(
                        publish,
                        request,
                        timeout: timeout,
                        call,
                        isObserved: isObserved,
                        storedNumber: storedNumber,
                        isSentOnce: isSentOnce,
                        lastsUntil: lastsUntil
                    )
                },
                withdrawing: { [session] in session.cancel($0) }
            )
            return try answer.receipt(of: request)
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    /// Publishes with QoS 0.
    ///
    /// Inlined, because a call costs one percent of a publish.
    ///
    /// - Returns: The pause that the caller has to make before the next message.
    /// - Throws: `WaybillError` if nothing was sent.
    @inline(__always)
    func submitAtMostOnce(
        _ publish: MQTTPublish,
        _ request: Request,
        isObserved: Bool = true
    ) throws(WaybillError) -> SendPause {
        do throws(MQTTSendError) {
            return try driver.send { (core, now) throws(MQTTSendError) in
                try core.publishAtMostOnce(publish, payload: request.body, at: now)
                if isObserved { reportSent(publish, request) }
            }.pause
        } catch {
            throw MQTTErrorMapping.error(error, request)
        }
    }

    /// Publishes without waiting.
    ///
    /// The answer ends the call.
    ///
    /// - Throws: `WaybillError` if nothing was sent.
    func submit(
        _ publish: MQTTPublish,
        _ request: Request,
        timeout: Duration?,
        _ call: any MQTTCall,
        isObserved: Bool = true,
        storedNumber: UInt64? = nil,
        isSentAnew: Bool = false,
        isSentOnce: Bool = false,
        suspicion: ReplaySuspicion.Record = .clear,
        lastsUntil: WireInstant? = nil
    ) throws(WaybillError) {
        do throws(MQTTSendError) {
            try driver.withCore { (core, now) throws(MQTTSendError) in
                if publish.qos == .atMostOnce {
                    try core.publishAtMostOnce(publish, payload: request.body, at: now)
                } else {
                    let message = MQTTOutgoingMessage(
                        publish: publish,
                        payload: request.body,
                        storedNumber: storedNumber,
                        isSentAnew: isSentAnew,
                        isSentOnce: isSentOnce,
                        suspicion: suspicion,
                        lastsUntil: lastsUntil
                    )
                    try core.publish(message, call: call, timeout: timeout, at: now)
                }
                if isObserved { reportSent(publish, request) }
            }
        } catch {
            throw MQTTErrorMapping.error(error, request)
        }
        if publish.qos == .atMostOnce {
            (call as? MQTTPendingCall)?.succeed(.published(.success, MQTTProperties()))
        }
    }

    /// Reports a sent message.
    ///
    /// Called with the core's lock held, so that no acknowledgement is reported before it.
    private func reportSent(_ publish: MQTTPublish, _ request: Request) {
        subscriptions.events.report(
            .sent(
                topic: request.topic,
                byteCount: request.body.count,
                qos: MQTTMapping.quality(publish.qos)
            )
        )
    }
}
