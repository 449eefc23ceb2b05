/// Why Apple's Security does not import a PKCS #12 file (RFC 7292).
package enum PKCS12Refusal {
    /// The object identifier of PBES2 with its tag and length (RFC 8018, A.4), by which files with AES are encrypted.
    private static let pbes2: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D,
    ]

    /// Returns the reason in words.
    ///
    /// - Parameters:
    ///   - status: The `OSStatus` of `SecPKCS12Import`.
    ///   - file: The bytes of the file.
    /// - Returns: The reason, and what to do about it.
    package static func reason(_ status: Int32, of file: [UInt8]) -> String {
        // errSecAuthFailed and errSecPkcs12VerifyFailure: the integrity of the file could not be verified.
        let isPassword = status == -25_293 || status == -25_264
        let isModern = file.indices.contains { file[$0...].starts(with: pbes2) }
        guard isModern else {
            return isPassword ? "its password is another" : "OSStatus \(status)"
        }
        return """
            \(isPassword ? "its password is another, or" : "OSStatus \(status):") this system does not read its encryption \
            (AES). OpenSSL 3 writes one that every system reads with `openssl pkcs12 -export -legacy`
            """
    }
}
