import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Sends without a waiting task for each.
extension STOMPEngine {
    /// Accepts a send if there is a connection; see ``Waybill/ImmediateTransport``.
    func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        guard request.command.code == .send, outbox == nil, !request.expectsReply,
            let connection = lifecycle.connected
        else { return .notNow }
        var end = completion
        do throws(WaybillError) {
            try STOMPMapping.checkBody(request)
            if !request.command.isPlain {
                try STOMPMapping.checkIdentifiers(request, configuration)
            }
            let send = try STOMPMapping.send(request, configuration)
            end = reporting(request, completion)
            guard send.asksForReceipt else {
                let pause = try connection.submitUnconfirmed(send, request)
                // The submitting code yields to other tasks itself.
                if pause == .drain {
                    return .full { [driver = connection.driver] in
                        try await driver.wait(for: pause, of: request)
                    }
                }
                end(.success(Receipt(of: request.topic)))
                return .taken(withdraw: nil)
            }
            let call = STOMPPendingCall { [end] answer in
                end(answer.map { STOMPMapping.receipt(request, $0) }.about(request))
            }
            guard try connection.submit(send, request, call) else {
                // The server sends no receipts.
                return .full { [driver = connection.driver] in
                    try await driver.wait(for: .drain, of: request)
                }
            }
            return .taken { if call.withdraw() { connection.cancel(call) } }
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
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> @Sendable (Result<Receipt, any Error>) -> Void {
        guard let begun = events.timestamp else { return completion }
        return { [events] result in
            let (topic, byteCount) = (request.topic, request.body.count)
            switch result {
            // A RECEIPT has a header at least.
            case .success(let receipt) where receipt.headers.isEmpty: break
            case .success: events.reportSend(topic, byteCount: byteCount, nil, since: begun)
            case .failure(let error):
                events.reportSend(topic, byteCount: byteCount, error, since: begun)
            }
            completion(result)
        }
    }
}
