import Testing
import WaybillLink

/// The numbers of Network.framework and Security in the package's words. They need no Apple platform.
@Suite("Errors of Network.framework") struct NetworkFaultTests {
    private static let peer = NetworkPeer(host: "example.com")

    @Test(
        "An error number of Darwin",
        arguments: [
            (32, LinkError.reset, false), (50, .unreachable(errorNumber: 50), false),
            (51, .unreachable(errorNumber: 51), false), (53, .reset, true), (54, .reset, true),
            (57, .reset, false), (60, .timedOut, true), (61, .refused, true),
            (65, .unreachable(errorNumber: 65), false), (89, .closed, false),
            (22, .system(errorNumber: 22, call: "Network.framework"), false),
        ]
    )
    func posix(number: Int32, error: LinkError, isFinal: Bool) {
        let fault = NetworkFault.posix(number)
        #expect(LinkError(fault, of: Self.peer) == error)
        #expect(fault.isFinal == isFinal)
    }

    @Test("An error of DNS; what policy denies is the local network, which the user may allow")
    func dns() {
        let unknown = LinkError(.dns(-65_538), of: Self.peer)
        #expect(unknown == .nameNotResolved(host: "example.com", reason: "DNS error -65538"))
        #expect(NetworkFault.dns(-65_538).isFinal)
        #expect(NetworkFault.dns(-65_554).isFinal)
        #expect(!NetworkFault.dns(-65_563).isFinal)
        #expect(LinkError(.dns(-65_570), of: Self.peer) == .localNetworkDenied)
        #expect(!NetworkFault.dns(-65_570).isFinal)
    }

    @Test("What the system does not permit says what to change")
    func notPermitted() {
        let denied = LinkError(.posix(1), of: Self.peer)
        #expect("\(denied)".contains("com.apple.security.network.client"))
        #expect(NetworkFault.posix(1).isFinal)
        #expect("\(LinkError.localNetworkDenied)".contains("NSLocalNetworkUsageDescription"))
    }

    private static func tls(_ status: Int32, _ peer: NetworkPeer = peer) -> LinkError {
        LinkError(.tls(status), of: peer)
    }

    @Test(
        "A status of a handshake",
        arguments: [
            (-9800, TLSFault.interrupted("OSStatus -9800")),
            (-9801, .noCommonProtocol("OSStatus -9801")),
            (-9805, .closed), (-9807, .invalidCertificate("OSStatus -9807")),
            (-9808, .invalidCertificate("OSStatus -9808")), (-9810, .interrupted("OSStatus -9810")),
            (-9812, .unknownAuthority()), (-9813, .unknownAuthority()), (-9814, .expired),
            (-9815, .notYetValid), (-9819, .notTLS),
            (-9824, .noCommonProtocol("handshake_failure")),
            (-9825, .certificateRequired), (-9826, .certificateRefused("unsupported_certificate")),
            (-9827, .certificateRefused("certificate_revoked")),
            (-9828, .certificateRefused("certificate_expired")),
            (-9829, .certificateRefused("certificate_unknown")),
            (-9831, .certificateRefused("unknown_ca")),
            (-9832, .certificateRefused("access_denied")),
            (-9836, .notTLS), (-9837, .noCommonProtocol("insufficient_security")),
            (-9838, .interrupted("OSStatus -9838")), (-9847, .notTLS), (-9850, .weakCertificate),
            (-9853, .interrupted("OSStatus -9853")), (-9858, .interrupted("OSStatus -9858")),
            (-9863, .certificateRequired), (-9890, .handshakeFailed("OSStatus -9890")),
        ] as [(Int32, TLSFault)]
    )
    func handshake(status: Int32, fault: TLSFault) {
        #expect(Self.tls(status) == .tls(fault))
        #expect(NetworkFault.tls(status).isFinal)
    }

    @Test("The meaning of some depends on what this side asks for")
    func dependent() {
        #expect(Self.tls(-9806) == .truncated)
        #expect(Self.tls(-9816) == .truncated)
        let identified = NetworkPeer(host: "h", showsIdentity: true)
        #expect(Self.tls(-9825, identified) == .tls(.certificateRefused("bad_certificate")))
        let modern = NetworkPeer(host: "h", requiresTLS1_3: true)
        #expect(Self.tls(-9836, modern) == .tls(.noCommonProtocol("protocol_version")))
    }

    @Test("A PKCS #12 file that the system does not read: the password, or the encryption")
    func pkcs12() {
        let old: [UInt8] = [0x30, 0x82, 0x06, 0x0B, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C]
        let modern = old + [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D, 0x30]
        #expect(PKCS12Refusal.reason(-25_293, of: old) == "its password is another")
        #expect(PKCS12Refusal.reason(-26_275, of: old) == "OSStatus -26275")
        for status: Int32 in [-25_293, -25_264, -26_275] {
            let words = PKCS12Refusal.reason(status, of: modern)
            #expect(words.contains("AES"))
            #expect(words.contains("-legacy"))
            #expect(words.contains("password is another") == (status != -26_275))
        }
        #expect(PKCS12Refusal.reason(-1, of: []) == "OSStatus -1")
    }
}
