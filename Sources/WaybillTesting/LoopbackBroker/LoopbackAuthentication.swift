import SCRAMWire
public import Waybill
import WaybillLink
import WireCore

/// The enhanced authentication that a ``LoopbackBroker`` requires of its MQTT 5 clients (MQTT 5, 4.12).
///
/// A CONNECT without the method, or with another one, is refused with the reason 0x8C, and 3.1.1 clients with Not
/// authorized. A client may authenticate itself anew on an open connection; if it fails, it gets DISCONNECT with Not
/// authorized.
public struct LoopbackAuthentication: Sendable {
    /// The broker's answer to data of a client.
    public enum Answer: Sendable {
        /// AUTH with reason 0x18, which asks for the next data.
        case challenge([UInt8]?)
        /// CONNACK, or AUTH with reason 0x00 for a re-authentication; with the broker's last data.
        case success([UInt8]?)
        /// CONNACK or DISCONNECT with Not authorized.
        case refusal
        /// Nothing: the client waits until its time limit.
        case silence
    }

    private enum Verifier: Sendable {
        case script(@Sendable ([[UInt8]?]) -> Answer)
        case scram(LoopbackPasswords)
    }

    /// The Authentication Method.
    public let method: String
    private let verifier: Verifier

    /// Makes a method from a function.
    ///
    /// - Parameters:
    ///   - method: The Authentication Method.
    ///   - answer: Answers the data that the client has sent in this exchange, first to last; nil stands for a packet
    ///     without data. Called on the thread of the network: it must not block.
    public init(method: String, answer: @escaping @Sendable ([[UInt8]?]) -> Answer) {
        self.method = method
        verifier = .script(answer)
    }

    private init(method: String, verifier: Verifier) {
        self.method = method
        self.verifier = verifier
    }

    /// Makes the method `SCRAM-SHA-256` (RFC 7677).
    ///
    /// - Parameters:
    ///   - passwords: The passwords by user name, in printable ASCII.
    ///   - iterations: The iteration count.
    /// - Returns: The method.
    /// - Throws: `unsupported` if the system has no library for SHA-256.
    public static func scram(
        _ passwords: KeyValuePairs<String, String>,
        iterations: Int = 4_096
    ) throws(WaybillError) -> LoopbackAuthentication {
        guard let hash = SystemHash() else {
            throw WaybillError(.unsupported, SystemHash.libraryMissing)
        }
        do throws(SCRAMFailure) {
            let known = try LoopbackPasswords(passwords, iterations: iterations, hash: hash)
            return LoopbackAuthentication(method: "SCRAM-SHA-256", verifier: .scram(known))
        } catch {
            throw WaybillError(.unsupported, "\(error)")
        }
    }

    /// Makes the broker's side of one exchange.
    ///
    /// - Parameter random: The source of nonces.
    /// - Returns: The exchange, which has not begun.
    func makeExchange(_ random: () -> UInt64) -> LoopbackAuthenticationExchange {
        switch verifier {
        case .script(let answer): LoopbackAuthenticationExchange(script: answer)
        case .scram(let known):
            LoopbackAuthenticationExchange(
                server: SCRAMServer(
                    nonce: Array((0..<2).map { _ in String(random(), radix: 16) }.joined().utf8)
                ),
                passwords: known
            )
        }
    }
}

extension LoopbackAuthentication: Unmirrored {}

/// The stored keys of users of SCRAM.
struct LoopbackPasswords: Sendable {
    let hash: SystemHash
    private let users: [(name: String, credentials: SCRAMServer.Credentials)]

    init(
        _ passwords: KeyValuePairs<String, String>,
        iterations: Int,
        hash: SystemHash
    ) throws(SCRAMFailure) {
        self.hash = hash
        var users: [(name: String, credentials: SCRAMServer.Credentials)] = []
        for (name, password) in passwords {
            // A salt of its own for each name; for tests it need not be random.
            let salt = Array(try hash.hash(Array("waybill-loopback:\(name)".utf8)).prefix(16))
            let derivation = SCRAMDerivation(salt: salt, iterations: iterations)
            let key = try hash.derivedKey(from: Array(password.utf8), derivation)
            users.append((name, try .init(derivation, saltedPassword: key, by: hash)))
        }
        self.users = users
    }

    func credentials(of name: String) -> SCRAMServer.Credentials? {
        users.first { $0.name.hasSameBytes(as: name) }?.credentials
    }
}

/// The broker's side of one authentication exchange.
struct LoopbackAuthenticationExchange: Sendable {
    private enum Side: Sendable {
        case script(@Sendable ([[UInt8]?]) -> LoopbackAuthentication.Answer)
        case scram(SCRAMServer, LoopbackPasswords)
    }

    private var side: Side
    private var received: [[UInt8]?] = []

    init(script: @escaping @Sendable ([[UInt8]?]) -> LoopbackAuthentication.Answer) {
        side = .script(script)
    }

    init(server: SCRAMServer, passwords: LoopbackPasswords) {
        side = .scram(server, passwords)
    }

    /// Handles the next data of the client.
    mutating func receive(_ data: [UInt8]?) -> LoopbackAuthentication.Answer {
        // The first message of SCRAM names the user, the second proves the password.
        let isFirst = received.isEmpty
        received.append(data)
        switch side {
        case .script(let answer): return answer(received)
        case .scram(var server, let passwords):
            defer { side = .scram(server, passwords) }
            do throws(SCRAMFailure) {
                guard isFirst else {
                    return .success(try server.receiveFinal(data ?? [], by: passwords.hash))
                }
                let name = try server.receiveFirst(data ?? [])
                guard let known = passwords.credentials(of: name) else { return .refusal }
                return .challenge(try server.challenge(known))
            } catch {
                return .refusal
            }
        }
    }
}
