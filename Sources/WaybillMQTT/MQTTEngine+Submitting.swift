import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Sends that nobody waits for one by one.
extension MQTTEngine {
    /// Takes a send over, if there is a connection; see ``Waybill/ImmediateTransport``.
    func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        guard case .send(let options) = request.command, !keepsMessages, !request.expectsReply,
            let connection = lifecycle.connected
        else { return .notNow }
        let end = reporting(request, options.qos, completion)
        do throws(WaybillError) {
            let publish = try MQTTMapping.publish(request, options, version: version)
            guard publish.qos != .atMostOnce else {
                let pause = try connection.submitAtMostOnce(publish, request)
                // Whoever submits lets others have their turn by itself.
                if pause == .drain {
                    return .full { [driver = connection.driver] in try await driver.wait(for: pause)
                    }
                }
                end(.success(Receipt(of: request.topic)))
                return .taken(withdraw: nil)
            }
            let call = MQTTPendingCall { answer in
                end(Result { try MQTTConnection.receipt(request, answer.get()) }.about(request))
            }
            try connection.submit(publish, request, timeout: options.timeout, call)
            return .taken { [session] in if call.withdraw() { session.cancel(call) } }
        } catch {
            // It came upon a connection that was just ending, and was not sent.
            if error.code == .notConnected { return .notNow }
            end(.failure(error.about(request)))
            return .taken(withdraw: nil)
        }
    }

    /// Has what becomes of a send reported, if somebody observes.
    private func reporting(
        _ request: Request,
        _ qos: QoS,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> @Sendable (Result<Receipt, any Error>) -> Void {
        guard let begun = events.timestamp else { return completion }
        return { [events] result in
            let (topic, byteCount) = (request.topic, request.body.count)
            switch result {
            case .success where qos == .atMostOnce: break
            case .success:
                events.report(
                    .acknowledged(topic: topic, byteCount: byteCount, qos: qos, since: begun)
                )
            case .failure(let error):
                events.report(
                    .sendFailed(
                        topic: topic,
                        byteCount: byteCount,
                        qos: qos,
                        since: begun,
                        error: WaybillError(reporting: error)
                    )
                )
            }
            completion(result)
        }
    }
}

extension MQTTConnection {
    /// Publishes at most once.
    ///
    /// - Returns: What to wait for before the next message.
    /// - Throws: `WaybillError` when nothing was sent.
    func submitAtMostOnce(
        _ publish: MQTTPublish,
        _ request: Request
    ) throws(WaybillError) -> SendPause {
        do throws(MQTTSendError) {
            return try driver.send { (core, now) throws(MQTTSendError) in
                try core.publishAtMostOnce(publish, payload: request.body, at: now)
                reportSent(publish, request)
            }.pause
        } catch {
            throw MQTTMapping.error(error, request)
        }
    }
}
