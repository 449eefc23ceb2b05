import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Sends without a waiting task for each.
extension MQTTSender {
    /// Accepts a send if there is a connection; see ``Waybill/ImmediateTransport``.
    func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        guard request.command.code == .send, outbox == nil, !request.expectsReply,
            let connection = lifecycle.connected
        else { return .notNow }
        let end = reporting(request, request.command.qos, completion)
        do throws(WaybillError) {
            let publish = try MQTTPublishMapping.packet(request, version: version)
            guard publish.qos != .atMostOnce else {
                let pause = try connection.submitAtMostOnce(publish, request)
                // The submitting code yields to other tasks itself.
                if pause == .drain {
                    return .full { [driver = connection.driver] in
                        try await driver.wait(for: pause, of: request)
                    }
                }
                end(.success(Receipt(of: request.topic)))
                return .taken(withdraw: nil)
            }
            let call = MQTTPendingCall { answer in
                end(Result { try answer.get().receipt(of: request) }.about(request))
            }
            let limits = request.command.sendLimits
            try connection.submit(
                publish,
                request,
                timeout: limits.timeout,
                call,
                isSentOnce: limits.isSentOnce
            )
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
                events.reportSend(topic, byteCount: byteCount, qos: qos, nil, since: begun)
            case .failure(let error):
                events.reportSend(topic, byteCount: byteCount, qos: qos, error, since: begun)
            }
            completion(result)
        }
    }
}
