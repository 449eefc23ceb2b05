import SCRAMWire
public import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The authentication method `SCRAM-SHA-256` (RFC 5802 and 7677), without channel binding.
///
/// The password never leaves this side. Client and server prove to each other that they know it. A server that does
/// not prove it is refused.
///
/// SHA-256, HMAC and PBKDF2 are those of the system: OpenSSL 3 or 1.1.1 on Linux, CommonCrypto on Apple platforms. The
/// key derivation runs on a thread of its own.
///
/// User name and password must be printable ASCII and not empty. Other characters would need SASLprep (RFC 4013), which
/// this package does not have.
public struct SCRAMAuthenticator: MQTTAuthenticator {
    /// The iteration counts that are accepted by default: 4,096, the minimum of RFC 7677, to 1,000,000.
    public static let defaultIterations = 4_096...1_000_000

    /// `SCRAM-SHA-256`.
    public let method = "SCRAM-SHA-256"

    private let iterations: ClosedRange<Int>
    private let credentials: @Sendable (MQTTAuthenticationContext) async throws -> Credentials

    /// Makes an authenticator with a user name and a password.
    ///
    /// - Parameters:
    ///   - userName: The user name of SCRAM. CONNECT does not contain it; the broker may need it there, too.
    ///   - password: The password. Never logged, and never sent.
    ///   - iterations: The iteration counts to accept. A server that demands fewer makes a stolen exchange cheap to attack.
    ///     One that demands more keeps a thread of this side busy: a million iterations take about half a second.
    ///     At most 2,147,483,647 are accepted, whatever the range.
    public init(
        userName: String,
        password: String,
        iterations: ClosedRange<Int> = defaultIterations
    ) {
        self.init(iterations: iterations) { _ in
            Credentials(userName: userName, password: password)
        }
    }

    /// Makes an authenticator that asks for the credentials before each exchange.
    ///
    /// - Parameters:
    ///   - iterations: The iteration counts to accept.
    ///   - credentials: Returns the user name and the password of SCRAM. Further headers are ignored.
    public init(
        iterations: ClosedRange<Int> = defaultIterations,
        credentials:
            @escaping @Sendable (MQTTAuthenticationContext) async throws -> Credentials
    ) {
        // More than the system's function can count are refused as any other count outside of the range.
        self.iterations = iterations.clamped(to: 0...Int(Int32.max))
        self.credentials = credentials
    }

    /// Makes the client's side of a new exchange.
    ///
    /// - Throws: `invalidEntry` for credentials that are not printable ASCII; `unsupported` if the system has no library
    ///   for SHA-256; the errors of the source of credentials.
    public func makeExchange(
        _ context: MQTTAuthenticationContext
    ) async throws -> any MQTTAuthenticationExchange {
        guard let hash = SystemHash() else {
            throw WaybillError(.unsupported, SystemHash.libraryMissing)
        }
        let known = try await credentials(context)
        let password = known.password ?? ""
        do throws(SCRAMFailure) {
            try SCRAMClient.check(password: password)
            let client = try SCRAMClient(
                userName: known.userName ?? "",
                nonce: Self.nonce(context.random),
                iterations: iterations
            )
            return SCRAMExchange(
                client: client,
                password: Redacted(Array(password.utf8)),
                hash: hash
            )
        } catch {
            throw WaybillError(error)
        }
    }

    /// Makes a nonce of 192 random bits, in 48 hexadecimal digits.
    private static func nonce(_ random: () -> UInt64) -> [UInt8] {
        (0..<3).flatMap { _ in
            let digits = Array(String(random(), radix: 16).utf8)
            return [UInt8](repeating: UInt8(ascii: "0"), count: 16 - digits.count) + digits
        }
    }
}

extension SCRAMAuthenticator: CustomStringConvertible, Unmirrored {
    /// The name of the type: credentials are never shown.
    public var description: String { "SCRAMAuthenticator" }
}

/// The client's side of one exchange of SCRAM.
private struct SCRAMExchange: MQTTAuthenticationExchange {
    var client: SCRAMClient
    let password: Redacted<[UInt8]>
    let hash: SystemHash

    mutating func begin() async throws -> [UInt8]? { client.firstMessage }

    mutating func respond(to data: [UInt8]?) async throws -> [UInt8]? {
        let derivation: SCRAMDerivation
        do throws(SCRAMFailure) { derivation = try client.receiveFirst(data ?? []) } catch {
            throw WaybillError(error)
        }
        let derived = Promise<[UInt8]>()
        hash.derive(from: password.value, derivation) { result in
            derived.resolve(result.mapError { WaybillError($0) })
        }
        let key = try await derived.value()
        do throws(SCRAMFailure) { return try client.finish(key, by: hash) } catch {
            throw WaybillError(error)
        }
    }

    mutating func finish(with data: [UInt8]?) async throws {
        do throws(SCRAMFailure) { try client.receiveFinal(data ?? [], by: hash) } catch {
            var error = WaybillError(error)
            // A server that does not prove itself is not the expected one, whatever it sends instead.
            error.code = .unauthorized
            throw error
        }
    }
}

extension WaybillError {
    /// Converts a failure of SCRAM.
    fileprivate init(_ failure: SCRAMFailure) {
        let code: Code =
            switch failure {
            case .userNameNotSupported, .passwordNotSupported: .invalidEntry
            case .hashFailed: .unsupported
            case .nonceInvalid, .outOfTurn, .malformed, .tooLong, .extensionNotSupported,
                .nonceMismatch:
                .protocolViolation
            case .iterationsOutOfRange: .limitExceeded
            case .signatureMismatch, .refused: .unauthorized
            }
        self.init(code, "SCRAM-SHA-256: \(failure)")
        if case .refused(let reason) = failure { peerReason = reason }
    }
}
