import EventStreamWire
import HTTPWire
import Waybill
import WaybillSession

/// One attempt to open a stream, over as many hosts, redirects and credentials as it takes.
struct SSEAttempt {
    let number: Int
    let occasion: ConnectOccasion
    let source: MessageSource
    let stream: SSEStream

    /// Asks one host after another until a stream opens, and waits for its end.
    func run() async -> SSEOutcome {
        var last = SSEOutcome.cancelled
        var request = stream.request
        var isFinal = true
        var retryAfter: Duration?
        do {
            let plan = try plan(of: stream.request)
            return try await stream.engine.links.first(for: plan) { plan in
                last = await ask(plan.target.address, request)
                request = Self.unadapted(stream.request)
                isFinal = isFinal && last.isFinal
                if let time = last.retryAfter { retryAfter = max(time, retryAfter ?? time) }
                if !last.wasOpen, !last.isOwn, !last.hasOwnURL, let error = last.error,
                    error.mayBeOneHostsOwn
                {
                    throw error
                }
                return last
            }
        } catch let error as WaybillError {
            last.error = error
            last.isFinal = isFinal
            last.retryAfter = retryAfter
            return last
        } catch {
            return .cancelled
        }
    }

    /// Asks one host, with fresh credentials, and with others when it refuses them.
    ///
    /// Credentials are fresh for each host: the host before may have refused earlier ones, and it may have taken any
    /// time, where the app holds the server back.
    private func ask(_ address: ServiceAddress, _ request: Request) async -> SSEOutcome {
        var occasion = occasion
        while true {
            var plan: HTTPRequestPlan
            do {
                plan = try await self.plan(request, for: &occasion)
            } catch let error as WaybillError {
                return SSEOutcome(error: error, isFinal: !error.isRetryable, isOwn: true)
            } catch {
                return .cancelled
            }
            let hasOwnURL = !plan.isForAnyHost
            if !hasOwnURL { plan.target.address = address }
            let host = plan.target.host
            stream.report { $0.connecting(to: host, attempt: number) }
            var outcome = await follow(plan)
            outcome.hasOwnURL = hasOwnURL
            stream.report { [error = outcome.error] in $0.ended(error) }
            guard let error = outcome.error, !outcome.wasOpen else {
                if outcome.wasOpen { occasion.noteSuccess() }
                return outcome
            }
            do {
                try await occasion.goOn(
                    after: error,
                    canReplaceCredentials: stream.credentials != nil,
                    wasAccepted: false,
                    isLate: error.code == .unauthorized && outcome.wasHeld
                )
            } catch let decided as WaybillError {
                outcome.error = decided
                // An error of an interceptor's own takes the place of the refusal.
                if decided.code != error.code {
                    outcome.isFinal = !decided.isRetryable
                    outcome.isOwn = true
                }
                return outcome
            } catch {
                return .cancelled
            }
        }
    }

    /// The request before its provider's interceptors, which adapt it again.
    ///
    /// At the first host the provider has run them a moment ago.
    private static func unadapted(_ request: Request) -> Request {
        guard var original = request.chain?.original else { return request }
        original.chain = Request.connecting(for: request).chain
        return original
    }

    /// The request, adapted by the interceptors, with credentials where these have set none.
    private func plan(
        _ request: Request,
        for occasion: inout ConnectOccasion
    ) async throws -> HTTPRequestPlan {
        let adapted = try await occasion.adapted(request, askingAt: nil)
        let check = stream.engine.check
        guard let provider = stream.credentials else { return try plan(of: adapted) }
        let stated = try check.address(statedBy: adapted)
        var credentials = try await provider.credentials(for: occasion)
        let offered = try credentials.url.map { url throws(WaybillError) in
            try check.addresses.address(of: url)
        }
        let (address, credentialsGo) = ServiceAddresses.settle(option: stated, credentials: offered)
        var plan = try plan(of: adapted, at: address)
        occasion.showsCredentials = stated == nil && offered != nil
        guard credentialsGo else { return plan }
        if let offered { credentials.complete(from: offered) }
        // The user name in the URL of the request comes before that of the source.
        if stated?.userName != nil { credentials.userName = nil }
        let isReplacing = request.chain == nil
        if try plan.show(credentials, replacing: isReplacing) { occasion.showsCredentials = true }
        return plan
    }

    private func plan(
        of request: Request,
        at address: ServiceAddress? = nil
    ) throws(WaybillError) -> HTTPRequestPlan {
        // The method of the entry, as it reached the transport.
        let method = stream.request.command[.method]
        return try stream.engine.check.plan(ofStream: request, method: method, at: address)
    }

    /// Asks one host, follows its redirects, and waits for the end of the stream.
    private func follow(_ plan: HTTPRequestPlan) async -> SSEOutcome {
        var plan = plan
        let limit = stream.engine.configuration.limits.redirects
        for _ in 0...max(limit, 0) {
            do {
                let (closure, wasOpen, wasHeld) =
                    try await SSEConnection.run(plan, for: stream, source)
                guard case .refused(let head, let body) = closure else {
                    return SSEOutcome(closure, wasOpen: wasOpen)
                }
                guard HTTPRequestPlan.isRedirect(head.status) else {
                    var outcome = SSEOutcome(refusal: head, body)
                    outcome.wasHeld = wasHeld
                    return outcome
                }
                plan = try plan.redirected(by: head)
            } catch let error as WaybillError {
                return SSEOutcome(error)
            } catch {
                return .cancelled
            }
        }
        let error = WaybillError(.rejected, "more than \(limit) redirects")
        return SSEOutcome(error: error, isFinal: true)
    }
}
