package import Waybill
import WireCore

extension MockTransport {
    /// Does what the rules say, without making the caller wait.
    package func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        guard rules.connectivity == .assumed, case .send = request.command, !outage.isOn else {
            return .notNow
        }
        do throws(WaybillError) {
            try rules.check(request)
            let outcome = try note(request)
            let begun = reporter.events.timestamp
            reporter.reportBegin(of: request)
            if case .receipt(var receipt) = outcome {
                receipt.topic = receipt.topic ?? request.topic
                reporter.reportSuccess(of: request, receipt, since: begun)
                completion(.success(receipt))
                return .taken(withdraw: nil)
            }
            let carryingOut = Task { @concurrent in
                do {
                    let receipt = try await carryOut(outcome, request)
                    reporter.reportSuccess(of: request, receipt, since: begun)
                    completion(.success(receipt))
                } catch {
                    reporter.reportFailure(of: request, error as? WaybillError, since: begun)
                    completion(.failure(error))
                }
            }
            return .taken { carryingOut.cancel() }
        } catch {
            completion(.failure(error))
            return .taken(withdraw: nil)
        }
    }
}
