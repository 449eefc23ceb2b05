import WireCore

/// The client side of SCRAM-SHA-256 without channel binding (RFC 5802 and 7677): bytes in, bytes out.
///
/// | state | event → next state |
/// | --- | --- |
/// | begun | ``receiveFirst(_:)`` → deriving, or failed |
/// | deriving | ``finish(_:by:)`` → proven, or failed |
/// | proven | ``receiveFinal(_:by:)`` → verified, or failed |
/// | verified | every further step fails |
/// | failed | every further step fails |
package struct SCRAMClient: Sendable {
    private enum State: Sendable {
        case begun
        case deriving(nonce: [UInt8], serverFirst: [UInt8])
        case proven(signature: [UInt8])
        case verified
        case failed(SCRAMFailure)
    }

    /// The header without channel binding and authorization identity.
    private static let header = Array("n,,".utf8)

    private var state = State.begun
    private let bare: [UInt8]
    private let nonce: [UInt8]
    private let iterations: ClosedRange<Int>

    /// Begins an exchange.
    ///
    /// - Parameters:
    ///   - userName: The user name, in printable ASCII.
    ///   - nonce: A random text for this exchange alone, of printable ASCII without commas.
    ///   - iterations: The iteration counts to accept. Below, a stolen message gives the password away too cheaply; above,
    ///     the server keeps this side busy.
    /// - Throws: `userNameNotSupported`, `nonceInvalid`.
    package init(
        userName: String,
        nonce: [UInt8],
        iterations: ClosedRange<Int>
    ) throws(SCRAMFailure) {
        guard SCRAMMessage.isPrepared(userName) else { throw .userNameNotSupported }
        guard !nonce.isEmpty, nonce.allSatisfy(SCRAMMessage.isNonceCharacter) else {
            throw .nonceInvalid
        }
        self.nonce = nonce
        self.iterations = iterations
        bare = Array("n=".utf8) + SCRAMMessage.escape(userName) + Array(",r=".utf8) + nonce
    }

    /// Checks a password, which the derivation takes as it is.
    ///
    /// - Throws: `passwordNotSupported`.
    package static func check(password: String) throws(SCRAMFailure) {
        guard SCRAMMessage.isPrepared(password) else { throw .passwordNotSupported }
    }

    /// The client's first message.
    package var firstMessage: [UInt8] { Self.header + bare }

    /// Handles the server's first message.
    ///
    /// - Returns: The key derivation that has to follow.
    /// - Throws: `SCRAMFailure`.
    package mutating func receiveFirst(_ bytes: [UInt8]) throws(SCRAMFailure) -> SCRAMDerivation {
        guard case .begun = state else { throw refusal }
        do throws(SCRAMFailure) {
            var message = try SCRAMMessage(bytes[...])
            try Self.refuseError(&message)
            let combined = try message.takeNonce()
            guard combined.count > nonce.count, combined.starts(with: nonce) else {
                throw .nonceMismatch
            }
            let salt = try message.takeBase64("s")
            let count = try message.takeNumber("i")
            guard iterations.contains(count) else {
                throw .iterationsOutOfRange(count, allowed: iterations)
            }
            // Further attributes are optional extensions, which a client ignores (RFC 5802, 5.1).
            state = .deriving(nonce: combined, serverFirst: bytes)
            return SCRAMDerivation(salt: salt, iterations: count)
        } catch {
            throw fail(error)
        }
    }

    /// Makes the client's final message, which proves that the client knows the password.
    ///
    /// - Parameters:
    ///   - saltedPassword: The result of the derivation.
    ///   - hash: The hash functions.
    /// - Returns: The message.
    /// - Throws: `outOfTurn`, `hashFailed`.
    package mutating func finish(
        _ saltedPassword: [UInt8],
        by hash: any SCRAMHash
    ) throws(SCRAMFailure) -> [UInt8] {
        guard case .deriving(let nonce, let serverFirst) = state else { throw refusal }
        do throws(SCRAMFailure) {
            let keys = try SCRAMKeys(saltedPassword: saltedPassword, by: hash)
            let withoutProof =
                Array("c=\(Base64.encode(Self.header)),r=".utf8) + nonce
            let signed = SCRAMSignature.signed(bare, serverFirst, withoutProof)
            let code = try hash.authenticationCode(of: signed, key: keys.storedKey)
            let proof = zip(keys.clientKey, code).map { $0 ^ $1 }
            state = .proven(
                signature: try hash.authenticationCode(of: signed, key: keys.serverKey)
            )
            return withoutProof + Array(",p=\(Base64.encode(proof))".utf8)
        } catch {
            throw fail(error)
        }
    }

    /// Handles the server's final message, which proves that the server knows the password, too.
    ///
    /// - Throws: `signatureMismatch`, `refused`; `malformed`, `outOfTurn`.
    package mutating func receiveFinal(
        _ bytes: [UInt8],
        by hash: any SCRAMHash
    ) throws(SCRAMFailure) {
        guard case .proven(let signature) = state else { throw refusal }
        do throws(SCRAMFailure) {
            var message = try SCRAMMessage(bytes[...])
            try Self.refuseError(&message)
            let received = try message.takeBase64("v")
            guard received.count == signature.count, hash.areEqual(received, signature) else {
                throw .signatureMismatch
            }
            state = .verified
        } catch {
            throw fail(error)
        }
    }

    /// Whether the server has proven that it knows the password.
    package var isVerified: Bool {
        if case .verified = state { true } else { false }
    }

    private static func refuseError(_ message: inout SCRAMMessage) throws(SCRAMFailure) {
        guard let error = message.takeIfPresent("e") else { return }
        throw .refused(String(decoding: error.prefix(100), as: UTF8.self))
    }

    /// The error of a step that is not due: that of the earlier failure, if there was one.
    private var refusal: SCRAMFailure {
        if case .failed(let failure) = state { failure } else { .outOfTurn }
    }

    private mutating func fail(_ failure: SCRAMFailure) -> SCRAMFailure {
        state = .failed(failure)
        return failure
    }
}

/// The text that both signatures cover (RFC 5802, 3, AuthMessage).
enum SCRAMSignature {
    static func signed(
        _ clientFirstBare: [UInt8],
        _ serverFirst: [UInt8],
        _ clientFinalWithoutProof: [UInt8]
    ) -> [UInt8] {
        let comma = [UInt8(ascii: ",")]
        return clientFirstBare + comma + serverFirst + comma + clientFinalWithoutProof
    }
}
