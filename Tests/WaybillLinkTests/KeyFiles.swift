/// Files that were made with OpenSSL's commands, only for tests.
enum KeyFiles {
    /// A self-signed certificate for `key`.
    static let certificate = Array(
        """
        -----BEGIN CERTIFICATE-----
        MIIBezCCASGgAwIBAgIUCAqzfSk9kfmL0XQSucJqlkJWoHUwCgYIKoZIzj0EAwIw
        EjEQMA4GA1UEAwwHZml4dHVyZTAgFw0yNjExMjExMDQ1NTZaGA8yMTI2MTAyODEw
        NDU1NlowEjEQMA4GA1UEAwwHZml4dHVyZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
        A0IABOsxOEDHFapLwZHWSfbn8/u+5M2PYVaJ+N8qMLov5iWtEPjryQHMR9YDPJ6W
        cshz7+7TxZ0vhEc6vGLdgqfyvuujUzBRMB0GA1UdDgQWBBT1cyTrQRQV3w6akpyK
        jJHOF/NcZzAfBgNVHSMEGDAWgBT1cyTrQRQV3w6akpyKjJHOF/NcZzAPBgNVHRMB
        Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCs9QfXXMS+hP9j8m0h9ELtD2k1
        LhQxYB6r4jBIAjHDLwIgbqJOfCtTv2OHTDNDJCIn7J7Zbn4aAGwgJoFFHu8je74=
        -----END CERTIFICATE-----
        """.utf8
    )

    /// The public key of `key`.
    static let publicKey = Array(
        """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6zE4QMcVqkvBkdZJ9ufz+77kzY9h
        Von43yowui/mJa0Q+OvJAcxH1gM8npZyyHPv7tPFnS+ERzq8Yt2Cp/K+6w==
        -----END PUBLIC KEY-----
        """.utf8
    )

    /// A key of P-256, as SEC 1.
    static let key = Array(
        """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIDyp9MX9W7Hu9c3zRTmkZshhtu+xpggi1bEcVePIf3X7oAoGCCqGSM49
        AwEHoUQDQgAE6zE4QMcVqkvBkdZJ9ufz+77kzY9hVon43yowui/mJa0Q+OvJAcxH
        1gM8npZyyHPv7tPFnS+ERzq8Yt2Cp/K+6w==
        -----END EC PRIVATE KEY-----
        """.utf8
    )

    /// The same key as PKCS #8.
    static let keyAsPKCS8 = Array(
        """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgPKn0xf1bse71zfNF
        OaRmyGG277GmCCLVsRxV48h/dfuhRANCAATrMThAxxWqS8GR1kn25/P7vuTNj2FW
        ifjfKjC6L+YlrRD468kBzEfWAzyelnLIc+/u08WdL4RHOrxi3YKn8r7r
        -----END PRIVATE KEY-----
        """.utf8
    )

    /// The same key without its public key.
    static let keyWithoutPoint = Array(
        """
        -----BEGIN EC PRIVATE KEY-----
        MDECAQEEIDyp9MX9W7Hu9c3zRTmkZshhtu+xpggi1bEcVePIf3X7oAoGCCqGSM49
        AwEH
        -----END EC PRIVATE KEY-----
        """.utf8
    )

    /// The same key, encrypted in PKCS #8.
    static let keyEncrypted = Array(
        """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhxVvMeEm9JhAICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEGl4hb4AeK30BsC0Q8OtCKMEgZDo
        ZRK0lYIZNbI1o5ZivvjMXwKOw9pEPt8fKbUFjfm/qapCd1ItqQG4IlS0Ad+hSy1i
        HCP8YE6Bsm4Telp3t9cD3XgODODkATAF6UZb98Rvy0kVWQofHlqme4SMCu1YRbTM
        rCNCCgbfX2bd/39YSFXr7BxInjSRbOd1f4k1ZAhu3vOXhupcx58mOMSfYummEHk=
        -----END ENCRYPTED PRIVATE KEY-----
        """.utf8
    )

    /// The same key, encrypted in OpenSSL's legacy format.
    static let keyEncryptedOldWay = Array(
        """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-128-CBC,BA5DF1081B77B7B0E8062F53CF7E385E

        mpNaL+HZR2vMpn/zKax2bBJct1nqVBEfkNzrzUps3nmdUhXcvHFc1vzn+p9Bkw7Q
        +TmGRibKxU99pGQil4uTQ4wPpk3YptKZWqU74InGxwmOa40uQrJ88eTTWsn3D/iV
        BtdO86xTgktwAUKD5XJ4YTA/QADj5HZmLpoCPIIG2iM=
        -----END EC PRIVATE KEY-----
        """.utf8
    )

    /// An RSA key as PKCS #1.
    static let rsaKey = Array(
        """
        -----BEGIN RSA PRIVATE KEY-----
        MIIBOwIBAAJBANxSjEy5tAArJZekipTEFG/kcVnP9mvm3mlUgQKV14hacKkJ8IZC
        PnD8KYG6Ev1qYHmcm9DgSFLaoBK6mDJVPEcCAwEAAQJBALPAkYDjnazphuEiuIHJ
        PBdSHPy2hAjisiDjdeIDGHbAN1T4Ge7QArYO95tQl4/jFcragwh8TABnFBU9bjJO
        sNECIQDuVCtlOlA8wRe/bu4Lww9eP/VDs+mM524W+DGV6JgbvwIhAOyol4Rr+Kn4
        FaTyqjtJ1hJTsq6q2WsyQwSeSycqQ6F5AiBJZJYwiDKpYvVDOJAKAzm6VovbG45y
        m9plLG1ossYU1QIhAL99x2QyDXpSsAjRBeeFXj9kFC/7NIPlno7NGths/V5ZAiB5
        PDzw+W4YlrT6grTyoTyWULtF4mD3+UJGvqYItKCMCw==
        -----END RSA PRIVATE KEY-----
        """.utf8
    )

    /// The RSA key as PKCS #8.
    static let rsaKeyAsPKCS8 = Array(
        """
        -----BEGIN PRIVATE KEY-----
        MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEA3FKMTLm0ACsll6SK
        lMQUb+RxWc/2a+beaVSBApXXiFpwqQnwhkI+cPwpgboS/WpgeZyb0OBIUtqgErqY
        MlU8RwIDAQABAkEAs8CRgOOdrOmG4SK4gck8F1Ic/LaECOKyION14gMYdsA3VPgZ
        7tACtg73m1CXj+MVytqDCHxMAGcUFT1uMk6w0QIhAO5UK2U6UDzBF79u7gvDD14/
        9UOz6Yznbhb4MZXomBu/AiEA7KiXhGv4qfgVpPKqO0nWElOyrqrZazJDBJ5LJypD
        oXkCIElkljCIMqli9UM4kAoDObpWi9sbjnKb2mUsbWiyxhTVAiEAv33HZDINelKw
        CNEF54VeP2QUL/s0g+Wejs0a2Gz9XlkCIHk8PPD5bhiWtPqCtPKhPJZQu0XiYPf5
        Qka+pgi0oIwL
        -----END PRIVATE KEY-----
        """.utf8
    )

    /// An Ed25519 key.
    static let edwardsKey = Array(
        """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIOHJdN+KpuEV6YvCg/Qe3ZAtb6p72DYblGNM+oH0NGBL
        -----END PRIVATE KEY-----
        """.utf8
    )
}
