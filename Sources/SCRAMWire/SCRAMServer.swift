import WireCore

/// The server side of SCRAM-SHA-256 without channel binding (RFC 5802 and 7677), as far as tests and demonstrations
/// need it.
///
/// | state | event → next state |
/// | --- | --- |
/// | waiting | ``receiveFirst(_:)`` → asked, or ended |
/// | asked | ``challenge(_:)`` → challenged |
/// | challenged | ``receiveFinal(_:by:)`` → ended |
/// | ended | every further step fails |
package struct SCRAMServer: Sendable {
    /// The data that a server stores of a password.
    package struct Credentials: Sendable {
        let derivation: SCRAMDerivation
        let keys: SCRAMKeys

        /// Makes the stored data of a salted password.
        ///
        /// - Throws: `hashFailed`.
        package init(
            _ derivation: SCRAMDerivation,
            saltedPassword: [UInt8],
            by hash: any SCRAMHash
        ) throws(SCRAMFailure) {
            self.derivation = derivation
            keys = try SCRAMKeys(saltedPassword: saltedPassword, by: hash)
        }
    }

    private enum State: Sendable {
        case waiting
        case asked(header: [UInt8], bare: [UInt8], nonce: [UInt8])
        case challenged(
            header: [UInt8],
            bare: [UInt8],
            nonce: [UInt8],
            first: [UInt8],
            Credentials
        )
        case ended
    }

    private var state = State.waiting
    private let nonce: [UInt8]

    /// Makes the server side of one exchange.
    ///
    /// - Parameter nonce: A random text for this exchange alone, of printable ASCII without commas.
    package init(nonce: [UInt8]) {
        self.nonce = nonce
    }

    /// Handles the client's first message.
    ///
    /// - Returns: The user name.
    /// - Throws: `malformed`, `tooLong`, `extensionNotSupported`, `outOfTurn`.
    package mutating func receiveFirst(_ bytes: [UInt8]) throws(SCRAMFailure) -> String {
        guard case .waiting = state else { throw .outOfTurn }
        state = .ended
        let headers = ["n,,", "y,,"].map { Array($0.utf8) }
        guard let header = headers.first(where: bytes.starts) else { throw .malformed }
        let bare = Array(bytes.dropFirst(header.count))
        var message = try SCRAMMessage(bare[...])
        let name = try SCRAMMessage.unescape(try message.take("n"))
        let clientNonce = try message.takeNonce()
        state = .asked(header: header, bare: bare, nonce: clientNonce + nonce)
        return name
    }

    /// Makes the server's first message.
    ///
    /// - Parameter credentials: The stored data of the user.
    /// - Returns: The message, with the salt and the iterations.
    /// - Throws: `outOfTurn`.
    package mutating func challenge(
        _ credentials: Credentials
    ) throws(SCRAMFailure) -> [UInt8] {
        guard case .asked(let header, let bare, let nonce) = state else { throw .outOfTurn }
        let derivation = credentials.derivation
        let first =
            Array("r=".utf8) + nonce
            + Array(",s=\(Base64.encode(derivation.salt)),i=\(derivation.iterations)".utf8)
        state = .challenged(header: header, bare: bare, nonce: nonce, first: first, credentials)
        return first
    }

    /// Handles the client's final message.
    ///
    /// - Returns: The server's final message.
    /// - Throws: `signatureMismatch` for a wrong password; `nonceMismatch`, `malformed`, `tooLong`, `outOfTurn`,
    ///   `hashFailed`.
    package mutating func receiveFinal(
        _ bytes: [UInt8],
        by hash: any SCRAMHash
    ) throws(SCRAMFailure) -> [UInt8] {
        guard case .challenged(let header, let bare, let nonce, let first, let known) = state
        else { throw .outOfTurn }
        state = .ended
        var message = try SCRAMMessage(bytes[...])
        guard try message.takeBase64("c") == header else { throw .malformed }
        guard try message.takeNonce() == nonce else { throw .nonceMismatch }
        let proof = try message.takeBase64("p")
        try message.expectEnd()
        let proofText = Array(",p=\(Base64.encode(proof))".utf8)
        let signed = SCRAMSignature.signed(bare, first, Array(bytes.dropLast(proofText.count)))
        let code = try hash.authenticationCode(of: signed, key: known.keys.storedKey)
        guard proof.count == code.count,
            hash.areEqual(
                try hash.hash(zip(proof, code).map { $0 ^ $1 }),
                known.keys.storedKey
            )
        else { throw .signatureMismatch }
        let signature = try hash.authenticationCode(of: signed, key: known.keys.serverKey)
        return Array("v=\(Base64.encode(signature))".utf8)
    }
}
