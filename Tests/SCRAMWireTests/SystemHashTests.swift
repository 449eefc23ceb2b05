import SCRAMWire
import Testing
import WaybillLink

/// The system's SHA-256, HMAC and PBKDF2 against published values.
@Suite("System hash") struct SystemHashTests {
    private func hash() throws -> SystemHash {
        try #require(SystemHash(), "the system has no library")
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("SHA-256 of nothing and of abc (FIPS 180-4)")
    func sha256() throws {
        #expect(
            try Self.hex(hash().hash([]))
                == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        )
        #expect(
            try Self.hex(hash().hash(Array("abc".utf8)))
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        )
    }

    @Test("HMAC with the second test case of RFC 4231")
    func hmac() throws {
        let code = try hash().authenticationCode(
            of: Array("what do ya want for nothing?".utf8),
            key: Array("Jefe".utf8)
        )
        #expect(
            Self.hex(code) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        )
    }

    @Test("PBKDF2 with a published vector, on the caller's thread and on a thread of its own")
    func pbkdf2() async throws {
        // RFC 7914, 11: "passwd", "salt", one iteration; the first 32 bytes.
        let expected = "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
        let derivation = SCRAMDerivation(salt: Array("salt".utf8), iterations: 1)
        let hash = try hash()
        #expect(
            try Self.hex(hash.derivedKey(from: Array("passwd".utf8), derivation)) == expected
        )
        let derived = await withCheckedContinuation { continuation in
            hash.derive(from: Array("passwd".utf8), derivation) { result in
                continuation.resume(returning: result)
            }
        }
        #expect(try Self.hex(derived.get()) == expected)
    }

    @Test("An impossible number of iterations fails")
    func failure() throws {
        let derivation = SCRAMDerivation(salt: [1], iterations: 1 << 40)
        #expect(throws: SCRAMFailure.hashFailed) {
            try hash().derivedKey(from: [1], derivation)
        }
    }

    @Test("Arrays are compared by length and contents")
    func comparison() throws {
        let hash = try hash()
        #expect(hash.areEqual([1, 2], [1, 2]))
        #expect(!hash.areEqual([1, 2], [1, 3]))
        #expect(!hash.areEqual([1, 2], [1, 2, 3]))
    }
}
