import EventStreamWire
import HTTPWire
import Waybill
import WaybillSession

// One attempt, with its hosts, redirects and credentials.
extension SSEStream {
    /// Makes one attempt: tries the hosts in order until a stream opens, and returns at its end.
    func attempt(_ number: Int, _ source: MessageSource) async -> Outcome {
        var last = Outcome(error: nil, isFinal: true)
        var isFinal = true
        var retryAfter: Duration?
        do {
            return try await links.first(for: try makePlan(request)) { plan in
                last = await attempt(at: plan.target.address, number, source)
                isFinal = isFinal && last.isFinal
                if let time = last.retryAfter { retryAfter = max(time, retryAfter ?? time) }
                let isHosts = !last.wasOpen && !last.isOwn
                if isHosts, let error = last.error, error.mayBeOneHostsOwn { throw error }
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

    /// Requests the stream from one host, with fresh credentials, and with other ones after a refusal.
    ///
    /// Each host gets fresh credentials: if the app stops reading, the previous host may have taken any time.
    private func attempt(
        at address: ServiceAddress,
        _ number: Int,
        _ source: MessageSource
    ) async -> Outcome {
        let wasOpened = opened.result != nil
        var occasion = ConnectOccasion(
            isReconnection: wasOpened,
            isUnattended: wasOpened || isPatient
        )
        while true {
            var plan: HTTPRequestPlan
            do { plan = try await self.plan(for: &occasion) } catch let error as WaybillError {
                return Outcome(error: error, isFinal: !error.isRetryable, isOwn: true)
            } catch {
                return Outcome(error: nil, isFinal: true)
            }
            plan.target.address = address
            journal.noteConnecting(to: plan.target.host, attempt: number)
            var outcome = await attempt(plan, source)
            journal.noteEnd(outcome.error)
            guard let error = outcome.error, !outcome.wasOpen else {
                if outcome.wasOpen { occasion.noteSuccess() }
                return outcome
            }
            do {
                try await occasion.goOn(
                    after: error,
                    canReplaceCredentials: desk != nil,
                    wasAccepted: false,
                    isLate: error.code == .unauthorized && wasHeldBeforeAnswer
                )
            } catch let decided as WaybillError {
                outcome.error = decided
                // The error of an interceptor has replaced the refusal.
                if decided.code != error.code {
                    outcome.isFinal = !decided.isRetryable
                    outcome.isOwn = true
                }
                return outcome
            } catch {
                return Outcome(error: nil, isFinal: true)
            }
        }
    }

    /// Returns the HTTP request of an attempt.
    ///
    /// The interceptors set credentials first. The transport's own source sets those that the interceptors left open.
    private func plan(for occasion: inout ConnectOccasion) async throws -> HTTPRequestPlan {
        var plan = try makePlan(await occasion.adapted(request, askingAt: nil))
        guard let desk else { return plan }
        let credentials = try await desk.credentials(for: occasion)
        occasion.showsCredentials = try plan.show(credentials, replacing: request.chain == nil)
        return plan
    }

    /// Sends a request and follows redirects, until the stream ends.
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
