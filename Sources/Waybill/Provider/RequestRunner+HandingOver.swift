import WireCore

/// The receiver of the outcome of a request that was handed over.
protocol RequestOutcome: Sendable {
    /// Takes the outcome; only the first call counts.
    func end(_ result: Result<Receipt, any Error>)

    /// Keeps a closure that withdraws the request until there is an outcome; if the request was cancelled, calls it at
    /// once.
    func track(_ withdraw: @escaping @Sendable () -> Void)
}

// Requests that are sent in order without waiting for the outcome of each.
extension RequestRunner {
    /// Hands a request to the transport at once, if no interceptor has to adapt it and there is a connection.
    ///
    /// - Returns: False if nothing was done.
    func handOverNow(_ request: Request, to outcome: some RequestOutcome) async -> Bool {
        guard isPlain, !request.hasRetry, let immediate else { return false }
        switch immediate.submit(request, { outcome.end($0) }) {
        case .notNow: return false
        case .taken(let withdraw):
            if let withdraw { outcome.track(withdraw) }
        case .full(let wait):
            do {
                try await wait()
                outcome.end(.success(Receipt(of: request.topic)))
            } catch {
                outcome.end(.failure(error))
            }
        }
        return true
    }

    /// Runs the interceptors and hands the request to the transport.
    ///
    /// Returns when the next request may follow. A request that fails after it was handed over and that an interceptor
    /// retries loses its place in the order.
    ///
    /// - Parameters:
    ///   - original: The entry's request.
    ///   - outcome: The receiver of the outcome, possibly after this method has returned.
    func handOver(_ original: Request, to outcome: some RequestOutcome) async {
        if original.command.code == .disconnect {
            return await performInTurn(original, to: outcome)
        }
        guard let immediate else { return await performInTurn(original, to: outcome) }
        var context = interception.context(of: original)
        while true {
            do {
                let begun = interception.chain.seesReceipts ? interception.elapsed() : .zero
                let request = try await interception.adapted(original, context)
                switch submit(request, of: original, context, begun, by: immediate, to: outcome) {
                case .notNow:
                    outcome.end(.success(try await performOnce(request, context, begun)))
                case .taken(let withdraw):
                    if let withdraw { outcome.track(withdraw) }
                case .full(let wait):
                    try await wait()
                    let receipt = Receipt(of: request.topic)
                    noteReceipt(receipt, of: request, context, begun)
                    outcome.end(.success(receipt))
                }
                return
            } catch let error as WaybillError {
                do {
                    let error = configuration.withServiceError(error)
                    try await interception.waitForRetry(original, after: error, &context)
                } catch {
                    return outcome.end(.failure(error))
                }
            } catch {
                return outcome.end(.failure(error))
            }
        }
    }

    private func performInTurn(_ original: Request, to outcome: some RequestOutcome) async {
        do {
            outcome.end(.success(try await performAdapted(original)))
        } catch {
            outcome.end(.failure(error))
        }
    }

    private func submit(
        _ request: Request,
        of original: Request,
        _ context: InterceptorContext,
        _ begun: Duration,
        by immediate: any ImmediateTransport,
        to outcome: some RequestOutcome
    ) -> Submission {
        interception.log(request, body: request.body)
        return immediate.submit(request) { result in
            switch result {
            case .success(let receipt):
                self.noteReceipt(receipt, of: request, context, begun)
                outcome.end(result)
            case .failure(let error as WaybillError):
                let again = Task { @concurrent in
                    await self.tryAgain(original, after: error, context, to: outcome)
                }
                outcome.track { again.cancel() }
            case .failure: outcome.end(result)
            }
        }
    }

    private func tryAgain(
        _ original: Request,
        after error: WaybillError,
        _ context: InterceptorContext,
        to outcome: some RequestOutcome
    ) async {
        var context = context
        do {
            let error = configuration.withServiceError(error)
            try await interception.waitForRetry(original, after: error, &context)
            outcome.end(.success(try await performAdapted(original, context)))
        } catch {
            outcome.end(.failure(error))
        }
    }
}
