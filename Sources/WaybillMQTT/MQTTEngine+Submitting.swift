import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Sends without a waiting task for each.
extension MQTTEngine {
    /// Accepts a send if there is a connection; see ``Waybill/ImmediateTransport``.
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
                // The submitting code yields to other tasks itself.
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
            // The connection was just ending, and nothing was sent.
            if error.code == .notConnected { return .notNow }
            end(.failure(error.about(request)))
            return .taken(withdraw: nil)
        }
    }

    /// Returns a completion that also reports the result of a send, if there are observers.
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
    /// Publishes with QoS 0.
    ///
    /// - Returns: The pause that the caller has to make before the next message.
    /// - Throws: `WaybillError` if nothing was sent.
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
