package import Waybill
import WireCore

/// One attempt to connect to a service, from its credentials to the server's answer.
///
/// An attempt may send a few CONNECTs, because another CONNECT may follow a refusal.
package struct ConnectOccasion: Sendable {
    /// Whether a connection was lost before.
    package let isReconnection: Bool
    /// Whether the transport connects on its own, so that it also runs the interceptors.
    ///
    /// Otherwise the connect was requested by an entry, and its provider has run the interceptors.
    package let isUnattended: Bool
    /// The server's refusal of the previous credentials.
    package private(set) var refusal: WaybillError?
    private var attempts: RequestAttempts?
    /// False if interceptors have set every credential.
    ///
    /// A refusal is then no reason to ask the transport's own source.
    package var showsCredentials = true
    /// The address that the request or its credentials state; nil for the service's.
    package private(set) var address: ServiceAddress?
    /// Whether the credentials of that refusal may have expired before the server read them.
    private var wasLate = false
    /// How often the attempts have started again because a server had accepted the credentials.
    private var restarts = 0

    /// The limit of restarts.
    ///
    /// Without it, hosts that accept and fail in turn would be tried without a pause.
    private static let maximumRestarts = 3

    package init(isReconnection: Bool, isUnattended: Bool = false, refusal: WaybillError? = nil) {
        self.isReconnection = isReconnection
        self.isUnattended = isUnattended
        self.refusal = refusal
    }

    /// The attempt that follows the end of the connection, and knows its credentials.
    package func renewed(isUnattended: Bool) -> ConnectOccasion {
        var next = ConnectOccasion(isReconnection: true, isUnattended: isUnattended)
        next.attempts = attempts?.renewed()
        next.showsCredentials = showsCredentials
        return next
    }

    /// Whether there is somebody to ask for other credentials.
    func canReplace(hasSource: Bool) -> Bool { attempts != nil || hasSource && showsCredentials }

    /// Returns the request of a CONNECT with fresh credentials.
    ///
    /// The interceptors set credentials first. The transport's own source sets those that the interceptors left open.
    ///
    /// - Parameters:
    ///   - request: The request as it reached the transport.
    ///   - source: The transport's source of credentials; nil without one.
    ///   - addresses: The addresses of the service; nil where requests state their own.
    /// - Returns: The request to encode, with the URL that counts if one was stated.
    /// - Throws: The error of an interceptor or of the source, as `WaybillError`; `unsupported` and `invalidEntry` for a
    ///   URL that cannot be; `CancellationError`.
    package mutating func adapted(
        _ request: Request,
        askingAt source: CredentialProvider?,
        in addresses: ServiceAddresses? = nil
    ) async throws -> Request {
        var complete = try await passedThroughChain(request)
        guard let addresses, complete.command.kind == .connect else { return complete }
        complete = try addresses.withholding(complete)
        let option = try complete.command[.url].map { url throws(WaybillError) in
            try addresses.address(of: url)
        }
        address = option
        guard let source else { return complete }
        // The user name in a URL counts as one of the same place, so before those of the next place.
        if let option { complete.command.take(Credentials(of: option)) }
        var credentials = try await source.credentials(for: self)
        let offered = try credentials.url.map { url throws(WaybillError) in
            try addresses.address(of: url)
        }
        let (address, credentialsGo) = ServiceAddresses.settle(option: option, credentials: offered)
        self.address = address
        if let offered { credentials.complete(from: offered) }
        showsCredentials = credentialsGo && complete.command.take(credentials)
        if option == nil, let url = credentials.url {
            complete.command[.url] = url
            showsCredentials = true
        }
        return complete
    }

    private mutating func passedThroughChain(_ request: Request) async throws -> Request {
        guard let chain = request.chain else { return request }
        // The provider has just run its interceptors over the request.
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

    /// Decides what follows a failed CONNECT.
    ///
    /// - Parameters:
    ///   - error: The cause.
    ///   - canReplaceCredentials: Whether the transport's own source may return other credentials.
    ///   - wasAccepted: Whether a server has accepted the credentials before. They may have expired since.
    ///   - isLate: Whether the error was received late, because the app had stopped the reading. The next credentials
    ///     may expire in the same way, so that this refusal does not count.
    /// - Throws: The error that ends the attempt. Returns without an error if another CONNECT follows.
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
                // The token is old by now, and so may be another one that its source keeps.
                if isLate { _ = await attempts?.replaceToken(after: error) }
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

    /// Asks the token interceptors and the source for other credentials after a close without an answer.
    ///
    /// - Parameters:
    ///   - error: The close.
    ///   - canReplaceCredentials: Whether the transport has a source.
    /// - Returns: Whether the next CONNECT has other credentials; not if a token source has failed.
    /// - Throws: `CancellationError`.
    package mutating func replaceCredentials(
        afterSilence error: WaybillError,
        canReplaceCredentials: Bool
    ) async throws -> Bool {
        if await attempts?.replaceToken(after: error) == true { return true }
        try Task.checkCancellation()
        guard canReplaceCredentials, showsCredentials, refusal == nil else { return false }
        refusal = error
        return true
    }

    /// Tells the interceptors that the server has accepted the connection.
    package func noteSuccess() {
        attempts?.noteSuccess()
    }
}

extension Credentials {
    /// The user name and the password in a URL.
    fileprivate init(of address: ServiceAddress) {
        self.init(userName: address.userName, password: address.password)
    }

    /// Takes the user name and the password in the URL, unless they are stated beside it.
    package mutating func complete(from address: ServiceAddress) {
        userName = userName ?? address.userName
        password = password ?? address.password
    }
}

extension EntryCommand {
    /// Applies the credentials of a source, except those that the request has: an option of the entry or of an interceptor
    /// comes before a source, and a source before the configuration.
    ///
    /// - Returns: Whether any of them was applied.
    @discardableResult
    fileprivate mutating func take(_ credentials: Credentials) -> Bool {
        let name = self[.userName] == nil ? credentials.userName : nil
        let password = self[.password] == nil ? credentials.password : nil
        if let name { self[.userName] = name }
        if let password { self[.password] = password }
        var upgradeHeaders = self[.upgradeHeaders] ?? [:]
        // The names of HTTP have no case (RFC 9110, 5.1).
        let fields = credentials.headers.filter { field in
            !upgradeHeaders.contains { $0.name.hasSameBytesIgnoringASCIICase(as: field.name) }
        }
        for field in fields { upgradeHeaders.append(name: field.name, value: field.value) }
        if !fields.isEmpty { self[.upgradeHeaders] = upgradeHeaders }
        return name != nil || password != nil || !fields.isEmpty
    }
}

extension WaybillError {
    /// The same error for a reconnection.
    ///
    /// A temporary error of an interceptor becomes retryable, so that another attempt follows.
    fileprivate var mendable: WaybillError {
        guard code == .interceptorFailed || mayPass else { return self }
        return WaybillError(.notConnected, message, restating: self)
    }
}
