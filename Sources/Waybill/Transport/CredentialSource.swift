import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The credentials with which a client connects to a server, and where that is.
public struct Credentials: Sendable {
    /// The user name: of MQTT's CONNECT, STOMP's `login`, or HTTP's Basic authentication.
    ///
    /// That of the entry, if it states one, comes first. Nil keeps that of the configuration.
    public var userName: String?
    /// The password or token.
    ///
    /// That of the entry, if it states one, comes first. Nil keeps that of the configuration.
    public var password: String?
    /// Fields of the HTTP request that opens a WebSocket or an event stream, such as `Authorization`.
    ///
    /// They replace fields of the same name in the configuration. Plain TCP and TLS have no such request: the attempt
    /// then fails with `unsupported`.
    public var headers: Headers
    /// The URL that takes the place of the transport's for this attempt; nil keeps that of the transport.
    ///
    /// For a signed URL that expires, or a service that names host and port. Each attempt asks anew. The option
    /// ``ConnectOption/url(_:)`` counts before it. What may stand in it, and which credentials of the configuration go
    /// there, is said at that option. The other properties go with this URL; with an option's URL of another origin
    /// they do not.
    ///
    /// A server's referral is followed as the transport's policy says, without the query.
    /// For event streams it counts for each attempt to open a stream, and topics are appended to it.
    public var url: URL?
    /// The token that the credentials were made from; a refusal reports it back to the token source.
    var token: String?

    /// Makes credentials.
    public init(
        userName: String? = nil,
        password: String? = nil,
        headers: Headers = [:],
        url: URL? = nil
    ) {
        self.userName = userName
        self.password = password
        self.headers = headers
        self.url = url
    }
}

extension Credentials: CustomStringConvertible, Unmirrored {
    /// The name of the type: credentials are never shown.
    public var description: String { "Credentials" }
}

/// A source of fresh credentials, asked before each attempt to connect.
///
/// When the server refuses the credentials, the source is asked once more, with ``Occasion/refused`` set. After a
/// second refusal connecting fails with `unauthorized` and there are no further attempts. DISCONNECT with Not authorized
/// (MQTT 5) is such a refusal. So is a close before the server has answered CONNECT, but the attempts go on after it.
///
/// ```swift
/// configuration.credentials = CredentialSource { occasion in
///     Credentials(userName: "ada", password: try await account.token(replacing: occasion.refused?.password))
/// }
/// ```
public struct CredentialSource: Sendable {
    /// The occasion on which credentials are requested.
    public struct Occasion: Sendable {
        /// Whether the attempt restores a lost connection.
        public var isReconnection: Bool
        /// The credentials that the server has just refused; nil if none were refused.
        public var refused: Credentials?

        /// Describes an occasion.
        public init(isReconnection: Bool, refused: Credentials? = nil) {
            self.isReconnection = isReconnection
            self.refused = refused
        }
    }

    /// The time limit of the closure; 10 seconds by default.
    public var timeout: Duration

    package let credentials: @Sendable (Occasion) async throws -> Credentials

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - timeout: The time limit of the closure; after it, the closure's task is cancelled and the attempt fails with
    ///     `timedOut`.
    ///   - credentials: Returns credentials. A ``WaybillError`` that it throws becomes the error of the attempt; with
    ///     the code `unauthorized` there are no further attempts. Any other error counts as temporary, and as
    ///     `notConnected`.
    public init(
        timeout: Duration = .seconds(10),
        _ credentials: @escaping @Sendable (Occasion) async throws -> Credentials
    ) {
        self.timeout = timeout
        self.credentials = credentials
    }

    /// A source with the token of an interceptor, so that requests and connections share the token and its refresh.
    ///
    /// - Parameters:
    ///   - tokens: The interceptor.
    ///   - timeout: The time limit for the token.
    ///   - place: Makes credentials from a token.
    /// - Returns: The source.
    public static func token(
        of tokens: TokenInterceptor,
        timeout: Duration = .seconds(30),
        _ place: @escaping @Sendable (_ token: String) -> Credentials
    ) -> CredentialSource {
        CredentialSource(timeout: timeout) { occasion in
            do {
                // Connections that share the source may be refused in any order, so each names its own token.
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

    /// Whether the error of a token source may be temporary.
    static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case let error as WaybillError: error.isRetryable
        // After too many failures the source is not called for a while, and may succeed later.
        case let failure as TokenFailure: failure != .discarded
        default: true
        }
    }
}
