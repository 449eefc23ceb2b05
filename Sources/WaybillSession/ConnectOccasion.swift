package import Waybill

/// One attempt to connect to a service, from its credentials to the answer of the server: a few CONNECTs at the most,
/// since another one may follow a refusal.
package struct ConnectOccasion: Sendable {
    /// Whether there was a connection before, which was lost.
    package let isReconnection: Bool
    /// Whether the transport connects by itself, so that it also runs the interceptors.
    ///
    /// Otherwise an entry asked for the connection, and its provider has run them.
    package let isUnattended: Bool
    /// The server's refusal of the credentials that were prepared before.
    package private(set) var refusal: WaybillError?
    private var attempts: RequestAttempts?
    /// False when interceptors have set every credential: a refusal then says nothing about the transport's own source.
    package var showsCredentials = true
    /// Whether that refusal was about credentials that may have been out of date by then.
    private var wasLate = false
    /// How often the attempts have begun anew because a server had taken the credentials.
    private var restarts = 0

    /// Enough for a list of hosts that accept and fail in turn; without it they would be asked without a pause.
    private static let maximumRestarts = 3

    package init(isReconnection: Bool, isUnattended: Bool = false, refusal: WaybillError? = nil) {
        self.isReconnection = isReconnection
        self.isUnattended = isUnattended
        self.refusal = refusal
    }

    /// The request of a CONNECT with fresh credentials: those of the interceptors, and what these leave open from the
    /// transport's own source.
    ///
    /// - Parameters:
    ///   - request: The request as it reached the transport.
    ///   - desk: The transport's source of credentials; nil without one.
    /// - Returns: The request to put into words.
    /// - Throws: What an interceptor or the source throws, as `WaybillError`; `CancellationError`.
    package mutating func adapted(
        _ request: Request,
        askingAt desk: CredentialProvider?
    ) async throws -> Request {
        let adapted = try await passedThroughChain(request)
        guard let desk, case .connect(var options) = adapted.command else { return adapted }
        let credentials = try await desk.credentials(for: self)
        showsCredentials = options.take(credentials, replacing: adapted.chain == nil)
        var complete = adapted
        complete.command = .connect(options)
        return complete
    }

    private mutating func passedThroughChain(_ request: Request) async throws -> Request {
        guard let chain = request.chain else { return request }
        // The provider has run its interceptors over it a moment ago.
        if !isUnattended, attempts == nil, let begun = chain.attemptsUnderWay {
            attempts = begun
            return request
        }
        do {
            let begun =
                attempts
                ?? chain.attempts(
                    at: chain.original ?? request,
                    isReconnection: isReconnection
                )
            attempts = begun
            return try await begun.next()
        } catch let error as WaybillError {
            throw isUnattended ? error.mendable : error
        }
    }

    /// Decides what follows an attempt that failed.
    ///
    /// - Parameters:
    ///   - error: Why.
    ///   - canReplaceCredentials: Whether the transport's own source may give others.
    ///   - wasAccepted: Whether a server has taken the credentials meanwhile: they may have expired since.
    ///   - isLate: Whether the error was heard late, because the app held the server back: what comes in the place of the
    ///     credentials may have expired as well, so that this refusal does not count.
    /// - Throws: The error with which the occasion is over, unless there is another attempt.
    package mutating func goOn(
        after error: WaybillError,
        canReplaceCredentials: Bool,
        wasAccepted: Bool,
        isLate: Bool = false
    ) async throws {
        let isRefusal = error.code == .unauthorized || error.code == .rejected
        let canReplaceCredentials = canReplaceCredentials && showsCredentials
        if isRefusal, let chain = attempts {
            if wasAccepted || isLate, restarts < Self.maximumRestarts {
                restarts += 1
                attempts = chain.restarted()
                return
            }
            do {
                try await attempts?.waitForRetry(after: error)
                return
            } catch let decided as WaybillError {
                guard canReplaceCredentials, error.code == .unauthorized else {
                    throw isUnattended ? decided.mendable : decided
                }
            }
        }
        guard error.code == .unauthorized, canReplaceCredentials,
            wasAccepted || isLate || wasLate || refusal == nil
        else { throw error }
        refusal = error
        wasLate = isLate
    }

    /// Tells the interceptors that the server has accepted the connection.
    package func noteSuccess() {
        attempts?.noteSuccess()
    }
}

extension ConnectOptions {
    /// Takes what a source of credentials gives.
    ///
    /// - Parameters:
    ///   - credentials: The credentials.
    ///   - isReplacing: Whether they win over what is there, as over an entry's; what an interceptor has set stays.
    /// - Returns: Whether it has taken any of them.
    fileprivate mutating func take(
        _ credentials: Credentials,
        replacing isReplacing: Bool
    ) -> Bool {
        let takesName = isReplacing || userName == nil
        let takesPassword = isReplacing || password == nil
        if takesName { userName = credentials.userName ?? userName }
        if takesPassword { password = credentials.password ?? password }
        let fields = credentials.headers.filter { field in
            isReplacing || upgradeHeaders.first(field.name) == nil
        }
        for field in fields { upgradeHeaders.removeAll(named: field.name) }
        for field in fields { upgradeHeaders.append(name: field.name, value: field.value) }
        return takesName && credentials.userName != nil
            || takesPassword && credentials.password != nil || !fields.isEmpty
    }
}

extension WaybillError {
    /// The same error for a connection that is made again: where an interceptor's own trouble may pass, a later attempt
    /// may do better.
    fileprivate var mendable: WaybillError {
        guard code == .interceptorFailed || mayPass else { return self }
        return WaybillError(.notConnected, message, peerReason: peerReason, underlying: underlying)
    }
}
