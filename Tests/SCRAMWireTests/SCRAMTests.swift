import SCRAMWire
import Testing
import WaybillLink

/// The messages of SCRAM-SHA-256 in both directions, with the system's hash functions.
@Suite("SCRAM-SHA-256") struct SCRAMTests {
    static let allowed = 4_096...1_000_000
    static let clientNonce = "rOprNGfwEbeRWgbNEkqO"
    static let combinedNonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"

    // The example of RFC 7677, 3: user "user", password "pencil".
    static let clientFirst = "n,,n=user,r=\(clientNonce)"
    static let serverFirst = "r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    static let clientFinal =
        "c=biws,r=\(combinedNonce),p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    static let serverFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

    static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    static func client(
        _ user: String = "user",
        iterations: ClosedRange<Int> = allowed
    ) throws -> SCRAMClient {
        try SCRAMClient(userName: user, nonce: bytes(clientNonce), iterations: iterations)
    }

    private func hash() throws -> SystemHash {
        try #require(SystemHash(), "the system has no library")
    }

    private func proven() throws -> SCRAMClient {
        var client = try Self.client()
        let derivation = try client.receiveFirst(Self.bytes(Self.serverFirst))
        let key = try hash().derivedKey(from: Self.bytes("pencil"), derivation)
        _ = try client.finish(key, by: hash())
        return client
    }

    @Test("The example of RFC 7677 byte by byte, from the client's side")
    func clientExample() throws {
        var client = try Self.client()
        #expect(client.firstMessage == Self.bytes(Self.clientFirst))
        let derivation = try client.receiveFirst(Self.bytes(Self.serverFirst))
        #expect(derivation.iterations == 4_096)
        #expect(derivation.salt.count == 16)
        let key = try hash().derivedKey(from: Self.bytes("pencil"), derivation)
        #expect(try client.finish(key, by: hash()) == Self.bytes(Self.clientFinal))
        #expect(!client.isVerified)
        try client.receiveFinal(Self.bytes(Self.serverFinal), by: hash())
        #expect(client.isVerified)
    }

    @Test("The example of RFC 7677 byte by byte, from the server's side")
    func serverExample() throws {
        var server = SCRAMServer(nonce: Self.bytes("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"))
        #expect(try server.receiveFirst(Self.bytes(Self.clientFirst)) == "user")
        var client = try Self.client()
        let derivation = try client.receiveFirst(Self.bytes(Self.serverFirst))
        let key = try hash().derivedKey(from: Self.bytes("pencil"), derivation)
        let known = try SCRAMServer.Credentials(derivation, saltedPassword: key, by: hash())
        #expect(try server.challenge(known) == Self.bytes(Self.serverFirst))
        let final = try server.receiveFinal(Self.bytes(Self.clientFinal), by: hash())
        #expect(final == Self.bytes(Self.serverFinal))
    }

    /// A first message of the server, and the error.
    static let refusedFirst: [(String, SCRAMFailure)] = [
        ("r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .nonceMismatch),
        ("r=\(clientNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .nonceMismatch),
        ("r=x\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .nonceMismatch),
        (
            "r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095",
            .iterationsOutOfRange(4_095, allowed: allowed)
        ),
        (
            "r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001",
            .iterationsOutOfRange(1_000_001, allowed: allowed)
        ),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=04096", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-4096", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4o96", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==", .malformed),
        ("r=\(combinedNonce),s=,i=4096", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ=,i=4096", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gR==,i=4096", .malformed),
        ("r=\(combinedNonce),s=W22Z J0SNY7soEsUEjb6gQ==,i=4096", .malformed),
        ("r=\(combinedNonce),s=====,i=4096", .malformed),
        ("s=W22ZaJ0SNY7soEsUEjb6gQ==,r=\(combinedNonce),i=4096", .malformed),
        ("r=\(combinedNonce) x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .malformed),
        ("r=\(combinedNonce)\u{0},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .malformed),
        ("m=later,r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .extensionNotSupported),
        (",r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", .malformed),
        ("r=\(combinedNonce),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,", .malformed),
        ("e=unknown-user", .refused("unknown-user")),
        ("", .malformed),
        (String(repeating: "x", count: 4_097), .tooLong),
    ]

    @Test("Each fault in the server's first message has its error", arguments: refusedFirst)
    func refusesFirst(message: String, failure: SCRAMFailure) throws {
        var client = try Self.client()
        #expect(throws: failure) { try client.receiveFirst(Self.bytes(message)) }
        // The failure is final.
        #expect(throws: failure) { try client.receiveFirst(Self.bytes(Self.serverFirst)) }
        #expect(throws: failure) { try client.finish([1], by: hash()) }
    }

    @Test("Optional extensions of the server's first message are ignored")
    func extensions() throws {
        var client = try Self.client()
        let derivation = try client.receiveFirst(Self.bytes(Self.serverFirst + ",x=y"))
        #expect(derivation.iterations == 4_096)
    }

    /// A final message of the server, and the error.
    static let refusedFinal: [(String, SCRAMFailure)] = [
        ("v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", .signatureMismatch),
        ("v=6rri", .signatureMismatch),
        ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4", .malformed),
        ("v=!", .malformed),
        ("v=", .malformed),
        ("", .malformed),
        ("r=x", .malformed),
        ("m=x", .extensionNotSupported),
        ("e=invalid-proof", .refused("invalid-proof")),
    ]

    @Test("Each fault in the server's final message has its error", arguments: refusedFinal)
    func refusesFinal(message: String, failure: SCRAMFailure) throws {
        var client = try proven()
        #expect(throws: failure) {
            try client.receiveFinal(Self.bytes(message), by: hash())
        }
        #expect(!client.isVerified)
        // A correct signature comes too late.
        #expect(throws: failure) {
            try client.receiveFinal(Self.bytes(Self.serverFinal), by: hash())
        }
        #expect(!client.isVerified)
    }

    @Test("Steps out of turn fail")
    func turns() throws {
        var client = try Self.client()
        #expect(throws: SCRAMFailure.outOfTurn) { try client.finish([1], by: hash()) }
        #expect(throws: SCRAMFailure.outOfTurn) {
            try client.receiveFinal(Self.bytes(Self.serverFinal), by: hash())
        }
        _ = try client.receiveFirst(Self.bytes(Self.serverFirst))
        #expect(throws: SCRAMFailure.outOfTurn) {
            try client.receiveFirst(Self.bytes(Self.serverFirst))
        }
        // An empty proof cannot end it.
        #expect(throws: SCRAMFailure.outOfTurn) {
            try client.receiveFinal(Self.bytes(Self.serverFinal), by: hash())
        }
    }

    @Test(
        "A user name is escaped, and comes back",
        arguments: ["a,b", "a=b", "=2C", ",=,=", "a b", "~"]
    )
    func names(name: String) throws {
        let client = try Self.client(name)
        let text = String(decoding: client.firstMessage, as: UTF8.self)
        #expect(text.split(separator: ",").count == 3)
        var server = SCRAMServer(nonce: [0x61])
        #expect(try server.receiveFirst(client.firstMessage) == name)
    }

    @Test(
        "Names, passwords and nonces that need preparation are refused",
        arguments: ["", "é", "a\u{0}", "a\n", "\u{7F}", "ａ", "\u{AD}"]
    )
    func unprepared(text: String) {
        #expect(throws: SCRAMFailure.userNameNotSupported) { try Self.client(text) }
        #expect(throws: SCRAMFailure.passwordNotSupported) {
            try SCRAMClient.check(password: text)
        }
        #expect(throws: SCRAMFailure.nonceInvalid) {
            try SCRAMClient(userName: "u", nonce: Self.bytes(text), iterations: Self.allowed)
        }
    }

    /// A first message of a client, and the server's error.
    static let refusedClientFirst: [(String, SCRAMFailure)] = [
        ("p=tls-unique,,n=user,r=a", .malformed), ("n,a=admin,n=user,r=a", .malformed),
        ("n=user,r=a", .malformed), ("n,,r=a", .malformed), ("n,,n=us=er,r=a", .malformed),
        ("n,,m=x,n=user,r=a", .extensionNotSupported), ("n,,n=user,r=", .malformed),
    ]

    @Test("Each fault in the client's first message has its error", arguments: refusedClientFirst)
    func refusesClientFirst(message: String, failure: SCRAMFailure) {
        var server = SCRAMServer(nonce: [0x61])
        #expect(throws: failure) { try server.receiveFirst(Self.bytes(message)) }
    }

    /// A final message of a client, and the server's error.
    static let refusedClientFinal: [(String, SCRAMFailure)] = [
        (
            "c=biws,r=\(combinedNonce),p=eHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            .signatureMismatch
        ),
        ("c=biws,r=\(combinedNonce),p=dHzb", .signatureMismatch),
        ("c=biws,r=\(combinedNonce)x,p=dHzb", .nonceMismatch),
        ("c=eSws,r=\(combinedNonce),p=dHzb", .malformed),
        ("c=biws,r=\(combinedNonce)", .malformed),
        ("c=biws,r=\(combinedNonce),p=dHzb,x=y", .malformed),
    ]

    @Test("Each fault in the client's final message has its error", arguments: refusedClientFinal)
    func refusesClientFinal(message: String, failure: SCRAMFailure) throws {
        var server = SCRAMServer(nonce: Self.bytes("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"))
        _ = try server.receiveFirst(Self.bytes(Self.clientFirst))
        let derivation = SCRAMDerivation(salt: [1, 2], iterations: 4_096)
        let key = try hash().derivedKey(from: Self.bytes("pencil"), derivation)
        _ = try server.challenge(.init(derivation, saltedPassword: key, by: hash()))
        #expect(throws: failure) {
            try server.receiveFinal(Self.bytes(message), by: hash())
        }
        #expect(throws: SCRAMFailure.outOfTurn) {
            try server.receiveFinal(Self.bytes(Self.clientFinal), by: hash())
        }
    }

    @Test("The text of an error of the server is bounded and escaped")
    func errorText() throws {
        var client = try Self.client()
        let hostile = "e=" + String(repeating: "\u{1B}", count: 300)
        do throws(SCRAMFailure) {
            _ = try client.receiveFirst(Self.bytes(hostile))
            Issue.record("accepted")
        } catch {
            let text = error.description
            #expect(!text.contains("\u{1B}"))
            #expect(text.count < 1_000)
        }
    }
}
