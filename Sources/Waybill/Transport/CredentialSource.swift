import WireCore

/// What a client shows to a server when it connects.
public struct Credentials: Sendable {
    /// The user's name: of MQTT's CONNECT, STOMP's `login`, HTTP's Basic authentication; nil leaves what the
    /// configuration or the entry says.
    public var userName: String?
    /// The password or token that goes with it; nil leaves what the configuration or the entry says.
    public var password: String?
    /// Fields of the HTTP request that opens a WebSocket or an event stream, such as an `Authorization`, in the
    /// place of those of the same name.
    ///
    /// Over plain TCP or TLS there is no such request: there the attempt fails with `unsupported`.
    public var headers: Headers
    /// The token that they were made of, by which a refusal of these finds its way back to where tokens come from.
    var token: String?

    /// Collects credentials.
    public init(userName: String? = nil, password: String? = nil, headers: Headers = [:]) {
        self.userName = userName
        self.password = password
        self.headers = headers
    }
}

extension Credentials: CustomStringConvertible, CustomReflectable {
    /// The name of the type: credentials are never shown.
    public var description: String { "Credentials" }

    /// Nothing: credentials are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Gives a transport fresh credentials before it connects, each time.
///
/// When the server refuses them, the source is asked once more, with ``Occasion/refused`` set; refused again,
/// connecting fails with `unauthorized` and there are no further attempts.
///
/// ```swift
/// configuration.credentials = CredentialSource { occasion in
///     Credentials(userName: "ada", password: try await account.token(replacing: occasion.refused?.password))
/// }
/// ```
public struct CredentialSource: Sendable {
    /// For what credentials are asked.
    public struct Occasion: Sendable {
        /// Whether there was a connection before, which was lost.
        public var isReconnection: Bool
        /// Those that the server has just refused; nil when none were.
        public var refused: Credentials?

        /// Describes an occasion.
        public init(isReconnection: Bool, refused: Credentials? = nil) {
            self.isReconnection = isReconnection
            self.refused = refused
        }
    }

    /// How long giving them may take; 10 seconds by default.
    public var timeout: Duration

    package let credentials: @Sendable (Occasion) async throws -> Credentials

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - timeout: How long the closure may take, before its task is cancelled and the attempt has failed with
    ///     `timedOut`.
    ///   - credentials: Gives credentials. A ``WaybillError`` that it throws counts as the attempt's: with the
    ///     code `unauthorized` there are no further ones. Any other error may pass, and counts as `notConnected`.
    public init(
        timeout: Duration = .seconds(10),
        _ credentials: @escaping @Sendable (Occasion) async throws -> Credentials
    ) {
        self.timeout = timeout
        self.credentials = credentials
    }

    /// Gives the token of an interceptor, so that requests and connections share it and its refresh.
    ///
    /// - Parameters:
    ///   - tokens: The interceptor.
    ///   - timeout: How long it may take.
    ///   - place: Makes credentials of a token.
    /// - Returns: The source.
    public static func token(
        of tokens: TokenInterceptor,
        timeout: Duration = .seconds(30),
        _ place: @escaping @Sendable (_ token: String) -> Credentials
    ) -> CredentialSource {
        CredentialSource(timeout: timeout) { occasion in
            do {
                // Connections that share the source may be refused in any order: each names its own token.
                let token = try await tokens.token(replacing: occasion.refused?.token)
                var credentials = place(token)
                credentials.token = token
                return credentials
            } catch let error as WaybillError {
                throw error.underlying.map { Self.isPassing($0) } == true
                    ? WaybillError(.notConnected, error.message, underlying: error.underlying)
                    : error
            }
        }
    }

    /// Whether what a token source has thrown may be mended by time: anything but its own word that it is over.
    static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case let error as WaybillError: error.isRetryable
        // A source that fails all the time is left alone for a while, and may do better then.
        case let failure as TokenFailure: failure != .discarded
        default: true
        }
    }
}
