import EventStreamWire
import HTTPWire
import Waybill
import WaybillSession

// One attempt, over as many hosts, redirects and credentials as it takes.
extension SSEStream {
    /// One attempt, with fresh credentials, and with others should they be refused.
    func attempt(_ number: Int, _ source: MessageSource) async -> Outcome {
        guard let desk else { return await attempt(plan, number, source) }
        var occasion = ConnectOccasion(isReconnection: opened.result != nil)
        while true {
            var plan = plan
            do {
                try plan.show(await desk.credentials(for: occasion))
            } catch let error as WaybillError {
                return Outcome(error: error, isFinal: !error.isRetryable)
            } catch {
                return Outcome(error: nil, isFinal: true)
            }
            let outcome = await attempt(plan, number, source)
            guard let error = outcome.error, error.code == .unauthorized, occasion.refusal == nil
            else { return outcome }
            occasion.refusal = error
        }
    }

    /// One attempt: host after host until a stream opens, and until that is over.
    private func attempt(
        _ plan: HTTPRequestPlan,
        _ number: Int,
        _ source: MessageSource
    ) async -> Outcome {
        var last = Outcome(error: nil, isFinal: true)
        var isFinal = true
        var retryAfter: Duration?
        do {
            return try await links.first(for: plan) { plan in
                journal.noteConnecting(to: plan.target.host, attempt: number)
                last = await attempt(plan, source)
                journal.noteEnd(last.error)
                isFinal = isFinal && last.isFinal
                if let time = last.retryAfter { retryAfter = max(time, retryAfter ?? time) }
                if !last.wasOpen, let error = last.error, error.mayBeOneHostsOwn { throw error }
                return last
            }
        } catch let error as WaybillError {
            last.error = error
            last.isFinal = isFinal
            last.retryAfter = retryAfter
            return last
        } catch {
            return Outcome(error: nil, isFinal: true)
        }
    }

    /// One attempt at a host, redirects included, until its stream is over.
    private func attempt(_ plan: HTTPRequestPlan, _ source: MessageSource) async -> Outcome {
        var plan = plan
        for _ in 0...max(configuration.maximumRedirects, 0) {
            do {
                let closure = try await stream(plan, source)
                guard case .refused(let head, let body) = closure else {
                    return outcome(of: closure)
                }
                guard HTTPRequestPlan.isRedirect(head.status) else {
                    return Outcome(refusal: head, body)
                }
                plan = try plan.redirected(by: head)
            } catch let error as WaybillError {
                let refusal = error.underlying as? HTTPRefusal
                let status = refusal?.isFromProxy == false ? refusal?.status : nil
                return Outcome(status: status, error: error, isFinal: !error.isRetryable)
            } catch {
                return Outcome(error: nil, isFinal: true)
            }
        }
        let limit = configuration.maximumRedirects
        let error = WaybillError(.rejected, "more than \(limit) redirects")
        return Outcome(error: error, isFinal: true)
    }
}
